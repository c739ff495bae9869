package deponent.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import deponent.eth.Address;
import deponent.eth.Hash;
import deponent.eth.ReplacedException;
import deponent.eth.RpcException;
import deponent.eth.TransportException;
import deponent.eth.TransportException.Kind;
import deponent.eth.Wei;
import deponent.rpc.Provider;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/** What becomes of transactions, on chains that mine when they are told to. */
class PendingTransactionTest {
  private static final Address FRIEND = Address.of("0x00000000000000000000000000000000000f00d5");

  private static final Call PAYMENT = Call.to(FRIEND).value(Wei.of(7));

  /** What a test waits for although it does not come. */
  private static final Duration SHORT = Duration.ofMillis(300);

  private static final List<String> MANUAL = List.of("--no-mining");

  /** Runs a test with each chain, over both transports. */
  private static void each(Chain test) throws Exception {
    Nodes.each(
        MANUAL,
        node -> {
          int account = 0;
          for (String scheme : List.of("ws", "http")) {
            try (Client eth = node.client(scheme)) {
              test.with(eth, eth.account(Nodes.key(account++)));
            }
          }
        });
  }

  private interface Chain {
    void with(Client eth, Account me) throws Exception;
  }

  private static ReplacedException replaced(CompletableFuture<Receipt> waiting) {
    ExecutionException failed = assertThrows(ExecutionException.class, waiting::get);
    return assertInstanceOf(ReplacedException.class, failed.getCause());
  }

  @Test
  void confirmationsAreBlocksUponIt() throws Exception {
    each(
        (eth, me) -> {
          PendingTransaction sent = me.send(PAYMENT);
          assertTrue(sent.receipt().isEmpty());
          assertTrue(sent.isKnown());
          TransportException late =
              assertThrows(TransportException.class, () -> sent.await(1, SHORT));
          assertEquals(Kind.TIMEOUT, late.kind());
          assertTrue(late.getMessage().contains("waits in the server's pool"), late.getMessage());
          CompletableFuture<Receipt> one = sent.awaitAsync(1, Nodes.LONG);
          CompletableFuture<Receipt> three = sent.awaitAsync(3, Nodes.LONG);
          Nodes.mine(eth);
          Receipt receipt = one.get();
          Nodes.mine(eth);
          late = assertThrows(TransportException.class, () -> sent.await(3, SHORT));
          assertTrue(late.getMessage().contains("3 confirmations"), late.getMessage());
          assertFalse(three.isDone());
          Nodes.mine(eth);
          assertEquals(receipt, three.get());
          assertEquals(receipt.blockNumber() + 2, eth.blockNumber());
          assertEquals(receipt, sent.await(3, Nodes.LONG));
          assertEquals(receipt, sent.receipt().orElseThrow());
          assertTrue(sent.replaced().isEmpty());
        });
  }

  @Test
  void aFasterVersionIsAwaitedByBoth() throws Exception {
    each(
        (eth, me) -> {
          PendingTransaction slow = me.send(PAYMENT);
          CompletableFuture<Receipt> waiting = slow.awaitAsync(1, Nodes.LONG);
          PendingTransaction fast = slow.speedUp();
          PendingTransaction faster = slow.speedUp();
          assertNotEquals(slow.hash(), fast.hash());
          assertNotEquals(fast.hash(), faster.hash());
          Nodes.mine(eth);
          Receipt receipt = faster.await(1, Nodes.LONG);
          assertEquals(faster.hash(), receipt.transactionHash());
          assertEquals(receipt, waiting.get());
          assertEquals(receipt, fast.await(1, Nodes.LONG));
          assertEquals(Optional.of(faster.hash()), slow.replaced());
          assertTrue(faster.replaced().isEmpty());
          assertThrows(RpcException.class, slow::speedUp);
          assertEquals(Wei.of(7), eth.transaction(faster.hash()).orElseThrow().value());
        });
  }

  @Test
  void aCancelledTransactionIsReplaced() throws Exception {
    each(
        (eth, me) -> {
          Wei before = eth.balance(FRIEND);
          PendingTransaction sent = me.fees(Fees.legacy()).send(PAYMENT);
          CompletableFuture<Receipt> waiting = sent.awaitAsync(1, Nodes.LONG);
          PendingTransaction cancelled = sent.cancel();
          Nodes.mine(eth);
          assertEquals(cancelled.hash(), cancelled.await(1, Nodes.LONG).transactionHash());
          ReplacedException replaced = replaced(waiting);
          assertEquals(sent.hash(), replaced.transaction());
          assertEquals(Optional.of(cancelled.hash()), replaced.replacement());
          assertEquals(before, eth.balance(FRIEND));
        });
  }

  @Test
  void aTransactionOfAnotherProcessTakesTheNonce() throws Exception {
    each(
        (eth, me) -> {
          for (int i = 0; i < 5; i++) {
            Nodes.mine(eth);
          }
          Account low = me.fees(Fees.fixed(Wei.gwei("9"), Wei.gwei("1")));
          PendingTransaction sent = low.send(PAYMENT);
          CompletableFuture<Receipt> waiting = sent.awaitAsync(1, Nodes.LONG);
          long nonce = sent.signed().orElseThrow().transaction().nonce();
          Fees high = Fees.fixed(Wei.gwei("60"), Wei.gwei("50"));
          Account other = eth.account(me).fees(high);
          Hash stranger = other.send(PAYMENT.value(Wei.of(8)).nonce(nonce)).hash();
          Nodes.mine(eth);
          assertEquals(Optional.of(stranger), replaced(waiting).replacement());
          assertEquals(Optional.of(stranger), sent.replaced());
          // Blocks that follow do not hide it.
          for (int i = 0; i < 5; i++) {
            Nodes.mine(eth);
          }
          ReplacedException again =
              assertThrows(ReplacedException.class, () -> sent.await(1, Nodes.LONG));
          assertEquals(Optional.of(stranger), again.replacement());
          PendingTransaction same = low.send(PAYMENT);
          long next = same.signed().orElseThrow().transaction().nonce();
          Hash dearer = other.send(PAYMENT.nonce(next)).hash();
          Nodes.mine(eth);
          assertEquals(dearer, same.await(1, Nodes.LONG).transactionHash());
        });
  }

  @Test
  void aDroppedTransactionIsNamedAndSentAgain() throws Exception {
    each(
        (eth, me) -> {
          PendingTransaction sent = me.send(PAYMENT);
          Nodes.ask(eth, "anvil_dropTransaction", json -> json.value(sent.hash()));
          assertFalse(sent.isKnown());
          TransportException late =
              assertThrows(TransportException.class, () -> sent.await(1, SHORT));
          assertTrue(late.getMessage().contains("not in the server's pool"), late.getMessage());
          sent.resend();
          assertTrue(sent.isKnown());
          sent.resend();
          // The nonce was free, and is not given twice.
          PendingTransaction next = me.send(PAYMENT);
          long nonce = sent.signed().orElseThrow().transaction().nonce();
          assertEquals(nonce + 1, next.signed().orElseThrow().transaction().nonce());
          Nodes.mine(eth);
          sent.await();
          next.await();
          sent.resend();
        });
  }

  @Test
  void aBlockThatLeavesTheChainCountsNoMore() throws Exception {
    Nodes.each(
        MANUAL,
        node -> {
          try (Client eth = node.client("ws")) {
            Account me = eth.account(Nodes.key(0));
            PendingTransaction sent = me.send(PAYMENT);
            String snapshot = Nodes.ask(eth, "evm_snapshot", json -> {});
            CompletableFuture<Receipt> three = sent.awaitAsync(3, Nodes.LONG);
            Nodes.mine(eth);
            Receipt lost = sent.await();
            Nodes.ask(eth, "evm_revert", json -> json.raw(snapshot));
            // The blocks that follow are others, by their time.
            Nodes.ask(eth, "evm_increaseTime", json -> json.value(100));
            sent.resend();
            for (int i = 0; i < 3; i++) {
              Nodes.mine(eth);
            }
            Receipt kept = three.get();
            assertNotEquals(lost.blockHash(), kept.blockHash());
            assertEquals(eth.receipt(sent.hash()).orElseThrow(), kept);
          }
        });
  }

  @Test
  void questionsFollowThePaceOfTheChain() {
    assertEquals(4_000, Heads.pauseOf(12));
    assertEquals(666, Heads.pauseOf(2));
    assertEquals(250, Heads.pauseOf(0));
    assertEquals(4_000, Heads.pauseOf(1_000_000));
    assertEquals(4_000, Heads.pauseOf(-5));
  }

  @Test
  void aWaitOutlivesItsConnection() throws Exception {
    Nodes.each(
        MANUAL,
        node -> {
          for (String scheme : List.of("ws", "http")) {
            try (Client miner = node.client("http");
                Cut cut = new Cut(node.port);
                Client eth =
                    Client.of(
                        Provider.at(scheme + "://127.0.0.1:" + cut.port())
                            .timeout(Nodes.LONG)
                            .connect())) {
              PendingTransaction sent = eth.account(Nodes.key(0)).send(PAYMENT);
              CompletableFuture<Receipt> two = sent.awaitAsync(2, Nodes.LONG);
              assertThrows(TransportException.class, () -> sent.await(1, SHORT));
              cut.cut();
              Nodes.mine(miner);
              assertTrue(sent.await(1, Nodes.LONG).succeeded());
              cut.cut();
              Nodes.mine(miner);
              assertEquals(sent.hash(), two.get().transactionHash());
            }
          }
        });
  }

  @Test
  void aNodeThatEndsIsATypedException() throws Exception {
    for (String scheme : List.of("ws", "http")) {
      Nodes.each(
          List.of(),
          node -> {
            String at = scheme + "://127.0.0.1:" + node.port;
            Provider provider = Provider.at(at).timeout(Duration.ofSeconds(5)).connect();
            try (Client eth = Client.of(provider)) {
              ends(node, eth);
            }
          });
    }
  }

  private static void ends(Nodes.Node node, Client eth) throws Exception {
    Account me = eth.account(Nodes.key(0));
    PendingTransaction before = me.send(PAYMENT.nonce(1_000_000).gasLimit(21_000));
    CompletableFuture<Receipt> waiting = before.awaitAsync(1, Duration.ofSeconds(1));
    Semaphore taken = new Semaphore(0);
    List<CompletableFuture<Boolean>> sends = new ArrayList<>();
    for (int i = 0; i < 1_000; i++) {
      sends.add(
          Account.async(
              () -> {
                try {
                  me.send(PAYMENT.gasLimit(21_000).fees(Wei.gwei("9"), Wei.gwei("1")));
                  taken.release();
                  return true;
                } catch (TransportException lost) {
                  return false;
                }
              }));
    }
    taken.tryAcquire(50, 120, TimeUnit.SECONDS);
    node.close();
    int lost = 0;
    for (CompletableFuture<Boolean> send : sends) {
      lost += send.get() ? 0 : 1;
    }
    assertTrue(lost > 0, "the node ended, and nobody noticed");
    ExecutionException failed = assertThrows(ExecutionException.class, waiting::get);
    assertInstanceOf(TransportException.class, failed.getCause());
  }
}
