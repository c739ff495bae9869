package deponent.rpc;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assertions.fail;

import deponent.eth.JsonReader;
import java.io.BufferedReader;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.FutureTask;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;

/** Real nodes: anvil of {@code DEPONENT_TOOLS}, and the program of {@code DEPONENT_BINARY}. */
class NodesTest {
  private static final Duration LONG = Duration.ofSeconds(120);

  private static final Request<Long> NUMBER =
      Request.of("eth_blockNumber", Params.NONE, JsonReader::nextQuantity).repeatable();

  private static final Request<Long> CHAIN =
      Request.of("eth_chainId", Params.NONE, JsonReader::nextQuantity);

  private static final Request<Boolean> MINE =
      Request.of(
          "evm_mine",
          Params.NONE,
          json -> {
            json.skipValue();
            return true;
          });

  private static Path program(String name, String variable, String below) {
    String folder = System.getenv(variable);
    Path program = folder == null ? null : Path.of(folder).resolve(below);
    if (program != null && Files.isExecutable(program)) {
      return program;
    }
    if (System.getenv("CI") != null) {
      fail("CI needs " + name + ", by " + variable + " (sdk/java/README.md)");
    }
    System.out.println("not run: no " + name + ", by " + variable + " (sdk/java/README.md)");
    return null;
  }

  private interface With {
    void port(int port) throws Exception;
  }

  /** Starts a node that says where it listens, and stops it. */
  private static void node(List<String> command, With test) throws Exception {
    Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
    try {
      test.port(port(process));
    } finally {
      // npm's programs are scripts that start the node.
      process.descendants().forEach(ProcessHandle::destroyForcibly);
      process.destroyForcibly().waitFor();
    }
  }

  private static int port(Process process) throws IOException {
    Pattern address = Pattern.compile("127\\.0\\.0\\.1:([0-9]+)");
    BufferedReader lines = process.inputReader(StandardCharsets.UTF_8);
    StringBuilder all = new StringBuilder();
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      all.append(line).append('\n');
      Matcher found = address.matcher(line);
      if (found.find()) {
        Thread.startVirtualThread(() -> lines.lines().forEach(more -> {}));
        return Integer.parseInt(found.group(1));
      }
    }
    throw new IOException("the node said:\n" + all);
  }

  @Test
  void anvilAnswersOverWebSocketHttpAndUnixSocket() throws Exception {
    Path anvil = program("anvil", "DEPONENT_TOOLS", "node_modules/.bin/anvil");
    if (anvil == null) {
      return;
    }
    Path socket = Files.createTempDirectory("anvil").resolve("ipc");
    List<String> command = List.of(anvil.toString(), "--port", "0", "--ipc", socket.toString());
    node(
        command,
        port -> {
          check("ws://127.0.0.1:" + port);
          check("http://127.0.0.1:" + port);
          check("unix:" + socket);
        });
    Files.deleteIfExists(socket);
    Files.deleteIfExists(socket.getParent());
  }

  @Test
  void deponentDevAnswersOverWebSocketHttpAndUnixSocket() throws Exception {
    Path deponent = program("deponent", "DEPONENT_BINARY", "");
    if (deponent == null) {
      return;
    }
    Path socket = Files.createTempDirectory("deponent").resolve("ipc");
    String program = deponent.toString();
    node(
        List.of(program, "dev", "--quiet", "--port", "0", "--ipc", socket.toString()),
        port -> {
          check("ws://127.0.0.1:" + port);
          check("http://127.0.0.1:" + port);
          check("unix:" + socket);
        });
    Files.deleteIfExists(socket);
    Files.deleteIfExists(socket.getParent());
  }

  @Test
  void aNodeThatIsKilledAndComesBackIsFoundAgain() throws Exception {
    Path deponent = program("deponent", "DEPONENT_BINARY", "");
    if (deponent == null) {
      return;
    }
    List<String> command = List.of(deponent.toString(), "dev", "--quiet", "--port");
    List<String> again = new ArrayList<>(command);
    List<Provider> providers = new ArrayList<>();
    List<Subscription<Long>> all = new ArrayList<>();
    Request<String> open =
        Request.of("eth_subscribe", json -> json.value("newHeads"), JsonReader::nextString);
    List<String> first = new ArrayList<>(command);
    first.add("0");
    node(
        first,
        port -> {
          Backoff quick = new Backoff(Duration.ofMillis(20), Duration.ofMillis(200));
          Provider provider =
              Provider.at("ws://127.0.0.1:" + port).timeout(LONG).reconnect(quick).connect();
          providers.add(provider);
          all.add(provider.subscribe(open, NodesTest::number));
          again.add("" + port);
        });
    try (Provider provider = providers.get(0)) {
      // Both kinds of call wait for the node.
      CompletableFuture<Long> future = provider.requestAsync(CHAIN.repeatable());
      FutureTask<Long> caller = new FutureTask<>(() -> provider.request(NUMBER));
      Thread.startVirtualThread(caller);
      node(
          again,
          port -> {
            assertEquals(31337, future.get());
            assertEquals(0, caller.get());
            assertInstanceOf(Notice.Gap.class, all.get(0).next(LONG).orElse(null));
            assertTrue(provider.request(MINE));
            assertEquals(new Notice.Value<>(1L), all.get(0).next(LONG).orElse(null));
          });
    }
  }

  private static void check(String address) throws Exception {
    try (Provider provider = Provider.at(address).timeout(LONG).connect()) {
      assertEquals(31337, provider.request(CHAIN));
      Batch batch = provider.batch();
      List<CompletableFuture<Long>> hundred = new ArrayList<>();
      for (int i = 0; i < 100; i++) {
        hundred.add(batch.add(CHAIN));
      }
      batch.send();
      for (CompletableFuture<Long> one : hundred) {
        assertEquals(31337, one.get());
      }
      try (ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor()) {
        List<Future<Long>> results = new ArrayList<>();
        for (int i = 0; i < 10_000; i++) {
          results.add(threads.submit(() -> provider.request(CHAIN)));
        }
        for (Future<Long> one : results) {
          assertEquals(31337, one.get());
        }
      }
      List<CompletableFuture<Long>> futures = new ArrayList<>();
      for (int i = 0; i < 1_000; i++) {
        futures.add(provider.requestAsync(CHAIN));
      }
      for (CompletableFuture<Long> one : futures) {
        assertEquals(31337, one.get());
      }
      if (!address.startsWith("http")) {
        heads(provider);
      }
    }
  }

  private static void heads(Provider provider) {
    Request<String> open =
        Request.of("eth_subscribe", json -> json.value("newHeads"), JsonReader::nextString);
    try (Subscription<Long> heads = provider.subscribe(open, NodesTest::number)) {
      long head = provider.request(NUMBER);
      for (int i = 1; i <= 3; i++) {
        assertTrue(provider.request(MINE));
        Notice<Long> next = heads.next(LONG).orElse(null);
        assertNotNull(next, "no head");
        assertEquals(new Notice.Value<>(head + i), next);
      }
    }
  }

  private static long number(JsonReader json) {
    long number = -1;
    json.beginObject();
    while (json.hasNext()) {
      if (json.nextName().equals("number")) {
        number = json.nextQuantity();
      } else {
        json.skipValue();
      }
    }
    json.endObject();
    return number;
  }
}
