package deponent.sets;

import static org.junit.jupiter.api.Assertions.fail;

import java.io.BufferedReader;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.function.Predicate;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/** A node that a test starts, ours or geth, in a folder of its own. */
public final class Node implements AutoCloseable {
  private final Process process;
  public final Path folder;

  /** {@code http://} of the Engine API's port. */
  public final String engine;

  /** {@code http://} of the public port. */
  public final String http;

  /** {@code unix:} of the socket. */
  public final String socket;

  public final Path secret;

  private Node(Process process, Path folder, String engine, String http, Path socket, Path secret) {
    this.process = process;
    this.folder = folder;
    this.engine = engine;
    this.http = http;
    this.socket = "unix:" + socket;
    this.secret = secret;
  }

  /** Ours, by {@code DEPONENT_BINARY}; null where there is none. */
  public static Node ours(String genesis) throws IOException {
    String named = System.getenv("DEPONENT_BINARY");
    Path program = named == null ? null : Path.of(named);
    if (program == null || !Files.isExecutable(program)) {
      if (System.getenv("CI") != null) {
        fail("CI needs deponent, by DEPONENT_BINARY (sdk/java/README.md)");
      }
      System.out.println("not run: no deponent, by DEPONENT_BINARY (sdk/java/README.md)");
      return null;
    }
    Path folder = Files.createTempDirectory("engine");
    Path data = folder.resolve("d");
    Files.writeString(folder.resolve("genesis.json"), genesis);
    List<String> command = new ArrayList<>(List.of(program.toString(), "node", "--testing"));
    command.addAll(List.of("--chain", folder.resolve("genesis.json").toString()));
    command.addAll(List.of("--datadir", data.toString(), "--http.port", "0"));
    command.addAll(List.of("--authrpc.port", "0"));
    Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
    List<String> lines = lines(process, line -> line.contains(" ipc="));
    return new Node(
        process,
        folder,
        "http://" + found(lines, " engine=([0-9.:]+)"),
        "http://" + found(lines, " http=([0-9.:]+)"),
        data.resolve("deponent.ipc"),
        data.resolve("jwt.hex"));
  }

  /** geth: {@code GETH}, on the path, or in {@code ~/go/bin}; null where there is none. */
  public static Node geth(String genesis) throws Exception {
    Path program = gethProgram();
    if (program == null) {
      System.out.println(
          "not run: no geth. `go install github.com/ethereum/go-ethereum/cmd/geth@v1.17.8`, or"
              + " name it in GETH");
      return null;
    }
    Path folder = Files.createTempDirectory("geth");
    Path file = Files.writeString(folder.resolve("genesis.json"), genesis);
    Path secret = Files.writeString(folder.resolve("jwt.hex"), "0x" + "2a".repeat(32));
    Path log = folder.resolve("init.log");
    List<String> geth = List.of(program.toString(), "--datadir", folder.resolve("d").toString());
    List<String> init = new ArrayList<>(geth);
    init.addAll(List.of("init", file.toString()));
    Process begins =
        new ProcessBuilder(init).redirectErrorStream(true).redirectOutput(log.toFile()).start();
    if (begins.waitFor() != 0) {
      throw new IOException("geth init: " + Files.readString(log));
    }
    List<String> run = new ArrayList<>(geth);
    run.addAll(List.of("--authrpc.jwtsecret", secret.toString(), "--authrpc.addr", "127.0.0.1"));
    run.addAll(List.of("--authrpc.port", "0", "--port", "0", "--nodiscover", "--maxpeers", "0"));
    run.addAll(List.of("--syncmode", "full", "--http", "--http.port", "0"));
    run.addAll(List.of("--http.api", "eth,debug", "--ipcpath", folder.resolve("s").toString()));
    Process process = new ProcessBuilder(run).redirectErrorStream(true).start();
    Predicate<String> last =
        line -> line.contains("HTTP server started") && line.contains("auth=true");
    List<String> lines = lines(process, last);
    return new Node(
        process,
        folder,
        "http://" + found(lines, "HTTP server started.*endpoint=([0-9.:]+) auth=true"),
        "http://" + found(lines, "HTTP server started.*endpoint=([0-9.:]+) auth=false"),
        folder.resolve("s"),
        secret);
  }

  /** geth with a chain of its own that mines at once, over HTTP and WebSocket; null without it. */
  public static Node gethDev() throws IOException {
    Path program = gethProgram();
    if (program == null) {
      System.out.println("not run: no geth (sdk/java/README.md)");
      return null;
    }
    Path folder = Files.createTempDirectory("geth");
    String modules = "eth,debug,net,web3,txpool";
    List<String> run = new ArrayList<>(List.of(program.toString(), "--dev"));
    run.addAll(List.of("--datadir", folder.resolve("d").toString()));
    run.addAll(List.of("--http", "--http.port", "0", "--http.api", modules));
    run.addAll(List.of("--ws", "--ws.port", "0", "--ws.api", modules));
    run.addAll(List.of("--ipcpath", folder.resolve("s").toString()));
    Process process = new ProcessBuilder(run).redirectErrorStream(true).start();
    List<String> lines = lines(process, line -> line.contains("HTTP server started"));
    String http = "http://" + found(lines, "HTTP server started.*endpoint=([0-9.:]+)");
    return new Node(process, folder, http, http, folder.resolve("s"), folder.resolve("none"));
  }

  private static Path gethProgram() {
    List<String> places = new ArrayList<>();
    if (System.getenv("GETH") != null) {
      places.add(System.getenv("GETH"));
    }
    for (String folder : System.getenv("PATH").split(":")) {
      places.add(folder + "/geth");
    }
    places.add(System.getProperty("user.home") + "/go/bin/geth");
    return places.stream().map(Path::of).filter(Files::isRegularFile).findFirst().orElse(null);
  }

  /** The first lines of a program up to one of them; the others are read and dropped. */
  private static List<String> lines(Process process, Predicate<String> last) throws IOException {
    BufferedReader reader = process.inputReader(StandardCharsets.UTF_8);
    List<String> lines = new ArrayList<>();
    for (String line = reader.readLine(); line != null; line = reader.readLine()) {
      lines.add(line);
      if (last.test(line)) {
        Thread.startVirtualThread(() -> reader.lines().forEach(more -> {}));
        return lines;
      }
    }
    throw new IOException("the node said:\n" + String.join("\n", lines));
  }

  private static String found(List<String> lines, String pattern) throws IOException {
    for (String line : lines) {
      Matcher matcher = Pattern.compile(pattern).matcher(line);
      if (matcher.find()) {
        return matcher.group(1);
      }
    }
    throw new IOException(pattern + " is not in:\n" + String.join("\n", lines));
  }

  /** The public port or the Engine API's over a WebSocket. */
  public static String webSocket(String http) {
    return http.replace("http:", "ws:");
  }

  @Override
  public void close() throws IOException {
    process.destroyForcibly().onExit().join();
    try (Stream<Path> files = Files.walk(folder)) {
      for (Path file : files.sorted(Comparator.reverseOrder()).toList()) {
        Files.deleteIfExists(file);
      }
    }
  }
}
