package deponent.rpc;

import java.time.Duration;

/** Times in nanoseconds since the first use, so that they compare as numbers. */
final class Times {
  private static final long ORIGIN = System.nanoTime();

  /** A day that is not reached: 146 years. */
  static final long NEVER = Long.MAX_VALUE / 2;

  private Times() {}

  static long now() {
    return System.nanoTime() - ORIGIN;
  }

  static long after(long nanos) {
    return Math.min(NEVER, now() + Math.min(nanos, NEVER / 2));
  }

  /** The duration in nanoseconds, at most {@link #NEVER} / 2. */
  static long nanos(Duration duration) {
    return duration.compareTo(Duration.ofNanos(NEVER / 2)) >= 0 ? NEVER / 2 : duration.toNanos();
  }
}
