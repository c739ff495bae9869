package deponent.bench;

import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/**
 * Calls over connections. In each round all contenders take turns at each row, the first of them
 * another one each time. A turn opens a connection, warms it up, is measured, and closes it: a
 * contender disturbs no other one.
 */
final class ConnectionReport {
  private static final int MANY = 100;
  private static final String RAW = "raw socket";
  private static final String BRANE_BLOCKING = "Brane (LITE_BLOCKING)";

  private final int rounds;
  private final long nanos;
  private final Rate rate = Rate.ofEnvironment();
  private final StringBuilder text = new StringBuilder();

  /** What a turn does again and again. */
  private interface Work {
    void run(Contender contender) throws Exception;
  }

  /** Opens a connection. */
  private interface Open {
    Contender open() throws Exception;
  }

  /** A row of the table: the provider, the mode, the calls that its work makes. */
  private record Row(
      String provider, String mode, int calls, Work work, Map<String, Open> contenders) {}

  /** What was measured of a contender in a row. */
  private static final class Cell {
    /** Calls in a second. */
    final Samples speed = new Samples();

    /** Microseconds on a core of this process for each call. */
    final Samples cpu = new Samples();
  }

  /** With its sizes. */
  ConnectionReport(int rounds, long milliseconds) {
    this.rounds = rounds;
    this.nanos = milliseconds * 1_000_000;
  }

  /** Measures with all nodes that are there. */
  ConnectionReport run() throws Exception {
    for (String name : Server.names()) {
      try (Server server = Server.start(name)) {
        measure(server);
      }
    }
    return this;
  }

  /** The tables, in Markdown. */
  String tables() {
    return text.toString();
  }

  private static List<Row> rows(Server server, ExecutorService threads) {
    List<Row> rows = new ArrayList<>();
    Work call = Contender::call;
    Work batch = contender -> contender.batch(MANY);
    Work pipelined = contender -> contender.pipelined(MANY);
    if (server.webSocket() != null) {
      Map<String, Open> all = webSocket(server.webSocket());
      rows.add(new Row("WebSocket", "Sequential", 1, call, all));
      rows.add(new Row("WebSocket", "Batch (100)", MANY, batch, all));
      rows.add(new Row("WebSocket", "Pipelined (100)", MANY, pipelined, all));
    }
    if (server.http() != null) {
      Map<String, Open> all = http(server.http());
      rows.add(new Row("HTTP", "Sequential", 1, call, all));
      Work parallel = contender -> parallel(contender, threads);
      Map<String, Open> clients = new LinkedHashMap<>(all);
      clients.remove(RAW);
      rows.add(new Row("HTTP (Loom)", "Batch (100)", MANY, parallel, clients));
      Map<String, Open> batching = new LinkedHashMap<>(all);
      batching.remove(Library.BRANE);
      rows.add(new Row("HTTP", "JSON-RPC batch (100)", MANY, batch, batching));
    }
    if (server.unix() != null) {
      Map<String, Open> all = unix(server.unix());
      rows.add(new Row("Unix socket", "Sequential", 1, call, all));
      rows.add(new Row("Unix socket", "Batch (100)", MANY, batch, all));
      rows.add(new Row("Unix socket", "Pipelined (100)", MANY, pipelined, all));
    }
    return rows;
  }

  private static Map<String, Open> webSocket(String address) {
    Map<String, Open> all = new LinkedHashMap<>();
    all.put(Library.OURS, () -> Ours.at(address));
    if (Jars.present()) {
      all.put(Library.BRANE, () -> Jars.brane().webSocket(address, false));
      all.put(BRANE_BLOCKING, () -> Jars.brane().webSocket(address, true));
    }
    all.put(Library.WEB3J, () -> Web3j.webSocket(address));
    if (address.startsWith("ws:")) {
      all.put(RAW, () -> Raw.tcp(address));
    }
    return all;
  }

  private static Map<String, Open> http(String address) {
    Map<String, Open> all = new LinkedHashMap<>();
    all.put(Library.OURS, () -> Ours.at(address));
    if (Jars.present()) {
      all.put(Library.BRANE, () -> Jars.brane().http(address));
    }
    all.put(Library.WEB3J, () -> Web3j.http(address));
    if (address.startsWith("http:")) {
      all.put(RAW, () -> Raw.tcp(address));
    }
    return all;
  }

  private static Map<String, Open> unix(String path) {
    Map<String, Open> all = new LinkedHashMap<>();
    all.put(Library.OURS, () -> Ours.at("unix:" + path));
    all.put(Library.WEB3J, () -> Web3j.unix(path));
    all.put(RAW, () -> Raw.unix(path));
    return all;
  }

  /** A hundred calls, each from a virtual thread. */
  private static void parallel(Contender contender, ExecutorService threads) throws Exception {
    List<Future<?>> all = new ArrayList<>(MANY);
    for (int i = 0; i < MANY; i++) {
      all.add(
          threads.submit(
              () -> {
                contender.call();
                return null;
              }));
    }
    for (Future<?> one : all) {
      one.get();
    }
  }

  private void measure(Server server) throws Exception {
    Map<Row, Map<String, Cell>> table = new LinkedHashMap<>();
    try (ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor()) {
      List<Row> rows = rows(server, threads);
      for (int round = 0; round < rounds; round++) {
        for (Row row : rows) {
          Map<String, Cell> cells = table.computeIfAbsent(row, none -> new LinkedHashMap<>());
          List<String> names = new ArrayList<>(row.contenders().keySet());
          for (int i = 0; i < names.size(); i++) {
            String name = names.get((i + round) % names.size());
            turn(row, name, cells.computeIfAbsent(name, none -> new Cell()));
          }
        }
        System.err.println("round " + (round + 1) + " of " + rounds + ": " + server.name());
      }
    }
    text.append("Against ").append(server.name()).append(":\n\n");
    table(table);
    text.append('\n');
  }

  private void turn(Row row, String name, Cell cell) throws Exception {
    try (Contender contender = row.contenders().get(name).open()) {
      repeat(row, contender, nanos / 4, new long[2]);
      long[] measured = new long[2];
      long before = processNanos();
      repeat(row, contender, nanos, measured);
      cell.speed.add(measured[0] * 1e9 / measured[1]);
      cell.cpu.add((processNanos() - before) / 1e3 / measured[0]);
    } catch (IOException | RuntimeException failed) {
      throw new IllegalStateException(
          name + ", " + row.provider() + " " + row.mode() + ": " + failed, failed);
    }
  }

  /** Adds the calls and the nanoseconds that they took; pauses for the rate are not counted. */
  private void repeat(Row row, Contender contender, long most, long[] measured) throws Exception {
    long end = System.nanoTime() + most;
    do {
      rate.await(row.calls());
      long before = System.nanoTime();
      row.work().run(contender);
      measured[1] += System.nanoTime() - before;
      measured[0] += row.calls();
    } while (System.nanoTime() - end < 0);
  }

  private static long processNanos() {
    return ((com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean())
        .getProcessCpuTime();
  }

  private void table(Map<Row, Map<String, Cell>> table) {
    String[] head = {
      "Provider",
      "Mode",
      "Deponent",
      "Latency",
      Library.BRANE,
      BRANE_BLOCKING,
      Library.WEB3J,
      RAW,
      "× Brane",
      "× web3j",
      "of raw",
      "CPU µs a call"
    };
    text.append(Samples.row(head)).append('\n').append(Samples.line(head.length)).append('\n');
    table.forEach((row, cells) -> text.append(row(row, cells)).append('\n'));
  }

  private static String row(Row row, Map<String, Cell> cells) {
    Samples ours = speed(cells, Library.OURS);
    Samples brane = speed(cells, Library.BRANE);
    Samples blocking = speed(cells, BRANE_BLOCKING);
    Samples better = blocking.isEmpty() || brane.median() > blocking.median() ? brane : blocking;
    Samples web3j = speed(cells, Library.WEB3J);
    Samples raw = speed(cells, RAW);
    String latency =
        row.calls() == 1 ? String.format(Locale.ROOT, "%.3f ms", 1e3 / ours.median()) : "–";
    return Samples.row(
        row.provider(),
        row.mode(),
        "**" + shown(ours) + "**",
        latency,
        shown(brane),
        shown(blocking),
        shown(web3j),
        shown(raw),
        ours.over(better).ratio(),
        ours.over(web3j).ratio(),
        ours.over(raw).ratio(),
        cpu(cells));
  }

  /** Of ours, the better Brane, web3j and the raw socket. */
  private static String cpu(Map<String, Cell> cells) {
    List<String> all = new ArrayList<>();
    for (String name : List.of(Library.OURS, Library.BRANE, BRANE_BLOCKING, Library.WEB3J, RAW)) {
      Cell cell = cells.get(name);
      all.add(cell == null ? "–" : Samples.number(cell.cpu.median()));
    }
    return String.join(" / ", all);
  }

  private static Samples speed(Map<String, Cell> cells, String name) {
    Cell cell = cells.get(name);
    return cell == null ? new Samples() : cell.speed;
  }

  private static String shown(Samples samples) {
    return samples.isEmpty()
        ? "–"
        : Samples.number(samples.median())
            + " ("
            + Samples.number(samples.quantile(0))
            + "–"
            + Samples.number(samples.max())
            + ")";
  }
}
