package deponent.testing;

import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** A node's process. */
final class RunningNode {
  private static final Pattern LISTENING = Pattern.compile("Listening on 127\\.0\\.0\\.1:(\\d+)");

  /** How long a node may take to end by itself, in seconds: it removes its files then. */
  private static final int ENDS_SECONDS = 10;

  private static final Path SHELL = Path.of("/bin/sh");

  /**
   * Runs a program, and stops it when this process ends, even if that is killed: its end of the
   * pipe at descriptor 0 closes then. The shell waits for the program, whose id is therefore not
   * given to another one.
   */
  private static final String GUARD =
      """
      exec 3<&0
      "$@" </dev/null 3<&- & node=$!
      (read -r none <&3; kill $node; sleep 5; kill -KILL $node) >/dev/null 2>&1 & guard=$!
      exec 3<&-
      wait $node; code=$?
      kill $guard 2>/dev/null
      exit $code
      """;

  private static final Set<RunningNode> ALL = ConcurrentHashMap.newKeySet();

  static {
    Runtime.getRuntime().addShutdownHook(new Thread(() -> ALL.forEach(RunningNode::stop)));
  }

  private final Path program;
  private final Process process;
  private final NodeLog log = new NodeLog();
  private final CompletableFuture<Integer> listening = new CompletableFuture<>();
  private int port;

  private RunningNode(Path program, Process process) {
    this.program = program;
    this.process = process;
  }

  /**
   * Starts it, and waits until it listens.
   *
   * @throws IllegalStateException if it does not; with what it printed
   */
  static RunningNode start(Path program, List<String> arguments, Duration timeout) {
    List<String> command = new ArrayList<>();
    if (Files.isExecutable(SHELL)) {
      command.addAll(List.of(SHELL.toString(), "-c", GUARD, "sh"));
    }
    command.add(program.toString());
    command.addAll(arguments);
    ProcessBuilder builder = new ProcessBuilder(command).redirectErrorStream(true);
    builder.directory(new File(System.getProperty("java.io.tmpdir")));
    Process process;
    try {
      process = builder.start();
    } catch (IOException no) {
      throw new IllegalStateException(program + " does not start: " + no.getMessage(), no);
    }
    RunningNode node = new RunningNode(program, process);
    ALL.add(node);
    Thread reader = new Thread(node::read, "deponent-testing-log");
    reader.setDaemon(true);
    reader.start();
    try {
      node.await(timeout);
      return node;
    } catch (RuntimeException no) {
      node.stop();
      throw no;
    }
  }

  private void read() {
    try (BufferedReader lines = process.inputReader(StandardCharsets.UTF_8)) {
      for (String line = lines.readLine(); line != null; line = lines.readLine()) {
        Matcher found = LISTENING.matcher(line);
        if (!listening.isDone() && found.find()) {
          // What came before are its settings: keys, and perhaps the address of an endpoint.
          log.clear();
          listening.complete(Integer.parseInt(found.group(1)));
        } else {
          log.add(line);
        }
      }
    } catch (IOException ended) {
      // The node was stopped.
    }
    listening.completeExceptionally(new IOException("it ended"));
  }

  private void await(Duration timeout) {
    try {
      port = listening.get(timeout.toNanos(), TimeUnit.NANOSECONDS);
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
      throw new IllegalStateException("interrupted while " + program + " started", interrupted);
    } catch (TimeoutException late) {
      throw new IllegalStateException(
          program + " does not listen after " + timeout + printed(), late);
    } catch (ExecutionException ended) {
      throw new IllegalStateException(program + " ended at the start" + printed(), ended);
    }
  }

  private String printed() {
    List<String> lines = log.lines();
    return lines.isEmpty() ? "; it printed nothing" : ":\n" + String.join("\n", lines);
  }

  int port() {
    return port;
  }

  List<String> log() {
    return log.lines();
  }

  boolean isAlive() {
    return process.isAlive();
  }

  /** Asks it to end, and ends it if it does not. */
  void stop() {
    ALL.remove(this);
    // The program, and the node that a script of npm has started; the shell ends with them.
    List<ProcessHandle> below = process.descendants().toList();
    below.forEach(ProcessHandle::destroy);
    if (below.isEmpty()) {
      process.destroy();
    }
    boolean interrupted = false;
    try {
      process.waitFor(ENDS_SECONDS, TimeUnit.SECONDS);
    } catch (InterruptedException now) {
      interrupted = true;
    }
    below.forEach(ProcessHandle::destroyForcibly);
    process.destroyForcibly();
    try {
      process.getOutputStream().close();
    } catch (IOException closed) {
      // It has ended.
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
  }
}
