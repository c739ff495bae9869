package deponent.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import deponent.eth.Address;
import deponent.eth.Bytes;
import deponent.eth.Hash;
import deponent.eth.ProtocolException;
import deponent.eth.ReplacedException;
import deponent.eth.RevertException;
import deponent.eth.RpcException;
import deponent.eth.SignedTransaction;
import deponent.eth.TransportException;
import deponent.eth.TransportException.Kind;
import deponent.eth.Wei;
import deponent.sets.Sets;
import deponent.wallet.PrivateKey;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import org.junit.jupiter.api.Test;

/** Servers that lie, forget, and go away while transactions are given to them. */
class PublicationTest {
  private static final PrivateKey KEY = Nodes.key(0);
  private static final Address FRIEND = Address.of("0x00000000000000000000000000000000000f00d5");
  private static final Call PAYMENT = Call.to(FRIEND).value(Wei.of(7));
  private static final Fees FEES = Fees.fixed(Wei.of(1_000), Wei.of(1));

  private static TransportException broken() {
    return new TransportException(Kind.CLOSED, true, "the connection ended", null);
  }

  /** What happens to the next transactions that are sent. */
  private static class Bad extends Ledger {
    private final ArrayDeque<How> next = new ArrayDeque<>();

    interface How {
      String take(Bytes raw);
    }

    Bad() {
      super(KEY.address());
    }

    synchronized Bad then(How... hows) {
      next.addAll(List.of(hows));
      return this;
    }

    @Override
    String take(Bytes raw) {
      How how = next.poll();
      return how == null ? super.take(raw) : how.take(raw);
    }

    /** Takes it, and the answer is lost. */
    String lost(Bytes raw) {
      super.take(raw);
      throw broken();
    }

    /** Does not get it. */
    String never(Bytes raw) {
      sent.add(raw);
      throw broken();
    }

    void lostAndMined(Bytes raw) {
      super.take(raw);
      while (!pool.isEmpty()) {
        mine();
      }
    }

    /** Has it twice. */
    String twice(Bytes raw) {
      super.take(raw);
      return super.take(raw);
    }

    Account account() {
      return Scripted.client(this).account(KEY).fees(FEES);
    }
  }

  private static long nonce(PendingTransaction sent) {
    return sent.signed().orElseThrow().transaction().nonce();
  }

  @Test
  void anotherHashIsALie() {
    Bad bad = new Bad();
    Account me = bad.then(raw -> "\"" + Hash.ZERO + "\"").account();
    ProtocolException lie = assertThrows(ProtocolException.class, () -> me.send(PAYMENT));
    assertTrue(lie.getMessage().contains(Hash.ZERO.toString()), lie.getMessage());
    assertEquals(0, nonce(me.send(PAYMENT)));
  }

  @Test
  void anotherReceiptIsALie() {
    Ledger liar =
        new Ledger(KEY.address()) {
          @Override
          String receipt(Hash hash) {
            return receipt(Hash.ZERO, 1, true);
          }
        };
    PendingTransaction sent = Scripted.client(liar).account(KEY).fees(FEES).send(PAYMENT);
    assertThrows(ProtocolException.class, sent::await);
    assertThrows(ProtocolException.class, sent::receipt);
  }

  @Test
  void aLostAnswerIsAskedForByTheSameBytes() {
    Bad bad = new Bad();
    Account me = bad.account();
    bad.then(bad::lost);
    assertEquals(0, nonce(me.send(PAYMENT)));
    assertEquals(bad.sent.get(0), bad.sent.get(1));
    assertEquals(1, bad.pool.size());
    bad.then(bad::never);
    assertEquals(1, nonce(me.send(PAYMENT)));
    assertEquals(bad.sent.get(2), bad.sent.get(3));
    // By the time of the second try it was mined.
    bad.then(
        raw -> {
          bad.lostAndMined(raw);
          throw broken();
        });
    assertEquals(2, nonce(me.send(PAYMENT)));
    assertEquals(3, bad.mined.size());
  }

  @Test
  void afterALostAnswerNoOtherNonceIsTaken() {
    Bad bad = new Bad();
    Account me = bad.account();
    // Another process takes the nonce, and this transaction may be on its way still.
    bad.then(
        bad::never,
        raw -> {
          throw new RpcException(-32000, "nonce too low", null);
        });
    TransportException lost = assertThrows(TransportException.class, () -> me.send(PAYMENT));
    assertTrue(lost.mayHaveRun());
    assertTrue(lost.getCause().getMessage().contains("nonce too low"), lost.getMessage());
    assertEquals(1, bad.sent.stream().distinct().count());
  }

  @Test
  void twoBrokenConnectionsAreATypedException() {
    Bad bad = new Bad();
    Account me = bad.account();
    bad.then(bad::lost, bad::never);
    TransportException lost = assertThrows(TransportException.class, () -> me.send(PAYMENT));
    assertTrue(lost.mayHaveRun());
    Hash hash = SignedTransaction.decode(bad.sent.get(0)).hash();
    assertTrue(lost.getMessage().contains(hash.toString()), lost.getMessage());
    // It had arrived, so the next one takes the next nonce.
    assertEquals(1, nonce(me.send(PAYMENT)));
    bad.then(
        raw -> {
          throw new TransportException(Kind.TIMEOUT, true, "no answer", null);
        });
    lost = assertThrows(TransportException.class, () -> me.send(PAYMENT));
    assertEquals(Kind.TIMEOUT, lost.kind());
    assertEquals(2, nonce(me.send(PAYMENT)));
    bad.then(
        raw -> {
          throw new TransportException(Kind.CONNECT, false, "nobody listens", null);
        },
        raw -> {
          throw new TransportException(Kind.CONNECT, false, "nobody listens", null);
        });
    lost = assertThrows(TransportException.class, () -> me.send(PAYMENT));
    assertFalse(lost.mayHaveRun());
  }

  @Test
  void aServerThatAsksForPatienceGetsIt() {
    Bad bad = new Bad();
    Account me =
        bad.then(
                raw -> {
                  throw new RpcException(-32005, "limit exceeded", null);
                })
            .account();
    assertEquals(0, nonce(me.send(PAYMENT)));
  }

  @Test
  void aRefusalLeavesNoHole() {
    Bad bad = new Bad();
    Account me = bad.account();
    me.send(PAYMENT);
    bad.then(
        raw -> {
          throw new RpcException(-32000, "insufficient funds for gas * price + value", null);
        });
    assertThrows(RpcException.class, () -> me.send(PAYMENT));
    assertEquals(1, nonce(me.send(PAYMENT)));
  }

  @Test
  void aServerThatIsBehindDoesNotGiveANonceTwice() {
    Bad behind =
        new Bad() {
          @Override
          long count(boolean pending, String params) {
            return super.count(false, params);
          }
        };
    Account me = behind.account();
    for (int i = 0; i < 5; i++) {
      assertEquals(i, nonce(me.send(PAYMENT)));
    }
    // The pool forgets them, as a node that was started again.
    behind.pool.clear();
    assertEquals(0, nonce(me.send(PAYMENT)));
  }

  @Test
  void theSameTransactionOfAnotherIsNotThisOne() {
    Bad bad = new Bad();
    Account me = bad.account();
    // Another process with the key sends the very same before.
    bad.then(bad::twice);
    PendingTransaction second = me.send(PAYMENT);
    assertEquals(1, nonce(second));
    assertEquals(2, bad.pool.size());
  }

  @Test
  void thoseWhoWaitForALostTransactionFailAtOnce() throws Exception {
    CountDownLatch first = new CountDownLatch(1);
    CountDownLatch go = new CountDownLatch(1);
    Bad bad = new Bad();
    Scripted.Script script =
        (method, params) -> {
          if (method.equals("eth_sendRawTransaction") && go.getCount() > 0) {
            first.countDown();
            try {
              go.await();
            } catch (InterruptedException never) {
              throw new AssertionError(never);
            }
            throw new TransportException(Kind.TIMEOUT, true, "no answer", null);
          }
          return bad.answer(method, params);
        };
    Account me = Scripted.client(script).account(KEY).fees(FEES);
    CompletableFuture<PendingTransaction> lost = me.sendAsync(PAYMENT);
    first.await();
    List<CompletableFuture<PendingTransaction>> waiting = new ArrayList<>();
    CountDownLatch begun = new CountDownLatch(50);
    for (int i = 0; i < 50; i++) {
      Nonces counted = new Begun(me, begun);
      waiting.add(me.nonces(counted).sendAsync(PAYMENT));
    }
    begun.await();
    go.countDown();
    TransportException why = failed(lost);
    assertTrue(why.mayHaveRun());
    for (CompletableFuture<PendingTransaction> one : waiting) {
      assertFalse(failed(one).mayHaveRun());
    }
    assertEquals(0, nonce(me.send(PAYMENT)));
  }

  private static TransportException failed(CompletableFuture<PendingTransaction> sent) {
    ExecutionException failed = assertThrows(ExecutionException.class, sent::get);
    return (TransportException) failed.getCause();
  }

  /** The nonces of an account, which tell when a turn has begun. */
  private record Begun(Account of, CountDownLatch begun) implements Nonces {
    @Override
    public Turn begin(Client client, Address account) {
      Turn turn = of.nonces().begin(client, account);
      begun.countDown();
      return turn;
    }
  }

  @Test
  void aNonceThatIsUsedAndSeenNowhereIsAReplacement() {
    // An authorization takes a nonce without a transaction: here an account's number jumps.
    Ledger jumps =
        new Ledger(KEY.address()) {
          @Override
          long count(boolean pending, String params) {
            return params.contains("latest") ? 1 : super.count(pending, params);
          }

          @Override
          public String answer(String method, String params) {
            boolean head = method.equals("eth_blockNumber");
            return head ? quantity(blocks++) : super.answer(method, params);
          }

          private long blocks;
        };
    PendingTransaction sent = Scripted.client(jumps).account(KEY).fees(FEES).send(PAYMENT);
    ReplacedException replaced =
        assertThrows(ReplacedException.class, () -> sent.await(1, Nodes.LONG));
    assertEquals(Optional.empty(), replaced.replacement());
  }

  @Test
  void aReceiptThatComesLateIsNoReplacement() {
    // The server counts the transaction, and has its receipt at the fifth question.
    Ledger late =
        new Ledger(KEY.address()) {
          private int questions;

          @Override
          String receipt(Hash hash) {
            return ++questions < 5 ? "null" : super.receipt(hash);
          }

          @Override
          String block(long number, String params) {
            return questions < 5 ? "null" : super.block(number, params);
          }
        };
    PendingTransaction sent = Scripted.client(late).account(KEY).fees(FEES).send(PAYMENT);
    late.mine();
    assertEquals(sent.hash(), sent.await(1, Nodes.LONG).transactionHash());
  }

  @Test
  void errorsThatPassAreOutlived() {
    Ledger indexing =
        new Ledger(KEY.address()) {
          private int questions;

          @Override
          String receipt(Hash hash) {
            if (++questions < 5) {
              throw new RpcException(-32000, "transaction indexing is in progress", null);
            }
            return super.receipt(hash);
          }
        };
    PendingTransaction sent = Scripted.client(indexing).account(KEY).fees(FEES).send(PAYMENT);
    indexing.mine();
    assertEquals(sent.hash(), sent.await(1, Nodes.LONG).transactionHash());
    Ledger without =
        new Ledger(KEY.address()) {
          @Override
          String receipt(Hash hash) {
            throw new RpcException(-32601, "no such method", null);
          }
        };
    PendingTransaction never = Scripted.client(without).account(KEY).fees(FEES).send(PAYMENT);
    assertThrows(RpcException.class, () -> never.await(1, Nodes.LONG));
  }

  @Test
  void wordsOfAContractAreNoRefusal() {
    Bad bad = new Bad();
    Account me = bad.account();
    bad.then(
        raw -> {
          throw new RpcException(3, "execution reverted: nonce too low", "\"0x\"");
        });
    assertThrows(RevertException.class, () -> me.send(PAYMENT));
    assertEquals(0, nonce(me.send(PAYMENT)));
  }

  @Test
  void aFailureThatNobodyCanExplainIsStillOne() {
    Ledger fails =
        new Ledger(KEY.address()) {
          @Override
          String receipt(Hash hash) {
            return receipt(hash, 1, false);
          }

          @Override
          public String answer(String method, String params) {
            return method.equals("eth_call") ? "\"0x\"" : super.answer(method, params);
          }
        };
    PendingTransaction sent = Scripted.client(fails).account(KEY).fees(FEES).send(PAYMENT);
    RevertException failed = assertThrows(RevertException.class, sent::await);
    assertTrue(failed.getMessage().contains(sent.hash().toString()), failed.getMessage());
    assertTrue(failed.getMessage().contains("out of gas"), failed.getMessage());
  }

  @Test
  void aServerThatIsAwayIsAwaitedUntilTheLimit() {
    Ledger away = new Ledger(KEY.address());
    boolean[] gone = new boolean[1];
    Client eth =
        Scripted.client(
            (method, params) -> {
              if (gone[0]) {
                throw broken();
              }
              return away.answer(method, params);
            });
    PendingTransaction sent = eth.account(KEY).fees(FEES).send(PAYMENT);
    gone[0] = true;
    TransportException late =
        assertThrows(TransportException.class, () -> sent.await(1, Duration.ofMillis(300)));
    assertEquals(Kind.TIMEOUT, late.kind());
    assertTrue(late.getCause() instanceof TransportException);
    gone[0] = false;
    away.mine();
    assertEquals(sent.hash(), sent.await().transactionHash());
    PendingTransaction never = eth.account(KEY).fees(FEES).send(PAYMENT);
    CompletableFuture<Receipt> waiting = never.awaitAsync(1, Nodes.LONG);
    eth.close();
    ExecutionException closed = assertThrows(ExecutionException.class, waiting::get);
    assertEquals(Kind.CLOSED, ((TransportException) closed.getCause()).kind());
  }

  /** A server that does to each transaction what chance says, beside another sender. */
  private static final class Chance extends Ledger {
    private final Random random;
    private final Account stranger;
    private long strangers = 1_000_000;

    Chance(Random random) {
      super(KEY.address());
      this.random = random;
      stranger = Scripted.client(this).account(KEY).fees(FEES).nonces(Nonces.remote());
    }

    @Override
    String take(Bytes raw) {
      if (value(SignedTransaction.decode(raw)) >= 1_000_000) {
        return super.take(raw);
      }
      if (random.nextInt(10) == 0) {
        stranger.send(PAYMENT.value(Wei.of(strangers++)).nonce(super.count(true, "")));
      }
      while (random.nextInt(3) == 0) {
        mine();
      }
      switch (random.nextInt(12)) {
        case 0 -> throw new RpcException(-32000, "insufficient funds for gas", null);
        case 1 -> throw new RpcException(-32005, "limit exceeded", null);
        case 2 -> throw broken();
        case 3 -> throw new TransportException(Kind.TIMEOUT, true, "no answer", null);
        case 4 -> {
          super.take(raw);
          throw broken();
        }
        case 5 -> {
          super.take(raw);
          mine();
          throw broken();
        }
        case 6 -> {
          super.take(raw);
          throw new TransportException(Kind.TIMEOUT, true, "no answer", null);
        }
        default -> {
          return super.take(raw);
        }
      }
    }

    @Override
    long count(boolean pending, String params) {
      return super.count(pending && random.nextInt(8) != 0, params);
    }
  }

  private static long value(SignedTransaction of) {
    return of.transaction().value().toLong();
  }

  @Test
  void nothingIsPaidTwiceAndNoNonceIsLeftOut() {
    Random random = Sets.random();
    for (int round = 0; round < 300; round++) {
      Chance chance = new Chance(random);
      Account me = Scripted.client(chance).account(KEY).fees(FEES).nonces(Nonces.local());
      Map<Long, Hash> taken = new HashMap<>();
      Set<Long> refused = new HashSet<>();
      for (long i = 0; i < 12; i++) {
        try {
          taken.put(i, me.send(PAYMENT.value(Wei.of(i))).hash());
        } catch (TransportException lost) {
          assertTrue(lost.mayHaveRun());
        } catch (RpcException no) {
          refused.add(i);
        }
      }
      // The slow way: each payment is looked for among all.
      List<SignedTransaction> all = new ArrayList<>(chance.mined);
      all.addAll(chance.pool.values());
      for (int nonce = 0; nonce < all.size(); nonce++) {
        assertEquals(nonce, all.get(nonce).transaction().nonce(), "a hole");
      }
      for (long i = 0; i < 12; i++) {
        long payment = i;
        List<SignedTransaction> paid = all.stream().filter(one -> value(one) == payment).toList();
        assertTrue(paid.size() <= 1, "paid twice");
        if (taken.containsKey(i)) {
          assertEquals(taken.get(i), paid.get(0).hash());
        }
        if (refused.contains(i)) {
          assertNotEquals(1, paid.size(), "paid, and said that it is refused");
        }
      }
    }
  }
}
