package deponent.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import deponent.eth.AbiEvent;
import deponent.eth.AbiFunction;
import deponent.eth.AbiValues;
import deponent.eth.Address;
import deponent.eth.Bytes;
import deponent.eth.Hash;
import deponent.eth.ReplacedException;
import deponent.eth.RevertException;
import deponent.eth.RpcException;
import deponent.eth.SignedTransaction;
import deponent.eth.Wei;
import deponent.wallet.PrivateKey;
import java.math.BigInteger;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.Test;

/** Accounts on chains for tests: {@code deponent dev} and anvil. */
class AccountTest {
  private static final Address FRIEND = Address.of("0x00000000000000000000000000000000000f00d5");

  private static final Call PAYMENT = Call.to(FRIEND).value(Wei.of(7));

  @Test
  void aContractIsDeployedCalledAndHeard() throws Exception {
    Nodes.each(
        List.of(),
        node -> {
          for (String scheme : List.of("ws", "http")) {
            try (Client eth = node.client(scheme)) {
              Account me = eth.account(Nodes.key(0));
              Receipt created = me.deploy(Till.with(100)).await();
              Address till = created.contractAddress().orElseThrow();
              assertTrue(created.succeeded());
              Call pay = Call.to(till).data(Till.ABI.function("pay"), "thanks").value(Wei.of(150));
              Receipt paid = me.send(pay).await(1, Nodes.LONG);
              AbiEvent event = Till.ABI.event("Paid");
              AbiValues fields = paid.logs().get(0).decode(event);
              assertEquals(me.address(), fields.address("from"));
              assertEquals(150, fields.integer("amount").intValue());
              assertEquals("thanks", fields.text("note"));
              AbiFunction of = Till.ABI.function("paid");
              AbiValues held = eth.call(till, of, me.address());
              assertEquals(BigInteger.valueOf(150), held.integer(0));
              assertEquals(Wei.of(150), eth.balance(till));
            }
          }
        });
  }

  @Test
  void fillsInWhatACallLeavesOut() throws Exception {
    Nodes.each(
        List.of(),
        node -> {
          try (Client eth = node.client("ws")) {
            Account me = eth.account(Nodes.key(1));
            ChainTransaction market = sent(eth, me.send(PAYMENT));
            assertEquals(2, market.type());
            assertEquals(21_000, market.gasLimit());
            assertEquals(31_337, market.chainId().getAsLong());
            ChainTransaction legacy = sent(eth, me.fees(Fees.legacy()).send(PAYMENT));
            assertEquals(0, legacy.type());
            Fees fixed = Fees.fixed(Wei.gwei("5"), Wei.gwei("2"));
            ChainTransaction told = sent(eth, me.fees(fixed).send(PAYMENT));
            assertEquals(Wei.gwei("5"), told.maxFeePerGas().orElseThrow());
            assertEquals(Wei.gwei("2"), told.maxPriorityFeePerGas().orElseThrow());
            ChainTransaction own =
                sent(eth, me.send(PAYMENT.gasLimit(30_000).fees(Wei.gwei("9"), Wei.gwei("1"))));
            assertEquals(30_000, own.gasLimit());
            assertEquals(Wei.gwei("9"), own.maxFeePerGas().orElseThrow());
            ChainTransaction listed =
                sent(eth, me.send(PAYMENT.accessList(List.of()).gasPrice(Wei.gwei("4"))));
            assertEquals(1, listed.type());
            assertEquals(5, eth.transactionCount(me.address()));
            assertThrows(IllegalArgumentException.class, () -> me.send(PAYMENT.from(FRIEND)));
          }
        });
  }

  private static ChainTransaction sent(Client eth, PendingTransaction pending) {
    Receipt receipt = pending.await();
    assertEquals(pending.hash(), receipt.transactionHash());
    return eth.transaction(pending.hash()).orElseThrow();
  }

  @Test
  void transactionsThatWouldRevertAreNotSent() throws Exception {
    Nodes.each(
        List.of(),
        node -> {
          try (Client eth = node.client("ws")) {
            Account me = eth.account(Nodes.key(0));
            Reverting contracts = new Reverting(me);
            for (Reverting.Case one : contracts.cases()) {
              RevertException estimate =
                  assertThrows(RevertException.class, () -> me.send(one.call()), one.reason());
              assertEquals(one.reason(), estimate.reason());
              assertEquals(one.data(), estimate.revertData(), one.reason());
              Call from = one.call().from(me.address());
              RevertException call = assertThrows(RevertException.class, () -> eth.call(from));
              assertEquals(one.reason(), call.reason());
              assertEquals(one.data(), call.revertData());
            }
            assertEquals(contracts.sent(), eth.transactionCount(me.address()));
          }
        });
  }

  @Test
  void failedTransactionsSayWhy() throws Exception {
    Nodes.each(
        List.of(),
        node -> {
          for (String scheme : List.of("ws", "http")) {
            try (Client eth = node.client(scheme)) {
              Account me = eth.account(Nodes.key(0));
              Reverting contracts = new Reverting(me);
              for (Reverting.Case one : contracts.cases()) {
                PendingTransaction failed = me.send(one.call().gasLimit(200_000));
                RevertException why =
                    assertThrows(RevertException.class, failed::await, one.reason());
                assertEquals(one.reason(), why.reason());
                assertEquals(one.data(), why.revertData());
                assertTrue(why.getMessage().contains(failed.hash().toString()), why.getMessage());
                assertFalse(failed.receipt().orElseThrow().succeeded());
              }
              // An endless loop: JUMPDEST PUSH0 JUMP.
              Bytes loop = Till.deployed(Bytes.of("0x5b5f56"));
              Address endless = me.deploy(loop).await().contractAddress().orElseThrow();
              PendingTransaction burnt = me.send(Call.to(endless).gasLimit(50_000));
              RevertException gas = assertThrows(RevertException.class, burnt::await);
              assertTrue(gas.getMessage().toLowerCase().contains("gas"), gas.getMessage());
            }
          }
        });
  }

  @Test
  void aThousandSendsFromOneAccountLeaveNoHole() throws Exception {
    int sends = 1_000;
    Nodes.each(
        List.of(),
        node -> {
          try (Client eth = node.client("ws");
              ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor()) {
            Account me = eth.account(Nodes.key(2));
            List<Future<Long>> nonces = new ArrayList<>();
            for (int i = 0; i < sends; i++) {
              // Some are refused by the server, after they have a nonce.
              boolean bad = i % 50 == 7;
              Call call = bad ? PAYMENT.gasLimit(20_999) : PAYMENT;
              nonces.add(
                  threads.submit(
                      () -> {
                        if (bad) {
                          assertThrows(RpcException.class, () -> me.send(call));
                          return -1L;
                        }
                        PendingTransaction sent = me.send(call);
                        Receipt receipt = sent.await(1, Nodes.LONG);
                        assertEquals(sent.hash(), receipt.transactionHash());
                        return sent.signed().orElseThrow().transaction().nonce();
                      }));
            }
            Set<Long> all = new TreeSet<>();
            for (Future<Long> nonce : nonces) {
              all.add(nonce.get());
            }
            all.remove(-1L);
            assertEquals(sends - sends / 50, all.size());
            assertEquals(all.size(), eth.transactionCount(me.address()));
            assertEquals(all.size(), eth.transactionCount(me.address(), BlockId.PENDING));
          }
        });
  }

  @Test
  void noncesThatOthersTakeAreAskedForAgain() throws Exception {
    Nodes.each(
        List.of(),
        node -> {
          try (Client one = node.client("ws");
              Client other = node.client("http");
              ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor()) {
            PrivateKey key = Nodes.key(3);
            List<Account> mine = List.of(one.account(key), other.account(key));
            List<Future<?>> turns = new ArrayList<>();
            for (int i = 0; i < mine.size(); i++) {
              Account account = mine.get(i);
              // Their transactions differ: one that both had sent would be one.
              Call payment = PAYMENT.value(Wei.of(10 + i));
              turns.add(
                  threads.submit(
                      () -> {
                        for (int sends = 0; sends < 20; sends++) {
                          sendAtLast(account, payment);
                        }
                      }));
            }
            for (Future<?> turn : turns) {
              turn.get();
            }
            assertEquals(40, one.transactionCount(key.address()));
          }
        });
  }

  /** Sends until it is in a block: of two who send from one account, one may lose all tries. */
  private static void sendAtLast(Account account, Call payment) {
    while (true) {
      try {
        account.send(payment).await(1, Nodes.LONG);
        return;
      } catch (ReplacedException late) {
        // The node took both while it was mining one of them.
      } catch (RpcException taken) {
        assertTrue(Refusals.isNonceTaken(taken), taken.getMessage());
      }
    }
  }

  @Test
  void aChainThatWasSetBackIsCountedAnew() throws Exception {
    Nodes.each(
        List.of(),
        node -> {
          try (Client eth = node.client("ws")) {
            Account me = eth.account(Nodes.key(4));
            me.send(PAYMENT).await();
            String snapshot = Nodes.ask(eth, "evm_snapshot", json -> {});
            me.send(PAYMENT).await();
            me.send(PAYMENT).await();
            Nodes.ask(eth, "evm_revert", json -> json.raw(snapshot));
            PendingTransaction again = me.send(PAYMENT);
            assertEquals(1, again.signed().orElseThrow().transaction().nonce());
            again.await();
            PendingTransaction remote = me.nonces(Nonces.remote()).send(PAYMENT);
            assertEquals(2, remote.signed().orElseThrow().transaction().nonce());
            remote.await();
          }
        });
  }

  @Test
  void aTransactionIsSignedWithoutBeingSent() throws Exception {
    Nodes.each(
        List.of(),
        node -> {
          try (Client eth = node.client("ws")) {
            Account me = eth.account(Nodes.key(5));
            SignedTransaction signed = me.prepare(PAYMENT);
            assertEquals(0, signed.transaction().nonce());
            assertEquals(9, me.prepare(PAYMENT.nonce(9)).transaction().nonce());
            assertEquals(0, eth.transactionCount(me.address()));
            Account courier = eth.account(Nodes.key(6));
            PendingTransaction sent = courier.send(signed);
            Receipt receipt = sent.await();
            assertEquals(signed.hash(), receipt.transactionHash());
            assertEquals(me.address(), receipt.from());
            assertThrows(IllegalStateException.class, sent::speedUp);
            Hash hash = me.sendAsync(PAYMENT).get().hash();
            assertEquals(hash, eth.pending(hash).await().transactionHash());
          }
        });
  }
}
