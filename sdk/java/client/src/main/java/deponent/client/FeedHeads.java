package deponent.client;

import deponent.client.FeedSource.Head;
import deponent.eth.ProtocolException;
import deponent.eth.TransportException;
import deponent.eth.TransportException.Kind;
import deponent.rpc.Notice;
import deponent.rpc.Params;
import deponent.rpc.Provider;
import deponent.rpc.Request;
import deponent.rpc.Subscription;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/**
 * The heads of a chain, as they come: by a subscription, or by polling where there are none.
 *
 * @param <T> the type of the values of the feed that they are for
 */
final class FeedHeads<T> implements AutoCloseable {
  /** Pauses between polls, in nanoseconds: they grow while no block comes. */
  private static final long FIRST_POLL = 250_000_000;

  private static final long LONGEST_POLL = 2_000_000_000;

  /** A subscription that is silent for so long is not relied on. */
  private static final long SILENCE = 30_000_000_000L;

  private final Provider provider;
  private final FeedSource<T> source;
  private final ReentrantLock lock = new ReentrantLock();
  private final Condition ended = lock.newCondition();
  private @Nullable Subscription<Head<T>> subscription;
  private final boolean polls;
  private boolean closed;
  private long poll = FIRST_POLL;
  private @Nullable Head<T> last;

  /** Subscribes, where the provider can. */
  FeedHeads(Provider provider, FeedSource<T> source) {
    this.provider = provider;
    this.source = source;
    boolean cannot = false;
    try {
      subscription = subscribe();
    } catch (UnsupportedOperationException none) {
      cannot = true;
    }
    polls = cannot;
  }

  private Subscription<Head<T>> subscribe() {
    Params newHeads = json -> json.value("newHeads");
    Request<String> open =
        Request.of("eth_subscribe", newHeads, deponent.eth.JsonReader::nextString);
    return provider.subscribe(open, source::read);
  }

  /** Asks for the head. */
  Request<Head<T>> latest() {
    return block(BlockId.LATEST);
  }

  /** Asks for a block that has to be there. */
  Request<Head<T>> block(BlockId block) {
    return Request.of("eth_getBlockByNumber", params(block), source::read).repeatable();
  }

  /** Asks for the block of a number, which may be gone. */
  Request<@Nullable Head<T>> blockOrNull(long number) {
    return Request.<@Nullable Head<T>>of(
            "eth_getBlockByNumber",
            params(BlockId.of(number)),
            json -> json.nextNull() ? null : source.read(json))
        .repeatable();
  }

  private static Params params(BlockId block) {
    return json -> {
      block.write(json);
      json.value(false);
    };
  }

  /** The newest head; null if none comes in time. */
  @Nullable Head<T> next(long nanos, FeedSource.Asker asker) {
    long deadline = System.nanoTime() + nanos;
    while (true) {
      long left = deadline - System.nanoTime();
      Head<T> head = polls ? polled(left, asker) : subscribed(left, asker);
      if (head != null) {
        return head;
      }
      if (deadline - System.nanoTime() <= 0 || isClosed()) {
        return null;
      }
    }
  }

  private @Nullable Head<T> polled(long nanos, FeedSource.Asker asker) {
    if (!pause(Math.min(nanos, poll))) {
      return null;
    }
    Head<T> head = asker.ask(latest());
    boolean same = last != null && last.hash().equals(head.hash());
    poll = same ? Math.min(LONGEST_POLL, poll * 3 / 2) : FIRST_POLL;
    last = head;
    return same ? null : head;
  }

  private @Nullable Head<T> subscribed(long nanos, FeedSource.Asker asker) {
    Subscription<Head<T>> open = opened();
    if (open == null) {
      return null;
    }
    Head<T> head = null;
    boolean missed = false;
    long wait = Math.max(0, Math.min(nanos, SILENCE));
    long begun = System.nanoTime();
    try {
      Optional<Notice<Head<T>>> notice = open.next(Duration.ofNanos(wait));
      boolean silent = notice.isEmpty() && wait == SILENCE;
      if (notice.isEmpty() && System.nanoTime() - begun < wait) {
        renew(open);
        silent = true;
      }
      while (notice.isPresent()) {
        if (notice.get() instanceof Notice.Value<Head<T>>(Head<T> value)) {
          head = value;
          missed = false;
        } else {
          missed = true;
        }
        notice = open.next(Duration.ZERO);
      }
      if (!missed && !silent) {
        return head;
      }
    } catch (TransportException | ProtocolException failure) {
      if (Thread.currentThread().isInterrupted()) {
        throw failure;
      }
      renew(open);
    }
    return asker.ask(latest());
  }

  /** The subscription; null after closing. */
  private @Nullable Subscription<Head<T>> opened() {
    lock.lock();
    try {
      return closed ? null : subscription;
    } finally {
      lock.unlock();
    }
  }

  /** Opens a subscription again that the server ended. */
  private void renew(Subscription<Head<T>> old) {
    if (isClosed()) {
      return;
    }
    old.close();
    Subscription<Head<T>> renewed = subscribe();
    lock.lock();
    try {
      if (!closed) {
        subscription = renewed;
        return;
      }
    } finally {
      lock.unlock();
    }
    renewed.close();
  }

  private boolean isClosed() {
    lock.lock();
    try {
      return closed;
    } finally {
      lock.unlock();
    }
  }

  /** Waits; false if it is closed meanwhile. */
  boolean pause(long nanos) {
    lock.lock();
    try {
      long left = nanos;
      while (!closed && left > 0) {
        left = ended.awaitNanos(left);
      }
      return !closed;
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
      throw new TransportException(Kind.TIMEOUT, true, "the thread was interrupted", interrupted);
    } finally {
      lock.unlock();
    }
  }

  @Override
  public void close() {
    Subscription<Head<T>> open;
    lock.lock();
    try {
      closed = true;
      open = subscription;
      ended.signalAll();
    } finally {
      lock.unlock();
    }
    if (open != null) {
      open.close();
    }
  }
}
