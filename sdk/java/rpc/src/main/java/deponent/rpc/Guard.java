package deponent.rpc;

import java.io.Closeable;
import java.io.IOException;
import org.jspecify.annotations.Nullable;

/**
 * Closes a socket at a deadline, or when the thread that set it is interrupted, so that whoever
 * blocks on it goes on.
 */
final class Guard implements Deadlines.Watched, AutoCloseable {
  /** How often an interrupt is looked for, in nanoseconds. */
  private static final long LOOK = 100_000_000L;

  private volatile long deadline = Times.NEVER;

  /** A thread whose interrupt closes the socket; Java does that itself for virtual ones. */
  private volatile @Nullable Thread waits;

  private volatile @Nullable Closeable watched;
  private volatile boolean expired;

  private Guard() {}

  /** A guard for what this thread does up to {@code deadline}. */
  static Guard until(long deadline) {
    Guard guard = new Guard();
    Deadlines.add(guard);
    guard.set(deadline);
    return guard;
  }

  /** Sets another deadline, for what this thread does; none lets go of the thread. */
  void set(long deadline) {
    Thread own = Thread.currentThread();
    boolean looks = deadline != Times.NEVER && !own.isVirtual();
    waits = looks ? own : null;
    this.deadline = deadline;
    Deadlines.due(looks ? Math.min(deadline, Times.now() + LOOK) : deadline);
  }

  void watch(Closeable what) {
    watched = what;
    if (expired) {
      shut(what);
    }
  }

  boolean expired() {
    return expired;
  }

  long remainingNanos() {
    return deadline - Times.now();
  }

  @Override
  public long expire(long now) {
    Thread thread = waits;
    if (deadline > now && (thread == null || !thread.isInterrupted())) {
      return thread == null ? deadline : Math.min(deadline, now + LOOK);
    }
    expired = true;
    shut(watched);
    return Times.NEVER;
  }

  static void shut(@Nullable Closeable what) {
    if (what != null) {
      try {
        what.close();
      } catch (IOException dropped) {
        // It is of no more use.
      }
    }
  }

  @Override
  public void close() {
    Deadlines.remove(this);
  }
}
