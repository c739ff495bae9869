package deponent.bench;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/** Measures, and prints the tables of the report. */
public final class Report {
  private Report() {}

  /**
   * Measures {@code all}, {@code cpu} or {@code connections}.
   *
   * @param arguments the part, the number of rounds, and the milliseconds of a turn
   */
  public static void main(String[] arguments) throws Exception {
    String part = arguments[0];
    if (!List.of("all", "cpu", "connections").contains(part)) {
      throw new IllegalArgumentException("all, cpu or connections, not " + part);
    }
    int rounds = Integer.parseInt(arguments[1]);
    long millis = Long.parseLong(arguments[2]);
    System.out.println(machine(rounds, millis));
    if (!part.equals("connections")) {
      System.out.println(new CpuReport(rounds, millis, 1).run().tables());
    }
    if (!part.equals("cpu")) {
      System.out.println(new ConnectionReport(rounds, millis).run().tables());
    }
  }

  private static String machine(int rounds, long millis) throws IOException {
    String cpu = "unknown";
    Path info = Path.of("/proc/cpuinfo");
    if (Files.isReadable(info)) {
      for (String line : Files.readAllLines(info)) {
        if (line.startsWith("model name")) {
          cpu = line.substring(line.indexOf(':') + 1).trim();
        }
      }
    }
    double load =
        java.lang.management.ManagementFactory.getOperatingSystemMXBean().getSystemLoadAverage();
    return String.format(
        "%d cores of %s, load %.1f; Java %s (%s); %d rounds of %d ms; keys by %s%n",
        Runtime.getRuntime().availableProcessors(),
        cpu,
        load,
        Runtime.version(),
        System.getProperty("java.vendor"),
        rounds,
        millis,
        deponent.wallet.Recovery.library());
  }
}
