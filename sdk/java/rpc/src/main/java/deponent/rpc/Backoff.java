package deponent.rpc;

import java.time.Duration;
import java.util.concurrent.ThreadLocalRandom;

/**
 * The pauses between tries to connect anew. The n-th is drawn between half of and all of {@code
 * first * 2^(n-1)}, at most {@code longest}.
 *
 * @param first the bound of the first pause
 * @param longest the bound of all pauses
 */
public record Backoff(Duration first, Duration longest) {
  /** 0.1 s doubled up to 30 s. */
  public static final Backoff DEFAULT = new Backoff(Duration.ofMillis(100), Duration.ofSeconds(30));

  /** Checks the bounds. */
  public Backoff {
    if (first.isNegative() || first.isZero() || longest.compareTo(first) < 0) {
      throw new IllegalArgumentException(
          "the first pause is positive, and the longest not shorter");
    }
  }

  long pauseNanos(int tried) {
    double bound = Math.min(longest.toNanos(), first.toNanos() * Math.pow(2, tried - 1));
    return (long) (bound * (0.5 + ThreadLocalRandom.current().nextDouble() / 2));
  }
}
