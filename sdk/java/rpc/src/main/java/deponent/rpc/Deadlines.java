package deponent.rpc;

import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/**
 * One thread that sleeps until the earliest deadline of all connections. It lives while one does.
 */
final class Deadlines {
  private static final Set<Watched> ALL = ConcurrentHashMap.newKeySet();
  private static final ReentrantLock LOCK = new ReentrantLock();
  private static final AtomicLong WAKE = new AtomicLong(Times.NEVER);
  private static volatile @Nullable Thread thread;

  /** When one that failed is looked at again, in nanoseconds. */
  private static final long AGAIN = 100_000_000L;

  private Deadlines() {}

  /** Something with deadlines. */
  interface Watched {
    /** Ends what is due at {@code now}, without blocking, and returns the next deadline. */
    long expire(long now);
  }

  static void add(Watched watched) {
    LOCK.lock();
    try {
      ALL.add(watched);
      if (thread == null) {
        thread = Thread.ofPlatform().daemon().name("deponent-deadlines").start(Deadlines::run);
      }
    } finally {
      LOCK.unlock();
    }
    due(Times.now());
  }

  static void remove(Watched watched) {
    ALL.remove(watched);
    if (ALL.isEmpty()) {
      due(Times.now());
    }
  }

  /** Notes a deadline, before which the thread has to look. */
  static void due(long deadline) {
    if (deadline < WAKE.get() && WAKE.getAndAccumulate(deadline, Math::min) > deadline) {
      LockSupport.unpark(thread);
    }
  }

  private static void run() {
    while (true) {
      // Deadlines that are noted from here on lower it again.
      WAKE.set(Times.NEVER);
      long next = Times.NEVER;
      for (Watched watched : ALL) {
        next = Math.min(next, expire(watched));
      }
      WAKE.accumulateAndGet(next, Math::min);
      if (ALL.isEmpty() && ended()) {
        return;
      }
      long pause;
      while ((pause = WAKE.get() - Times.now()) > 0) {
        LockSupport.parkNanos(pause);
      }
    }
  }

  /** A fault of one must not be one of all: it is looked at again. */
  private static long expire(Watched watched) {
    long now = Times.now();
    try {
      return watched.expire(now);
    } catch (RuntimeException | Error fault) {
      return now + AGAIN;
    }
  }

  /** Whether this is the thread that all deadlines depend on, which must not block. */
  static boolean isMine() {
    return Thread.currentThread() == thread;
  }

  private static boolean ended() {
    LOCK.lock();
    try {
      if (ALL.isEmpty()) {
        thread = null;
        return true;
      }
      return false;
    } finally {
      LOCK.unlock();
    }
  }
}
