package deponent.rpc;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;

import deponent.eth.JsonReader;
import deponent.eth.TransportException;
import deponent.eth.TransportException.Kind;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/** Listeners, executors and decoders of the caller that throw or block. */
class CallersFaultsTest {
  private static final Duration LONG = Duration.ofSeconds(60);
  private static final Duration SHORT = Duration.ofMillis(50);

  private static final Request<Long> NUMBER =
      Request.of("eth_blockNumber", Params.NONE, JsonReader::nextQuantity);

  /** A server that reads and never answers. */
  private static Server silent() throws Exception {
    return Server.tcp(
        (peer, n) -> {
          peer.upgrade();
          while (true) {
            peer.text();
          }
        });
  }

  private static Server answering() throws Exception {
    return Server.tcp(
        (peer, n) -> {
          peer.upgrade();
          while (true) {
            String request = peer.text();
            String result = request.contains("_subscribe") ? "\"0x5\"" : "\"0x2a\"";
            peer.send(Server.Peer.result(request, result));
            if (request.contains("_subscribe")) {
              peer.send(
                  "{\"method\":\"a_subscription\",\"params\":"
                      + "{\"subscription\":\"0x5\",\"result\":1}}");
            }
          }
        });
  }

  private static void timesOut(Provider provider) {
    TransportException late =
        assertThrows(TransportException.class, () -> provider.request(NUMBER.timeout(SHORT)));
    assertEquals(Kind.TIMEOUT, late.kind());
  }

  @Test
  void aListenerThatThrowsAnErrorEndsNoDeadlines() throws Exception {
    Listener throwing =
        new Listener() {
          @Override
          public void answered(String method, long nanos, long bytes, Outcome outcome) {
            throw new AssertionError("the listener's");
          }
        };
    try (Server server = silent();
        Provider provider =
            Provider.at(server.at("ws://127.0.0.1")).timeout(LONG).listener(throwing).connect()) {
      timesOut(provider);
      // The thread of deadlines is there still.
      timesOut(provider);
    }
  }

  @Test
  void anExecutorThatRefusesDeliversAllTheSame() throws Exception {
    Executor full =
        what -> {
          throw new IllegalStateException("full");
        };
    try (Server server = silent();
        Server other = answering();
        Provider provider =
            Provider.at(server.at("ws://127.0.0.1")).timeout(LONG).callbacks(full).connect();
        Provider reads =
            Provider.at(other.at("ws://127.0.0.1")).timeout(LONG).callbacks(full).connect()) {
      CompletableFuture<Long> late = provider.requestAsync(NUMBER.timeout(SHORT));
      assertThrows(TransportException.class, () -> joined(late));
      timesOut(provider);
      assertEquals(42, reads.requestAsync(NUMBER).get());
      assertEquals(42, reads.request(NUMBER));
    }
  }

  private static Object joined(CompletableFuture<?> future) throws Throwable {
    try {
      return future.get(LONG.toSeconds(), TimeUnit.SECONDS);
    } catch (java.util.concurrent.ExecutionException failed) {
      throw failed.getCause();
    }
  }

  @Test
  void aCallbackAtADeadlineMayAskAgainWhateverTheExecutor() throws Exception {
    try (Server server = silent();
        Provider provider =
            Provider.at(server.at("ws://127.0.0.1"))
                .timeout(LONG)
                .callbacks(Runnable::run)
                .connect()) {
      CompletableFuture<Long> again =
          provider
              .requestAsync(NUMBER.timeout(SHORT))
              .exceptionally(late -> provider.request(NUMBER.timeout(SHORT)));
      TransportException late = assertThrows(TransportException.class, () -> joined(again));
      assertEquals(Kind.TIMEOUT, late.kind());
    }
  }

  @Test
  void anErrorOfADecoderIsItsCallsAndNotTheConnections() throws Exception {
    AssertionError own = new AssertionError("the decoder's");
    Decoder<Long> throwing =
        json -> {
          throw own;
        };
    Request<Long> request = Request.of("a", Params.NONE, throwing).repeatable();
    Request<String> open = Request.of("a_subscribe", Params.NONE, JsonReader::nextString);
    try (Server server = answering();
        Provider provider = Provider.at(server.at("ws://127.0.0.1")).timeout(LONG).connect()) {
      assertSame(own, assertThrows(AssertionError.class, () -> provider.request(request)));
      assertEquals(42, provider.request(NUMBER));
      try (Subscription<Long> values = provider.subscribe(open, throwing)) {
        assertSame(own, assertThrows(AssertionError.class, () -> values.next(LONG)));
        assertFalse(values.next(LONG).isPresent());
      }
      assertEquals(42, provider.request(NUMBER));
      assertEquals(1, server.accepted.get());
    }
  }
}
