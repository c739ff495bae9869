package deponent.client;

import static org.junit.jupiter.api.Assertions.fail;

import deponent.eth.JsonReader;
import deponent.rpc.Params;
import deponent.rpc.Provider;
import deponent.rpc.Request;
import deponent.wallet.Mnemonic;
import deponent.wallet.PrivateKey;
import java.io.BufferedReader;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Chains for tests: anvil of {@code DEPONENT_TOOLS}, {@code DEPONENT_BINARY} with {@code dev}. */
final class Nodes {
  /** Longer than any answer takes. */
  static final Duration LONG = Duration.ofSeconds(120);

  private static final Mnemonic PHRASE =
      Mnemonic.of("test test test test test test test test test test test junk");

  private Nodes() {}

  /** The key of a chain's account, from 0 to 9. */
  static PrivateKey key(int index) {
    return PHRASE.key(index);
  }

  /** A test with a chain. */
  interface With {
    void node(Node node) throws Exception;
  }

  /** A chain that runs. */
  static final class Node implements AutoCloseable {
    final boolean isAnvil;
    final int port;
    private final Process process;

    private Node(boolean isAnvil, List<String> command) throws IOException {
      this.isAnvil = isAnvil;
      process = new ProcessBuilder(command).redirectErrorStream(true).start();
      try {
        port = listening(process);
      } catch (IOException failure) {
        close();
        throw failure;
      }
    }

    /** A client over {@code ws} or {@code http}. */
    Client client(String scheme) {
      return Client.of(Provider.at(scheme + "://127.0.0.1:" + port).timeout(LONG).connect());
    }

    boolean isRunning() {
      return process.isAlive();
    }

    /** Stops it, and waits for its end. */
    @Override
    public void close() {
      // npm's programs are scripts that start the node.
      List<ProcessHandle> below = process.descendants().toList();
      below.forEach(ProcessHandle::destroyForcibly);
      below.forEach(one -> one.onExit().join());
      process.destroyForcibly();
      process.onExit().join();
    }
  }

  /** Runs a test with each chain that is there, started with {@code options}. */
  static void each(List<String> options, With test) throws Exception {
    for (boolean anvil : new boolean[] {false, true}) {
      List<String> command = new ArrayList<>();
      Path program =
          anvil
              ? program("anvil", "DEPONENT_TOOLS", "node_modules/.bin/anvil")
              : program("deponent", "DEPONENT_BINARY", "");
      if (program == null) {
        continue;
      }
      command.add(program.toString());
      if (!anvil) {
        command.addAll(List.of("dev", "--quiet"));
      }
      command.addAll(List.of("--port", "0"));
      command.addAll(options);
      try (Node node = new Node(anvil, command)) {
        test.node(node);
      } catch (Throwable failure) {
        failure.addSuppressed(new Exception("with " + program));
        throw failure;
      }
    }
  }

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

  private static int listening(Process process) throws IOException {
    Pattern address = Pattern.compile("127\\.0\\.0\\.1:([0-9]+)");
    BufferedReader lines = process.inputReader(StandardCharsets.UTF_8);
    StringBuilder all = new StringBuilder();
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      all.append(line).append('\n');
      Matcher found = address.matcher(line);
      if (found.find()) {
        Thread.startVirtualThread(() -> drop(lines));
        return Integer.parseInt(found.group(1));
      }
    }
    throw new IOException("the node said:\n" + all);
  }

  /** Reads what a program says, so that it does not wait, up to its end. */
  static void drop(BufferedReader lines) {
    try {
      while (lines.readLine() != null) {
        continue;
      }
    } catch (IOException ended) {
      // The program was stopped.
    }
  }

  /** Asks for something that the client has no method for. */
  static String ask(Client eth, String method, Params params) {
    return eth.request(Request.of(method, params, JsonReader::nextJson));
  }

  /** Mines a block. */
  static void mine(Client eth) {
    ask(eth, "evm_mine", Params.NONE);
  }
}
