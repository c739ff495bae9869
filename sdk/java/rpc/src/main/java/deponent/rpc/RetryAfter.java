package deponent.rpc;

import org.jspecify.annotations.Nullable;

/** The cause of a refusal that says when to come back. */
final class RetryAfter extends Exception {
  private static final long serialVersionUID = 1;

  /** The pause that the server asks for, in nanoseconds. */
  final long nanos;

  RetryAfter(@Nullable String seconds) {
    super(seconds == null ? "no Retry-After" : "Retry-After: " + seconds, null, false, false);
    long pause = 0;
    if (seconds != null && seconds.matches("[0-9]{1,6}")) {
      pause = Long.parseLong(seconds) * 1_000_000_000L;
    }
    nanos = pause;
  }
}
