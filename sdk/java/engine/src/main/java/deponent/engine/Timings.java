package deponent.engine;

import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;

/**
 * The times of a validation, from the header {@code Deponent-Timings}.
 *
 * @param recovery recovering the senders of the transactions
 * @param parent waiting for the parent's state to get its addresses
 * @param execution from the first system call to the beginning of the root
 * @param root the rest of the state root after that
 * @param catchingUp the part of {@code root} until all reads were loaded
 * @param witness putting the witness together, where it was asked for with the verdict
 */
public record Timings(
    Duration recovery,
    Duration parent,
    Duration execution,
    Duration root,
    Duration catchingUp,
    Duration witness) {
  /** Reads the header, whose form is that of Server-Timing; unknown names are ignored. */
  static Optional<Timings> read(String header) {
    Map<String, Duration> times = new HashMap<>();
    for (String part : header.split(",")) {
      String[] pair = part.strip().split(";dur=", 2);
      if (pair.length < 2) {
        continue;
      }
      if (!pair[1].matches("[0-9]{1,9}(\\.[0-9]{1,9})?")) {
        return Optional.empty();
      }
      times.put(pair[0], Duration.ofNanos(Math.round(Double.parseDouble(pair[1]) * 1e6)));
    }
    return Optional.of(
        new Timings(
            times.getOrDefault("recovery", Duration.ZERO),
            times.getOrDefault("parent", Duration.ZERO),
            times.getOrDefault("execution", Duration.ZERO),
            times.getOrDefault("root", Duration.ZERO),
            times.getOrDefault("catching-up", Duration.ZERO),
            times.getOrDefault("witness", Duration.ZERO)));
  }
}
