package deponent.processor;

import static org.junit.jupiter.api.Assertions.fail;

import deponent.client.Account;
import deponent.client.Client;
import deponent.eth.Address;
import deponent.testing.DevNode;
import java.lang.reflect.InvocationTargetException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** A contract of a JSON ABI on the chain of {@code deponent dev}: generated code of all kinds. */
class DevChainTest {
  /** What an application has. */
  private static final String USE =
      """
      package app;
      import static org.junit.jupiter.api.Assertions.*;
      import deponent.client.*;
      import deponent.client.Error;
      import deponent.eth.*;
      import java.math.BigInteger;
      import java.util.List;
            import java.util.concurrent.CompletableFuture;
      import java.util.concurrent.CompletionException;

      public final class Use {
        @Contract(abi = "Coin.json")
        interface Coin {
          @View("sender") CompletableFuture<Address> senderAsync();
          @View("transfer(address,uint256)") boolean wouldTransfer(Address to, Wei value);
          @Send("transfer(address,uint256)") PendingTransaction transfer(Address to, Wei value);
          @Send("buy") Call buy(int rate, Wei ether);
          @Send("give")
          CompletableFuture<PendingTransaction> giveAsync(Gift gift);
          record Gift(String memo, List<Part> grants, List<Long> window) {}
          record Part(Address to, Wei amount) {}
          @Error("InsufficientBalance") record Poor(Address sender, Wei balance, Wei needed) {}
        }

        public static void run(Client eth, Account me, Address friend) {
          BigInteger thousand = BigInteger.valueOf(1_000);
          Receipt deployed = CoinContract.deploy(me, "Coin", thousand, Wei.of(5)).await();
          CoinContract coin = CoinContract.at(me, deployed);
          assertEquals(Wei.of(5), eth.balance(coin.address()));
          assertEquals("Coin", coin.name());
          assertEquals(thousand, coin.balanceOf(me.address()));
          assertEquals(new CoinContract.SupplyResult(thousand, 18), coin.supply());
          assertEquals(
              List.of(new CoinContract.Transfer(Address.ZERO, me.address(), thousand)),
              CoinContract.TRANSFER.in(deployed, coin.address()));

          // Calls are of the account, where there is one.
          assertEquals(me.address(), coin.senderAsync().join());
          assertEquals(Address.ZERO, CoinContract.at(eth, coin.address()).senderAsync().join());
          assertTrue(coin.wouldTransfer(friend, Wei.of(3)));

          Receipt sent = coin.transfer(friend, Wei.of(3)).await();
          assertEquals(BigInteger.valueOf(3), coin.balanceOf(friend));
          assertEquals(
              List.of(new CoinContract.Transfer(me.address(), friend, BigInteger.valueOf(3))),
              CoinContract.TRANSFER.in(sent, coin.address()));
          assertEquals(List.of(), CoinContract.TRANSFER.in(sent, friend));
          coin.transfer(new CoinContract.Grant(friend, BigInteger.TWO)).await();
          assertEquals(BigInteger.valueOf(5), coin.balanceOf(friend));
          me.send(coin.buy(2, Wei.of(10)).gasLimit(200_000)).await();
          assertEquals(BigInteger.valueOf(1_020), coin.supply().amount());

          Receipt given =
              coin.giveAsync(
                      new Coin.Gift(
                          "feast", List.of(new Coin.Part(friend, Wei.of(7))), List.of(1L, 2L)))
                  .join()
                  .await();
          CoinContract.Granted granted = CoinContract.GRANTED.in(given, coin.address()).get(0);
          assertEquals(CoinContract.GRANTED.abi().topics("feast").get(1), granted.memo());
          CoinContract.Round round =
              new CoinContract.Round(
                  "feast",
                  List.of(new CoinContract.Grant(friend, BigInteger.valueOf(7))),
                  List.of(BigInteger.ONE, BigInteger.TWO));
          assertEquals(round, granted.round());
          assertEquals(List.of(round, round), coin.echo(List.of(round, round)));
          List<Log> logs =
              eth.logs(LogFilter.of(CoinContract.TRANSFER.abi(), null, friend).fromBlock(0));
          assertEquals(3, logs.size());
          assertEquals(BigInteger.valueOf(7), CoinContract.TRANSFER.decode(logs.get(2)).value());

          // What a contract reverts with is known by its name, before a transaction is sent.
          Wei much = Wei.of(1_000_000);
          Wei mine = Wei.of(coin.balanceOf(me.address()));
          Coin.Poor poor = new Coin.Poor(me.address(), mine, much);
          for (Runnable one :
              List.<Runnable>of(
                  () -> coin.transfer(friend, much), () -> coin.wouldTransfer(friend, much))) {
            RevertException revert = assertThrows(RevertException.class, one::run);
            assertEquals(
                "InsufficientBalance(" + me.address() + ", " + mine + ", " + much + ")",
                revert.reason());
            assertEquals(poor, CoinContract.POOR.in(revert).orElseThrow());
            assertTrue(CoinContract.CLOSED.in(revert).isEmpty());
          }
          CompletableFuture<?> late =
              coin.giveAsync(new Coin.Gift("late", List.of(), List.of(2L, 1L)));
          RevertException closed =
              (RevertException) assertThrows(CompletionException.class, late::join).getCause();
          assertEquals(
              new CoinContract.Closed(List.of(BigInteger.TWO, BigInteger.ONE), "late"),
              CoinContract.CLOSED.in(closed).orElseThrow());

          // There is no contract at every address, and a client sends nothing.
          CoinContract nowhere = CoinContract.at(eth, friend);
          assertThrows(ProtocolException.class, nowhere::name);
          assertThrows(IllegalStateException.class, () -> nowhere.transfer(friend, Wei.ZERO));
        }
      }
      """;

  private static Path program() {
    String named = System.getenv("DEPONENT_BINARY");
    if (named != null && Files.isExecutable(Path.of(named))) {
      return Path.of(named);
    }
    if (System.getenv("CI") != null) {
      fail("CI needs deponent, by DEPONENT_BINARY (sdk/java/README.md)");
    }
    System.out.println("not run: no deponent, by DEPONENT_BINARY (sdk/java/README.md)");
    return null;
  }

  @Test
  void aContractIsDeployedCalledAndSentTo() throws Throwable {
    Path deponent = program();
    if (deponent == null) {
      return;
    }
    Compiled compiled = Compiled.of(Map.of("app.Use", USE), "-Adeponent.abi=src/test/abi");
    Class<?> use = compiled.loader().loadClass("app.Use");
    try (DevNode node = DevNode.builder().program(deponent).start();
        Client eth = Client.connect(node.url())) {
      use.getMethod("run", Client.class, Account.class, Address.class)
          .invoke(null, eth, eth.account(node.account(0)), node.account(1).address());
    } catch (InvocationTargetException failed) {
      throw failed.getCause();
    }
  }
}
