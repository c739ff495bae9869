package deponent.micrometer;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import deponent.eth.EthException;
import deponent.eth.JsonReader;
import deponent.eth.RpcException;
import deponent.rpc.Backoff;
import deponent.rpc.Notice;
import deponent.rpc.Params;
import deponent.rpc.Provider;
import deponent.rpc.ProviderBuilder;
import deponent.rpc.Request;
import deponent.rpc.Subscription;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Timer;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.OutputStream;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.channels.Channels;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;

/** Each method of the listener, told by providers with real connections. */
class MeterListenerTest {
  private static final Duration LONG = Duration.ofSeconds(120);
  private static final Pattern ID = Pattern.compile("\"id\":(\\d+)");
  private static final Pattern METHOD = Pattern.compile("\"method\":\"(\\w+)\"");

  private final MeterRegistry registry = new SimpleMeterRegistry();
  private final MeterListener meters = MeterListener.of(registry, "node", "main");

  /** What a connection does with a request. */
  private interface Script {
    /** The answer's members behind the id; none ends the connection. */
    String answer(String method, Connection to) throws Exception;
  }

  private record Connection(int number, OutputStream out) {
    void send(String json) throws IOException {
      out.write((json + "\n").getBytes(StandardCharsets.UTF_8));
      out.flush();
    }
  }

  /** A server on a Unix socket. */
  private static final class Server implements AutoCloseable {
    final Path path = Files.createTempDirectory("micrometer").resolve("s");
    private final ServerSocketChannel listening =
        ServerSocketChannel.open(StandardProtocolFamily.UNIX);

    Server(Script script) throws IOException {
      listening.bind(UnixDomainSocketAddress.of(path));
      Thread.startVirtualThread(
          () -> {
            for (int number = 1; ; number++) {
              try (SocketChannel one = listening.accept()) {
                serve(one, number, script);
              } catch (Exception ended) {
                if (!listening.isOpen()) {
                  return;
                }
              }
            }
          });
    }

    private static void serve(SocketChannel one, int number, Script script) throws Exception {
      BufferedReader lines = new BufferedReader(Channels.newReader(one, StandardCharsets.UTF_8));
      Connection to = new Connection(number, Channels.newOutputStream(one));
      for (String line = lines.readLine(); line != null; line = lines.readLine()) {
        Matcher id = ID.matcher(line);
        Matcher method = METHOD.matcher(line);
        assertTrue(id.find() && method.find(), line);
        String answer = script.answer(method.group(1), to);
        if (answer == null) {
          return;
        }
        if (!answer.isEmpty()) {
          to.send("{\"jsonrpc\":\"2.0\",\"id\":" + id.group(1) + "," + answer + "}");
        }
      }
    }

    @Override
    public void close() throws IOException {
      listening.close();
      Files.deleteIfExists(path);
      Files.deleteIfExists(path.getParent());
    }
  }

  private ProviderBuilder at(Server server) {
    return Provider.at("unix:" + server.path).timeout(LONG).listener(meters);
  }

  private static Request<Long> ask(String method) {
    return Request.of(method, Params.NONE, JsonReader::nextQuantity);
  }

  private Timer requests(String method, String outcome) {
    return registry
        .get("deponent.rpc.requests")
        .tags("node", "main", "method", method, "outcome", outcome)
        .timer();
  }

  private double gauge(String name) {
    return registry.get(name).tags("node", "main").gauge().value();
  }

  @Test
  void requestsAreActiveUntilTheyEnd() throws Exception {
    CountDownLatch seen = new CountDownLatch(1);
    CountDownLatch go = new CountDownLatch(1);
    Script script =
        (method, to) -> {
          seen.countDown();
          go.await();
          return "\"result\":\"0x9\"";
        };
    try (Server server = new Server(script);
        Provider provider = at(server).connect()) {
      assertEquals(0, gauge("deponent.rpc.requests.active"));
      CompletableFuture<Long> answer = provider.requestAsync(ask("held"));
      seen.await();
      assertEquals(1, gauge("deponent.rpc.requests.active"));
      go.countDown();
      assertEquals(9, answer.get());
      assertEquals(0, gauge("deponent.rpc.requests.active"));
    }
  }

  @Test
  void answersAreTimedByMethodAndOutcomeAndMeasured() throws Exception {
    Script script =
        (method, to) ->
            switch (method) {
              case "fails" -> "\"error\":{\"code\":-32000,\"message\":\"no\"}";
              case "sleeps" -> "";
              case "breaks" -> null;
              default -> "\"result\":\"0x9\"";
            };
    try (Server server = new Server(script);
        Provider provider = at(server).connect()) {
      assertEquals(9, provider.request(ask("works")));
      assertEquals(9, provider.request(ask("works")));
      assertThrows(RpcException.class, () -> provider.request(ask("fails")));
      Request<Long> hurried = ask("sleeps").timeout(Duration.ofMillis(1));
      assertThrows(EthException.class, () -> provider.request(hurried));
      assertThrows(EthException.class, () -> provider.request(ask("breaks")));
    }
    assertEquals(2, requests("works", "result").count());
    assertTrue(requests("works", "result").totalTime(TimeUnit.NANOSECONDS) > 0);
    assertEquals(1, requests("fails", "error").count());
    assertEquals(1, requests("sleeps", "timeout").count());
    assertEquals(1, requests("breaks", "failed").count());
    var size = registry.get("deponent.rpc.answer.size").tag("method", "works").summary();
    assertEquals(2, size.count());
    assertTrue(
        size.totalAmount() >= 2 * "{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":\"0x9\"}".length());
    assertEquals(
        0, registry.get("deponent.rpc.answer.size").tag("method", "sleeps").summary().count());
  }

  @Test
  void connectionsAreCountedWhenLostAndDownUntilRestored() throws Exception {
    CountDownLatch again = new CountDownLatch(1);
    Script script =
        (method, to) -> {
          if (to.number == 1) {
            return null;
          }
          again.await();
          return "\"result\":\"0x9\"";
        };
    Backoff soon = new Backoff(Duration.ofMillis(1), Duration.ofMillis(2));
    try (Server server = new Server(script);
        Provider provider = at(server).reconnect(soon).connect()) {
      assertEquals(0, gauge("deponent.rpc.connections.down"));
      CompletableFuture<Long> lost = provider.requestAsync(ask("breaks"));
      assertThrows(ExecutionException.class, lost::get);
      String address = "unix:" + server.path;
      assertEquals(
          1,
          registry.get("deponent.rpc.connections.lost").tag("address", address).counter().count());
      again.countDown();
      assertEquals(9, provider.request(ask("works")));
      // It is told behind the calls that were sent.
      while (gauge("deponent.rpc.connections.down") > 0) {
        Thread.onSpinWait();
      }
      meters.lost("ws://a", new IOException("gone"));
      assertEquals(1, gauge("deponent.rpc.connections.down"));
      meters.restored("ws://a");
      assertEquals(0, gauge("deponent.rpc.connections.down"));
    }
  }

  @Test
  void requestsThatAreHeldBackAreTimed() throws Exception {
    try (Server server = new Server((method, to) -> "\"result\":\"0x9\"");
        Provider provider = at(server).rate(50, 1).connect()) {
      for (int i = 0; i < 5; i++) {
        assertEquals(9, provider.request(ask("often")));
      }
    }
    Timer held = registry.get("deponent.rpc.throttled").tag("method", "often").timer();
    assertTrue(held.count() > 0 && held.totalTime(TimeUnit.NANOSECONDS) > 0);
  }

  @Test
  void droppedValuesAreCounted() throws Exception {
    int over = 3;
    Script script =
        (method, to) -> {
          if (method.equals("eth_subscribe")) {
            return "\"result\":\"0x1\"";
          }
          for (int i = 0; i < 4_096 + over; i++) {
            to.send(
                "{\"jsonrpc\":\"2.0\",\"method\":\"eth_subscription\",\"params\":"
                    + "{\"subscription\":\"0x1\",\"result\":\"0x7\"}}");
          }
          return "\"result\":\"0x9\"";
        };
    Request<String> open =
        Request.of("eth_subscribe", json -> json.value("newHeads"), JsonReader::nextString);
    try (Server server = new Server(script);
        Provider provider = at(server).connect();
        Subscription<Long> heads = provider.subscribe(open, JsonReader::nextQuantity)) {
      assertEquals(9, provider.request(ask("flood")));
      assertEquals(
          over,
          registry.get("deponent.rpc.dropped").tag("method", "eth_subscribe").counter().count());
      assertTrue(heads.next(LONG).orElseThrow() instanceof Notice.Gap<Long>);
    }
  }

  @Test
  void tagsComeInPairs() {
    assertThrows(IllegalArgumentException.class, () -> MeterListener.of(registry, "node"));
  }
}
