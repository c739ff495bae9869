package deponent.rpc;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import deponent.eth.JsonReader;
import deponent.eth.RpcException;
import deponent.eth.TransportException;
import deponent.eth.TransportException.Kind;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/** Connections that are lost, subscriptions, and what is left behind. */
class LostTest {
  private static final Request<Long> NUMBER =
      Request.of("eth_blockNumber", Params.NONE, JsonReader::nextQuantity).repeatable();

  private static final Request<Long> ONCE =
      Request.of("once", Params.NONE, JsonReader::nextQuantity);

  private static final Request<String> OPEN =
      Request.of("eth_subscribe", json -> json.value("newHeads"), JsonReader::nextString);

  private static final Duration LONG = Duration.ofSeconds(60);

  private static final Backoff QUICK = new Backoff(Duration.ofMillis(10), Duration.ofMillis(50));

  private static ProviderBuilder at(Server server) {
    return Provider.at(server.at("ws://127.0.0.1")).timeout(LONG).reconnect(QUICK);
  }

  private static String value(String id, int number) {
    return "{\"jsonrpc\":\"2.0\",\"method\":\"eth_subscription\",\"params\":{\"subscription\":\""
        + id
        + "\",\"result\":"
        + number
        + "}}";
  }

  /** What listeners are told, as words. */
  private static final class Told implements Listener {
    final BlockingQueue<String> words = new LinkedBlockingQueue<>();

    @Override
    public void requested(String method) {
      words.add("requested " + method);
    }

    @Override
    public void answered(String method, long nanos, long bytes, Outcome outcome) {
      assertTrue(nanos > 0);
      words.add("answered " + method + " " + outcome + (bytes > 0 ? " with bytes" : ""));
    }

    @Override
    public void lost(String address, Throwable why) {
      words.add("lost");
    }

    @Override
    public void restored(String address) {
      words.add("restored");
    }

    @Override
    public void slow(String method) {
      words.add("slow " + method);
      throw new IllegalStateException("a listener's fault is its own");
    }
  }

  @Test
  void aLostConnectionFailsWhatMayHaveRunAndRepeatsReads() throws Exception {
    Told told = new Told();
    Server.Script script =
        (peer, n) -> {
          peer.upgrade();
          if (n == 1) {
            // Both have arrived when it resets.
            peer.text();
            peer.text();
            return;
          }
          while (true) {
            peer.send(Server.Peer.result(peer.text(), "\"0x9\""));
          }
        };
    try (Server server = Server.tcp(script);
        Provider provider = at(server).listener(told).connect()) {
      CompletableFuture<Long> once = provider.requestAsync(ONCE);
      CompletableFuture<Long> read = provider.requestAsync(NUMBER);
      ExecutionException failed = assertThrows(ExecutionException.class, once::get);
      TransportException lost = assertInstanceOf(TransportException.class, failed.getCause());
      assertEquals(Kind.CLOSED, lost.kind());
      assertTrue(lost.mayHaveRun());
      assertEquals(9, read.get());
      assertEquals(9, provider.request(ONCE));
      assertEquals(2, server.accepted.get());
      assertTrue(told.words.contains("lost"));
      assertTrue(told.words.contains("answered once FAILED"));
      assertTrue(told.words.contains("answered eth_blockNumber RESULT with bytes"));
      while (!told.words.take().equals("restored")) {
        // It is told after the calls were sent.
      }
    }
  }

  @Test
  void aSubscriptionOutlivesItsConnectionAndTellsTheGap() throws Exception {
    CountDownLatch drop = new CountDownLatch(1);
    BlockingQueue<String> closes = new LinkedBlockingQueue<>();
    Server.Script script =
        (peer, n) -> {
          peer.upgrade();
          String open = peer.text();
          // The first value comes before the answer.
          peer.send(value("0x" + n, 10 * n));
          peer.send(Server.Peer.result(open, "\"0x" + n + "\""));
          peer.send(value("0x" + n, 10 * n + 1));
          peer.send(value("0x77", 99));
          if (n == 1) {
            drop.await();
            return;
          }
          closes.add(peer.text());
          peer.next();
        };
    try (Server server = Server.tcp(script);
        Provider provider = at(server).connect()) {
      Subscription<Long> values = provider.subscribe(OPEN, JsonReader::nextLong);
      List<String> seen = new ArrayList<>();
      for (Notice<Long> notice : values) {
        switch (notice) {
          case Notice.Value<Long>(Long value) -> seen.add("" + value);
          case Notice.Gap<Long> gap -> {
            assertTrue(gap.why().contains("the connection was lost"), gap.why());
            seen.add("gap");
          }
        }
        if (seen.size() == 2) {
          drop.countDown();
        }
        if (seen.size() == 5) {
          break;
        }
      }
      assertEquals(List.of("10", "11", "gap", "20", "21"), seen);
      values.close();
      String close = closes.take();
      assertTrue(close.contains("\"eth_unsubscribe\",\"params\":[\"0x2\"]"), close);
      assertEquals(Optional.empty(), values.next(LONG));
    }
  }

  @Test
  void aSlowReaderLosesTheOldestValuesAndLearnsOfIt() throws Exception {
    Told told = new Told();
    Server.Script script =
        (peer, n) -> {
          peer.upgrade();
          peer.send(Server.Peer.result(peer.text(), "\"0x1\""));
          for (int i = 0; i < 5_000; i++) {
            peer.send(value("0x1", i));
          }
          peer.send(Server.Peer.result(peer.text(), "\"0x1\""));
          peer.text();
        };
    try (Server server = Server.tcp(script);
        Provider provider = at(server).listener(told).connect()) {
      Subscription<Long> values = provider.subscribe(OPEN, JsonReader::nextLong);
      provider.request(NUMBER);
      assertInstanceOf(Notice.Gap.class, values.next(LONG).orElseThrow());
      for (long i = 5_000 - 4_096; i < 5_000; i++) {
        assertEquals(new Notice.Value<>(i), values.next(LONG).orElseThrow());
      }
      assertEquals(Optional.empty(), values.next(Duration.ZERO));
      assertTrue(told.words.contains("slow eth_subscribe"));
    }
  }

  @Test
  void aSubscriptionThatIsRefusedFails() throws Exception {
    Server.Script script =
        (peer, n) -> {
          peer.upgrade();
          String id = Server.Peer.id(peer.text());
          peer.send("{\"id\":" + id + ",\"error\":{\"code\":-32601,\"message\":\"no\"}}");
          peer.send(Server.Peer.result(peer.text(), "\"0x1\""));
          peer.send(value("0x1", 1).replace(":1}", ":true}"));
          peer.next();
        };
    try (Server server = Server.tcp(script);
        Provider provider = at(server).connect()) {
      assertThrows(RpcException.class, () -> provider.subscribe(OPEN, JsonReader::nextLong));
      assertThrows(
          IllegalArgumentException.class,
          () -> provider.subscribe(NUMBER_ID, JsonReader::nextLong));
      Subscription<Long> values = provider.subscribe(OPEN, JsonReader::nextLong);
      assertThrows(deponent.eth.ProtocolException.class, () -> values.next(LONG));
      assertEquals(Optional.empty(), values.next(LONG));
    }
  }

  private static final Request<String> NUMBER_ID =
      Request.of("eth_blockNumber", Params.NONE, JsonReader::nextString);

  @Test
  void closingEndsWaitersSubscriptionsAndThreads() throws Exception {
    CountDownLatch arrived = new CountDownLatch(2);
    Server.Script script =
        (peer, n) -> {
          peer.upgrade();
          peer.send(Server.Peer.result(peer.text(), "\"0x1\""));
          while (true) {
            peer.text();
            arrived.countDown();
          }
        };
    for (int i = 0; i < 20; i++) {
      try (Server server = Server.tcp(script)) {
        Provider provider = at(server).connect();
        Subscription<Long> values = provider.subscribe(OPEN, JsonReader::nextLong);
        CompletableFuture<Long> future = provider.requestAsync(NUMBER);
        CompletableFuture<TransportException> waiter =
            CompletableFuture.supplyAsync(
                () -> assertThrows(TransportException.class, () -> provider.request(NUMBER)));
        if (i == 0) {
          arrived.await();
        }
        provider.close();
        assertEquals(Kind.CLOSED, waiter.get().kind());
        assertThrows(ExecutionException.class, future::get);
        assertFalse(values.iterator().hasNext());
        assertThrows(TransportException.class, () -> provider.request(NUMBER));
      }
    }
    for (Thread thread : Thread.getAllStackTraces().keySet()) {
      if (thread.getName().startsWith("deponent-")) {
        thread.join(LONG);
        assertFalse(thread.isAlive(), thread.getName());
      }
    }
  }

  @Test
  void closingWhileItConnectsAnewDoesNotWait() throws Exception {
    CountDownLatch second = new CountDownLatch(1);
    Server.Script script =
        (peer, n) -> {
          if (n == 1) {
            peer.upgrade();
            return;
          }
          peer.head();
          second.countDown();
          peer.next();
        };
    try (Server server = Server.tcp(script)) {
      Provider provider = at(server).connect();
      assertTrue(second.await(60, TimeUnit.SECONDS));
      provider.close();
      assertThrows(TransportException.class, () -> provider.request(NUMBER));
    }
  }

  @Test
  void anIdleConnectionTakesNoTimeAndCallsLeaveNothingBehind() throws Exception {
    Server.Script script =
        (peer, n) -> {
          peer.upgrade();
          while (true) {
            peer.send(Server.Peer.result(peer.text(), "\"0x9\""));
          }
        };
    try (Server server = Server.tcp(script);
        Provider provider = at(server).connect()) {
      for (int i = 0; i < 20_000; i++) {
        provider.request(NUMBER);
      }
      long before = live();
      for (int i = 0; i < 50_000; i++) {
        provider.request(NUMBER);
      }
      long left = live() - before;
      assertTrue(left < 500_000, left + " bytes are left of 50,000 calls");
      long cpu = cpuNanos();
      new CountDownLatch(1).await(2, TimeUnit.SECONDS);
      long used = cpuNanos() - cpu;
      assertTrue(used < 20_000_000, used + " ns of CPU in 2 s of idleness");
    }
  }

  private static long live() {
    long least = Long.MAX_VALUE;
    for (int i = 0; i < 4; i++) {
      System.gc();
      Runtime runtime = Runtime.getRuntime();
      least = Math.min(least, runtime.totalMemory() - runtime.freeMemory());
    }
    return least;
  }

  private static long cpuNanos() {
    ThreadMXBean threads = ManagementFactory.getThreadMXBean();
    long nanos = 0;
    for (Thread thread : Thread.getAllStackTraces().keySet()) {
      if (thread.getName().startsWith("deponent-")) {
        nanos += threads.getThreadCpuTime(thread.threadId());
      }
    }
    return nanos;
  }
}
