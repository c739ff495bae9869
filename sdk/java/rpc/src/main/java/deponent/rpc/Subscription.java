package deponent.rpc;

import deponent.eth.EthException;
import deponent.eth.JsonReader;
import deponent.eth.MalformedException;
import deponent.eth.ProtocolException;
import deponent.eth.TransportException;
import deponent.eth.TransportException.Kind;
import java.io.UncheckedIOException;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayDeque;
import java.util.Iterator;
import java.util.NoSuchElementException;
import java.util.Optional;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * Values that the server sends by itself. It outlives its connection: when that is there again, the
 * subscription is opened again, and a {@link Notice.Gap} stands for what was missed. Up to 4,096
 * values wait to be taken; then the oldest go, and a gap takes their place.
 *
 * <p>Iterating waits for values, and ends when the subscription or its provider is closed.
 *
 * @param <T> the type of values
 */
public final class Subscription<T> implements AutoCloseable, Iterable<Notice<T>> {
  /** Values that wait at most. */
  private static final int MOST = 4_096;

  final Request<String> open;
  private final Decoder<T> read;
  private final Consumer<Subscription<T>> unsubscribe;
  private final Runnable slow;

  /** Its id at the server now; the connection's. */
  volatile @Nullable String id;

  private final ReentrantLock lock = new ReentrantLock();
  private final Condition arrived = lock.newCondition();
  private final ArrayDeque<Notice<T>> waiting = new ArrayDeque<>();
  private Notice.@Nullable Gap<T> dropped;
  private @Nullable Throwable failure;
  private boolean ended;

  Subscription(
      Request<String> open, Decoder<T> read, Consumer<Subscription<T>> unsubscribe, Runnable slow) {
    this.open = open;
    this.read = read;
    this.unsubscribe = unsubscribe;
    this.slow = slow;
  }

  /** Reads a value; one of another form ends the subscription. */
  void read(JsonReader json) {
    T value;
    try {
      value = read.read(json);
    } catch (UncheckedIOException lost) {
      throw lost;
    } catch (MalformedException other) {
      end(new ProtocolException(open.method() + ": " + other.getMessage(), other));
      return;
    } catch (RuntimeException | Error other) {
      end(other);
      return;
    }
    put(new Notice.Value<>(value));
  }

  private void put(Notice<T> notice) {
    boolean full;
    lock.lock();
    try {
      if (ended) {
        return;
      }
      full = waiting.size() == MOST;
      if (full) {
        waiting.removeFirst();
        if (dropped == null) {
          dropped = new Notice.Gap<>(Instant.now(), "values were not taken in time");
        }
      }
      waiting.add(notice);
      arrived.signal();
    } finally {
      lock.unlock();
    }
    if (full) {
      slow.run();
    }
  }

  void gap(Instant since, String why) {
    put(new Notice.Gap<>(since, why));
  }

  /** Ends it; what waits can be taken still. */
  void end(@Nullable Throwable why) {
    lock.lock();
    try {
      if (!ended) {
        ended = true;
        failure = why;
        arrived.signalAll();
      }
    } finally {
      lock.unlock();
    }
  }

  boolean hasEnded() {
    lock.lock();
    try {
      return ended;
    } finally {
      lock.unlock();
    }
  }

  /**
   * The next value or gap; empty if none comes within {@code atMost}, or if the subscription has
   * ended.
   *
   * @throws deponent.eth.TransportException if the thread is interrupted, which stays set
   * @throws deponent.eth.EthException once, if the server could not open it again or sent a value
   *     of another form
   */
  public Optional<Notice<T>> next(Duration atMost) {
    long left = Times.nanos(atMost);
    lock.lock();
    try {
      while (true) {
        Notice.Gap<T> gap = dropped;
        if (gap != null) {
          dropped = null;
          return Optional.of(gap);
        }
        Notice<T> first = waiting.poll();
        if (first != null) {
          return Optional.of(first);
        }
        Throwable why = failure;
        if (why != null) {
          failure = null;
          if (why instanceof EthException) {
            why.fillInStackTrace();
          }
          throw Call.unchecked(why);
        }
        if (ended || left <= 0) {
          return Optional.empty();
        }
        left = arrived.awaitNanos(left);
      }
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
      throw new TransportException(Kind.TIMEOUT, true, "the thread was interrupted", interrupted);
    } finally {
      lock.unlock();
    }
  }

  @Override
  public Iterator<Notice<T>> iterator() {
    return new Iterator<>() {
      private @Nullable Notice<T> ahead;

      @Override
      public boolean hasNext() {
        if (ahead == null) {
          ahead = Subscription.this.next(Duration.ofNanos(Times.NEVER)).orElse(null);
        }
        return ahead != null;
      }

      @Override
      public Notice<T> next() {
        if (!hasNext()) {
          throw new NoSuchElementException("the subscription has ended");
        }
        Notice<T> next = ahead;
        ahead = null;
        return java.util.Objects.requireNonNull(next);
      }
    };
  }

  /** Ends it here and at the server, whose answer is not awaited. */
  @Override
  public void close() {
    if (!hasEnded()) {
      end(null);
      unsubscribe.accept(this);
    }
  }
}
