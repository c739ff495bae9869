package deponent.bench;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.openjdk.jmh.profile.GCProfiler;
import org.openjdk.jmh.results.Result;
import org.openjdk.jmh.results.RunResult;
import org.openjdk.jmh.runner.Runner;
import org.openjdk.jmh.runner.RunnerException;
import org.openjdk.jmh.runner.options.OptionsBuilder;
import org.openjdk.jmh.runner.options.TimeValue;
import org.openjdk.jmh.runner.options.VerboseMode;

/** All operations of all libraries, in rounds: each is measured once in a round. */
final class CpuReport {
  private final int rounds;
  private final TimeValue time;
  private final TimeValue warmUp;
  private final int forks;
  private final Map<String, Map<String, Cell>> table = new LinkedHashMap<>();

  /** What was measured of an operation of a library. */
  private static final class Cell {
    /** Operations in a second on a core. */
    final Samples speed = new Samples();

    /** Bytes that one allocates. */
    final Samples bytes = new Samples();
  }

  /**
   * With its sizes.
   *
   * @param milliseconds how long each of three iterations takes; two of five times that warm up,
   *     without which slow operations would be measured before they are compiled
   * @param forks whether each has a JVM of its own: 1, or 0
   */
  CpuReport(int rounds, long milliseconds, int forks) {
    this.rounds = rounds;
    this.time = TimeValue.milliseconds(milliseconds);
    this.warmUp = TimeValue.milliseconds(5 * milliseconds);
    this.forks = forks;
  }

  /** Measures. */
  CpuReport run() throws RunnerException {
    for (int round = 0; round < rounds; round++) {
      for (String operation : OursOperations.all().keySet()) {
        for (String library : Library.names()) {
          if (Library.operations(library).containsKey(operation)) {
            measure(library, operation);
          }
        }
        System.err.println("round " + (round + 1) + " of " + rounds + ": " + operation);
      }
    }
    return this;
  }

  private void measure(String library, String operation) throws RunnerException {
    String curve = library.equals(Library.BOUNCY_CASTLE) ? "bouncycastle" : "";
    List<String> jvm = new ArrayList<>(List.of("--enable-native-access=ALL-UNNAMED", "-Xmx1g"));
    if (!curve.isEmpty()) {
      jvm.add("-Ddeponent.curve=" + curve);
    }
    OptionsBuilder options = new OptionsBuilder();
    options.include(Cpu.class.getName() + ".run");
    options.param("library", library).param("operation", operation);
    options.forks(forks).jvmArgsAppend(jvm.toArray(String[]::new));
    options.warmupIterations(2).warmupTime(warmUp).measurementIterations(3).measurementTime(time);
    options.addProfiler(GCProfiler.class).addProfiler(CpuTime.class);
    options.verbosity(VerboseMode.SILENT).shouldFailOnError(true);
    Map<String, Map<String, Cell>> into = table;
    for (RunResult result : new Runner(options.build()).run()) {
      Cell cell =
          into.computeIfAbsent(operation, none -> new LinkedHashMap<>())
              .computeIfAbsent(library, none -> new Cell());
      cell.speed.add(1e9 / secondary(result, CpuTime.NAME));
      cell.bytes.add(secondary(result, "gc.alloc.rate.norm"));
    }
  }

  private static double secondary(RunResult result, String name) {
    for (Map.Entry<String, Result> one : result.getSecondaryResults().entrySet()) {
      if (one.getKey().endsWith(name)) {
        return one.getValue().getScore();
      }
    }
    throw new IllegalStateException("JMH has no " + name + ": " + result.getSecondaryResults());
  }

  /** The tables, in Markdown. */
  String tables() {
    StringBuilder text = new StringBuilder();
    String[] head = {
      "Benchmark", "Deponent (ops/s)", "Brane (ops/s)", "web3j (ops/s)", "× Brane", "× web3j"
    };
    text.append(Samples.row(head)).append('\n').append(Samples.line(head.length)).append('\n');
    table.forEach((name, cells) -> text.append(speeds(name, cells, Library.OURS)));
    table.forEach(
        (name, cells) -> {
          if (cells.containsKey(Library.BOUNCY_CASTLE)) {
            text.append(speeds(name + ", BouncyCastle", cells, Library.BOUNCY_CASTLE));
          }
        });
    String[] bytes = {"Benchmark", "Deponent (B/op)", "Brane (B/op)", "web3j (B/op)"};
    text.append('\n').append(Samples.row(bytes)).append('\n');
    text.append(Samples.line(bytes.length)).append('\n');
    table.forEach((name, cells) -> text.append(allocations(name, cells)));
    return text.toString();
  }

  private static String speeds(String name, Map<String, Cell> cells, String ours) {
    Samples own = speed(cells, ours);
    Samples brane = speed(cells, Library.BRANE);
    Samples web3j = speed(cells, Library.WEB3J);
    return Samples.row(
            name,
            shown(own),
            shown(brane),
            shown(web3j),
            own.over(brane).ratio(),
            own.over(web3j).ratio())
        + '\n';
  }

  private static Samples speed(Map<String, Cell> cells, String library) {
    Cell cell = cells.get(library);
    return cell == null ? new Samples() : cell.speed;
  }

  private static String allocations(String name, Map<String, Cell> cells) {
    List<String> row = new ArrayList<>(List.of(name));
    for (String library : List.of(Library.OURS, Library.BRANE, Library.WEB3J)) {
      Cell cell = cells.get(library);
      row.add(cell == null ? "–" : String.format("%,d", Math.round(cell.bytes.median())));
    }
    return Samples.row(row.toArray(String[]::new)) + '\n';
  }

  private static String shown(Samples samples) {
    return samples.isEmpty() ? "–" : Samples.number(samples.median());
  }
}
