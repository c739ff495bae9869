package deponent.rpc;

import java.io.Closeable;
import java.io.IOException;
import org.jspecify.annotations.Nullable;

/** Closes a socket at a deadline, so that whoever blocks on it goes on. */
final class Guard implements Deadlines.Watched, AutoCloseable {
  private volatile long deadline = Times.NEVER;
  private volatile @Nullable Closeable watched;
  private volatile boolean expired;

  private Guard() {}

  static Guard until(long deadline) {
    Guard guard = new Guard();
    Deadlines.add(guard);
    guard.set(deadline);
    return guard;
  }

  /** Sets another deadline. */
  void set(long deadline) {
    this.deadline = deadline;
    Deadlines.due(deadline);
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
    if (deadline > now) {
      return deadline;
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
