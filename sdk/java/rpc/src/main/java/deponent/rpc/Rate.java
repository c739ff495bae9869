package deponent.rpc;

import deponent.eth.TransportException;
import deponent.eth.TransportException.Kind;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;

/** A bound on requests a second, as the time at which the next one may leave (GCRA). */
final class Rate {
  private final double nanosEach;
  private final long burstNanos;
  private final AtomicLong next = new AtomicLong();

  Rate(double perSecond, int burst) {
    nanosEach = 1e9 / perSecond;
    burstNanos = (long) (nanosEach * (burst - 1));
  }

  /** Reserves {@code count} requests, and returns how long to wait. */
  long reserve(int count, long now, long deadline) {
    while (true) {
      long was = next.get();
      long from = Math.max(was, now);
      long wait = Math.max(0, from - burstNanos - now);
      if (now + wait > deadline) {
        throw new TransportException(
            Kind.BUSY, false, "the rate that is set lets it leave after its deadline", null);
      }
      if (next.compareAndSet(was, from + (long) (nanosEach * count))) {
        return wait;
      }
    }
  }

  /** Waits; false if the thread is interrupted. */
  static boolean pause(long nanos) {
    long until = Times.after(nanos);
    for (long left = nanos; left > 0; left = until - Times.now()) {
      if (Thread.currentThread().isInterrupted()) {
        return false;
      }
      LockSupport.parkNanos(left);
    }
    return true;
  }
}
