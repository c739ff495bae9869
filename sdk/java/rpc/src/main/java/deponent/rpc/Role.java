package deponent.rpc;

import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;

/**
 * Who reads a connection: its own thread, or a caller that waits for its answer and reads it
 * itself, which saves waking one thread by another.
 */
final class Role {
  /** How long the connection's thread stays away after the last bytes came, in nanoseconds. */
  private static final long REST = 100_000_000L;

  private final AtomicReference<@Nullable Thread> holder = new AtomicReference<>();

  /** Whether the connection's thread is to come back. */
  private volatile boolean wanted;

  /** Takes the role; false if another has it. */
  boolean take() {
    return holder.get() == null && holder.compareAndSet(null, Thread.currentThread());
  }

  /** Gives the role to a thread that is about to begin. */
  void give(Thread to) {
    holder.set(to);
  }

  void leave() {
    holder.set(null);
  }

  boolean isMine() {
    return holder.get() == Thread.currentThread();
  }

  boolean isFree() {
    return holder.get() == null;
  }

  /** Sees to it that somebody reads: the one who has the role, or {@code owner}. */
  void want(@Nullable Thread owner) {
    if (!wanted) {
      wanted = true;
    }
    if (holder.get() == null) {
      LockSupport.unpark(owner);
    }
  }

  /** Whether the connection's thread was called back and has not come yet. */
  boolean isWanted() {
    return wanted;
  }

  /** Leaves the role to callers, and takes it back when it is wanted or nobody reads any more. */
  void rest(SockInput in) {
    leave();
    while (true) {
      long left = in.lastRead + REST - Times.now();
      if ((wanted || left <= 0) && take()) {
        wanted = false;
        return;
      }
      // One who reads for long leaves it, or has it for another while.
      LockSupport.parkNanos(this, left <= 0 ? REST : left);
    }
  }
}
