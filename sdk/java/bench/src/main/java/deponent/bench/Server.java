package deponent.bench;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * A node that answers.
 *
 * @param name its name in reports
 * @param webSocket its address by WebSocket, or none
 * @param http its address by HTTP, or none
 * @param unix the path of its Unix socket, or none
 */
record Server(
    String name,
    @Nullable String webSocket,
    @Nullable String http,
    @Nullable String unix,
    @Nullable Process process,
    @Nullable Path folder)
    implements AutoCloseable {
  private static final Pattern ADDRESS = Pattern.compile("127\\.0\\.0\\.1:([0-9]+)");

  /** How a node is started. */
  private enum Node {
    ANVIL("anvil", ADDRESS),
    GETH("geth", Pattern.compile("HTTP server started +endpoint=127\\.0\\.0\\.1:([0-9]+)")),
    DEPONENT("deponent dev", ADDRESS);

    final String name;
    final Pattern port;

    Node(String name, Pattern port) {
      this.name = name;
      this.port = port;
    }

    @Nullable Path program() {
      return switch (this) {
        case ANVIL -> under("DEPONENT_TOOLS", "node_modules/.bin/anvil");
        case DEPONENT -> under("DEPONENT_BINARY", "");
        case GETH -> geth();
      };
    }

    private static @Nullable Path under(String variable, String below) {
      String root = System.getenv(variable);
      Path program = root == null ? null : Path.of(root).resolve(below);
      return program != null && Files.isExecutable(program) ? program : null;
    }

    private static @Nullable Path geth() {
      Path named = under("GETH", "");
      if (named != null) {
        return named;
      }
      List<String> folders = new ArrayList<>(List.of(System.getenv("PATH").split(":")));
      folders.add(System.getProperty("user.home") + "/go/bin");
      return folders.stream()
          .map(folder -> Path.of(folder, "geth"))
          .filter(Files::isExecutable)
          .findFirst()
          .orElse(null);
    }

    List<String> command(Path program, Path folder, Path socket) {
      String path = program.toString();
      return switch (this) {
        case ANVIL -> List.of(path, "--port", "0", "--ipc", socket.toString());
        case DEPONENT -> List.of(path, "dev", "--quiet", "--port", "0", "--ipc", socket.toString());
        // Brane sends an Origin, which nobody asked it for.
        case GETH ->
            List.of(
                (path
                        + " --dev --http --http.port 0 --ws --ws.port 0 --ws.origins * --port 0"
                        + " --authrpc.port 0 --nodiscover --maxpeers 0 --ipcpath "
                        + socket)
                    .split(" "));
      };
    }
  }

  /** The nodes whose programs are there; {@code DEPONENT_BENCH_URL} alone where it is set. */
  static List<String> names() {
    if (url() != null) {
      return List.of("DEPONENT_BENCH_URL");
    }
    return Stream.of(Node.values())
        .filter(node -> node.program() != null)
        .map(node -> node.name)
        .toList();
  }

  private static @Nullable String url() {
    String url = System.getenv("DEPONENT_BENCH_URL");
    return url == null || url.isEmpty() ? null : url;
  }

  /** Starts the node of a name. */
  static Server start(String name) throws IOException {
    String url = url();
    if (url != null) {
      boolean http = url.startsWith("http");
      return new Server(name, http ? null : url, http ? url : null, null, null, null);
    }
    Node node =
        Stream.of(Node.values()).filter(one -> one.name.equals(name)).findFirst().orElseThrow();
    Path program = node.program();
    if (program == null) {
      throw new IOException("there is no " + name);
    }
    Path folder = Files.createTempDirectory("bench");
    Path socket = folder.resolve("ipc");
    ProcessBuilder command = new ProcessBuilder(node.command(program, folder, socket));
    command.environment().putAll(Map.of("RUST_LOG", "off"));
    Process process = command.redirectErrorStream(true).start();
    Server server = new Server(name, null, null, socket.toString(), process, folder);
    try {
      int port = port(process, node.port);
      String ws = "ws://127.0.0.1:" + port;
      String http = "http://127.0.0.1:" + port;
      return new Server(name, ws, http, socket.toString(), process, folder);
    } catch (IOException failed) {
      server.close();
      throw failed;
    }
  }

  private static int port(Process process, Pattern pattern) throws IOException {
    BufferedReader lines = process.inputReader(StandardCharsets.UTF_8);
    StringBuilder all = new StringBuilder();
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      all.append(line).append('\n');
      Matcher found = pattern.matcher(line);
      if (found.find()) {
        Thread.startVirtualThread(() -> lines.lines().forEach(more -> {}));
        return Integer.parseInt(found.group(1));
      }
    }
    throw new IOException("the node said:\n" + all);
  }

  /** Stops it. */
  @Override
  public void close() {
    try {
      if (process != null) {
        // npm's programs are scripts that start the node.
        process.descendants().forEach(ProcessHandle::destroyForcibly);
        process.destroyForcibly().waitFor();
      }
      if (folder != null) {
        try (Stream<Path> files = Files.walk(folder)) {
          for (Path file : files.sorted(Comparator.reverseOrder()).toList()) {
            Files.deleteIfExists(file);
          }
        }
      }
    } catch (IOException unread) {
      throw new UncheckedIOException(unread);
    } catch (InterruptedException stop) {
      Thread.currentThread().interrupt();
    }
  }
}
