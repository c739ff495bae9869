package deponent.rpc;

import java.time.Duration;
import java.util.concurrent.ThreadLocalRandom;

/**
 * How often and when repeatable requests are tried again. The n-th pause is drawn between nothing
 * and {@code first * 2^(n-1)}, at most {@code longest}, and never passes the request's deadline.
 *
 * @param tries tries in all; 1 turns it off
 * @param first the bound of the first pause
 * @param longest the bound of all pauses
 */
public record Retry(int tries, Duration first, Duration longest) {
  /** 4 tries, 0.1 s doubled. */
  public static final Retry DEFAULT = new Retry(4, Duration.ofMillis(100), Duration.ofSeconds(10));

  /** One try. */
  public static final Retry NONE = new Retry(1, Duration.ZERO, Duration.ZERO);

  /** Checks the bounds. */
  public Retry {
    if (tries < 1 || first.isNegative() || longest.isNegative()) {
      throw new IllegalArgumentException("at least one try, and pauses that are not negative");
    }
  }

  long pauseNanos(int tried) {
    double bound = Math.min(longest.toNanos(), first.toNanos() * Math.pow(2, tried - 1));
    return bound < 1 ? 0 : ThreadLocalRandom.current().nextLong((long) bound + 1);
  }
}
