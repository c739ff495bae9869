package deponent.rpc;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import deponent.eth.JsonReader;
import deponent.eth.ProtocolException;
import deponent.eth.RpcException;
import deponent.eth.TransportException;
import deponent.eth.TransportException.Kind;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

/** Several servers, and the rate of one. */
class ManyTest {
  private static final Request<Long> NUMBER =
      Request.of("eth_blockNumber", Params.NONE, JsonReader::nextQuantity).repeatable();

  private static final Request<Long> ONCE =
      Request.of("once", Params.NONE, JsonReader::nextQuantity);

  private static final Duration LONG = Duration.ofSeconds(60);

  private static Server says(String result) throws Exception {
    return Server.tcp(
        (peer, n) -> {
          while (true) {
            String request = peer.body();
            String one = Server.Peer.result(request, result);
            if (result.startsWith("{")) {
              one = "{\"id\":" + Server.Peer.id(request) + ",\"error\":" + result + "}";
            }
            peer.answer(request.startsWith("[") ? "[" + one + "]" : one);
          }
        });
  }

  private static Provider at(Server server) {
    return Provider.at(server.at("http://127.0.0.1")).timeout(LONG).retry(Retry.NONE).connect();
  }

  @Test
  void failOverGoesOnWhereNothingCanHaveRunTwice() throws Exception {
    Server gone = says("\"0x1\"");
    Provider first = at(gone);
    gone.close();
    try (Server drops = Server.tcp((peer, n) -> peer.body());
        Server works = says("\"0x2\"");
        Provider provider = Provider.failover(first, at(works));
        Provider lossy = Provider.failover(at(drops), at(works))) {
      assertEquals(2, provider.request(ONCE));
      assertEquals(2, provider.requestAsync(NUMBER).get());
      Batch batch = provider.batch();
      CompletableFuture<Long> one = batch.add(NUMBER);
      batch.send();
      assertEquals(2, one.get());
      one = batch.add(NUMBER);
      batch.sendAndWait();
      assertEquals(2, one.resultNow());
      TransportException lost = assertThrows(TransportException.class, () -> lossy.request(ONCE));
      assertEquals(Kind.CLOSED, lost.kind());
      assertEquals(2, lossy.request(NUMBER));
      int tried = drops.accepted.get();
      // It is passed over for a while.
      assertEquals(2, lossy.request(NUMBER));
      assertEquals(2, lossy.requestAsync(ONCE).get());
      assertEquals(tried, drops.accepted.get());
    }
    try (Server refuses = says("{\"code\":-32000,\"message\":\"no\"}");
        Server works = says("\"0x2\"");
        Provider provider = Provider.failover(at(refuses), at(works))) {
      assertThrows(RpcException.class, () -> provider.request(NUMBER));
      ExecutionException failed =
          assertThrows(ExecutionException.class, () -> provider.requestAsync(NUMBER).get());
      assertInstanceOf(RpcException.class, failed.getCause());
    }
    try (Server throttles = says("{\"code\":-32005,\"message\":\"slow down\"}");
        Server works = says("\"0x2\"");
        Provider provider = Provider.failover(at(throttles), at(works))) {
      assertEquals(2, provider.request(NUMBER));
      assertEquals(2, provider.request(ONCE));
    }
  }

  /** A WebSocket whose server answers with a number, and drops what may not run twice. */
  private static Server.Script answers(int number) {
    return (peer, n) -> {
      peer.upgrade();
      while (true) {
        String request = peer.text();
        if (request.contains("drop")) {
          return;
        }
        peer.send(Server.Peer.result(request, "\"0x" + number + "\""));
      }
    };
  }

  private static ProviderBuilder webSocket(String address) {
    return Provider.at(address)
        .timeout(LONG)
        .retry(Retry.NONE)
        .reconnect(new Backoff(Duration.ofMillis(5), Duration.ofMillis(20)));
  }

  @Test
  void failOverOverWebSocketBeginsWithOneThatIsDown() throws Exception {
    Server gone = Server.tcp(answers(1));
    String address = gone.at("ws://127.0.0.1");
    gone.close();
    assertThrows(TransportException.class, () -> webSocket(address).connect());
    int port = Integer.parseInt(address.substring(address.lastIndexOf(':') + 1));
    try (Server works = Server.tcp(answers(2));
        Provider second = webSocket(works.at("ws://127.0.0.1")).connect();
        Provider provider = Provider.failover(webSocket(address).connectInBackground(), second)) {
      assertEquals(2, provider.request(ONCE));
      assertEquals(2, provider.requestAsync(ONCE).get());
      Batch batch = provider.batch();
      CompletableFuture<Long> one = batch.add(ONCE);
      batch.send();
      assertEquals(2, one.get());
      // The first one comes up.
      try (Server back = Server.tcp(port, answers(1))) {
        while (provider.request(NUMBER) != 1) {
          Thread.onSpinWait();
        }
        assertEquals(1, back.accepted.get());
      }
      // And goes down: calls do not wait for it to be there again.
      assertEquals(2, provider.request(NUMBER));
    }
  }

  @Test
  void aConnectionInTheBackgroundIsAwaitedUpToTheDeadline() throws Exception {
    Server gone = Server.tcp(answers(1));
    String address = gone.at("ws://127.0.0.1");
    gone.close();
    int port = Integer.parseInt(address.substring(address.lastIndexOf(':') + 1));
    try (Provider provider = webSocket(address).connectInBackground()) {
      TransportException late =
          assertThrows(
              TransportException.class,
              () -> provider.request(ONCE.timeout(Duration.ofMillis(200))));
      assertEquals(Kind.TIMEOUT, late.kind());
      assertTrue(late.getMessage().startsWith("once: there is no connection: ws://127.0.0.1:"));
      assertFalse(late.mayHaveRun());
      CompletableFuture<Long> waits = provider.requestAsync(ONCE);
      try (Server back = Server.tcp(port, answers(1))) {
        assertEquals(1, waits.get());
        assertEquals(1, back.accepted.get());
      }
    }
    Provider never = webSocket(address).connectInBackground();
    CompletableFuture<Long> waits = never.requestAsync(ONCE);
    never.close();
    assertThrows(ExecutionException.class, waits::get);
  }

  @Test
  void aQuorumComparesResultsAndErrors() throws Exception {
    String error = "{\"code\":3,\"message\":\"reverted\",\"data\":\"0x\"}";
    try (Server one = says("\"0x1\"");
        Server same = says("\"0x01\"");
        Server lies = says("\"0x3\"");
        Server fails = says(error);
        Server failsToo = says(error);
        Server drops = Server.tcp((peer, n) -> peer.body())) {
      try (Provider two = Provider.quorum(2, at(one), at(same), at(lies));
          Provider lost = Provider.quorum(2, at(drops), at(one), at(same))) {
        assertEquals(1, two.request(NUMBER));
        assertEquals(1, two.requestAsync(NUMBER).get());
        assertEquals(1, lost.request(NUMBER));
        Batch batch = two.batch();
        CompletableFuture<Long> result = batch.add(NUMBER);
        batch.send();
        assertEquals(1, result.get());
        result = batch.add(NUMBER);
        batch.sendAndWait();
        assertEquals(1, result.resultNow());
      }
      try (Provider all = Provider.quorum(3, at(one), at(same), at(lies))) {
        ProtocolException differ = assertThrows(ProtocolException.class, () -> all.request(NUMBER));
        assertEquals(
            "eth_blockNumber: 2 of 3 servers agree, not 3",
            differ.getMessage().replace("1 of 3", "2 of 3"));
      }
      try (Provider agreed = Provider.quorum(2, at(fails), at(failsToo), at(one))) {
        assertEquals(3, assertThrows(RpcException.class, () -> agreed.request(NUMBER)).code());
      }
    }
    assertThrows(IllegalArgumentException.class, () -> Provider.quorum(1));
    assertThrows(IllegalArgumentException.class, () -> Provider.failover());
  }

  @Test
  void aRateHoldsRequestsBackUpToTheirDeadlines() throws Exception {
    AtomicInteger held = new AtomicInteger();
    Listener listener =
        new Listener() {
          @Override
          public void throttled(String method, long nanos) {
            held.incrementAndGet();
          }
        };
    try (Server server = says("\"0x2\"");
        Provider provider =
            Provider.at(server.at("http://127.0.0.1"))
                .timeout(LONG)
                .rate(20, 5)
                .listener(listener)
                .connect()) {
      long begin = System.nanoTime();
      for (int i = 0; i < 15; i++) {
        assertEquals(2, provider.request(NUMBER));
      }
      assertTrue(System.nanoTime() - begin >= 450_000_000, "10 of 15 wait 50 ms each");
      assertTrue(held.get() > 0);
    }
    Rate rate = new Rate(1, 1);
    assertEquals(0, rate.reserve(1, 0, 0));
    TransportException busy =
        assertThrows(TransportException.class, () -> rate.reserve(1, 0, 999_999_999));
    assertEquals(Kind.BUSY, busy.kind());
    assertEquals(1_000_000_000, rate.reserve(2, 0, Long.MAX_VALUE));
    assertEquals(0, rate.reserve(1, 10_000_000_000L, Long.MAX_VALUE));
  }
}
