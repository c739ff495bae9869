package deponent.examples;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assertions.fail;

import deponent.client.Account;
import deponent.client.Client;
import deponent.client.Feed;
import deponent.client.Log;
import deponent.client.Receipt;
import deponent.eth.Address;
import deponent.eth.TypedData;
import deponent.eth.Wei;
import deponent.testing.DevNode;
import deponent.testing.Snapshot;
import deponent.testing.TestClient;
import deponent.wallet.PrivateKey;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** The tasks, on a chain of {@code deponent dev}. */
class TasksTest {
  private static final Address FRIEND = Address.of("0x00000000000000000000000000000000000000aa");
  private static final BigInteger THOUSAND = BigInteger.valueOf(1_000);

  private static DevNode node;

  @BeforeAll
  static void start() {
    if (System.getenv("DEPONENT_BINARY") != null) {
      node = DevNode.start();
    } else if (System.getenv("CI") != null) {
      fail("CI needs deponent, by DEPONENT_BINARY (sdk/java/README.md)");
    } else {
      System.out.println("not run: no deponent, by DEPONENT_BINARY (sdk/java/README.md)");
    }
  }

  @AfterAll
  static void stop() {
    if (node != null) {
      node.close();
    }
  }

  private interface Task {
    void run(Client eth, Account me) throws Exception;
  }

  /** Runs a task with a connection of its own, on the chain as it was at the start. */
  @SuppressWarnings("try") // the snapshot is closed
  private static void run(Task task) throws Exception {
    if (node == null) {
      return;
    }
    try (Snapshot start = node.client().snapshot();
        Client eth = Client.connect(node.url())) {
      task.run(eth, eth.account(node.account(0)));
    }
  }

  @Test
  void aBalance() throws Exception {
    run(
        (eth, me) -> {
          String account = node.account(3).address().toString();
          BigDecimal tenThousand = new BigDecimal("10000");
          for (String url : List.of(node.url(), node.httpUrl())) {
            assertEquals(0, tenThousand.compareTo(Balance.of(url, account)));
          }
        });
  }

  @Test
  void etherIsSent() throws Exception {
    run(
        (eth, me) -> {
          Receipt receipt = SendEther.send(eth, node.account(0), FRIEND);
          assertTrue(receipt.succeeded());
          assertEquals(Wei.ether("0.5"), eth.balance(FRIEND));
        });
  }

  @Test
  void aContractWithAndWithoutGeneratedCode() throws Exception {
    run(
        (eth, me) -> {
          Address token = Token.deploy(me, THOUSAND);
          List<Erc20.Transfer> sent = Token.send(me, token, FRIEND, BigInteger.TEN);
          assertEquals(List.of(new Erc20.Transfer(me.address(), FRIEND, BigInteger.TEN)), sent);
          assertEquals(BigInteger.TEN, Erc20Contract.at(eth, token).balanceOf(FRIEND));
          assertEquals(BigInteger.TEN, PlainCall.held(eth, token, FRIEND));
          assertEquals(BigInteger.valueOf(990), PlainCall.held(eth, token, me.address()));
        });
  }

  @Test
  void manyBalances() throws Exception {
    run(
        (eth, me) -> {
          List<Address> people = node.accounts().stream().map(PrivateKey::address).toList();
          List<Wei> all = ManyBalances.inOneBatch(eth, people);
          assertEquals(10, all.size());
          assertEquals(Wei.ether("10000"), all.get(9));
          assertEquals(all, ManyBalances.onVirtualThreads(eth, people));
        });
  }

  @Test
  void holdersOverAReorganisation() throws Exception {
    run(
        (eth, me) -> {
          TestClient chain = node.client();
          Address token = Token.deploy(me, THOUSAND);
          Holders holders = new Holders(token);
          try (Feed<Log> feed = holders.follow(eth, 0)) {
            holders.take(feed.next(Duration.ofSeconds(120)).orElseThrow());
            assertEquals(THOUSAND, holders.of(me.address()));
            Token.send(me, token, FRIEND, BigInteger.TEN);
            holders.take(feed.next(Duration.ofSeconds(120)).orElseThrow());
            assertEquals(BigInteger.TEN, holders.of(FRIEND));
            chain.reorg(1);
            holders.take(feed.next(Duration.ofSeconds(120)).orElseThrow());
            assertEquals(BigInteger.ZERO, holders.of(FRIEND));
            assertEquals(THOUSAND, holders.of(me.address()));
            assertEquals(THOUSAND, PlainCall.held(eth, token, me.address()));
          }
        });
  }

  @Test
  void whyATransactionWouldFail() throws Exception {
    run(
        (eth, me) -> {
          Address token = Token.deploy(me, THOUSAND);
          Account poor = eth.account(node.account(1));
          assertEquals("InsufficientBalance(0, 10)", WhyItFails.reason(poor, token, FRIEND));
        });
  }

  @Test
  void typedDataIsSigned() {
    try (PrivateKey key = PrivateKey.random()) {
      TypedData mail = SignTypedData.mail(FRIEND, FRIEND);
      assertEquals(
          Optional.of(key.address()), SignTypedData.signer(mail, SignTypedData.sign(key, mail)));
    }
  }
}
