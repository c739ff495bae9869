package deponent.client;

import deponent.eth.Address;
import deponent.eth.EthException;
import deponent.eth.RpcException;
import deponent.eth.TransportException;
import deponent.eth.TransportException.Kind;
import deponent.rpc.Notice;
import deponent.rpc.Subscription;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/**
 * Tells those who wait for transactions of new heads: one thread for all of a client, which runs
 * while somebody waits. It subscribes to heads, or polls at the chain's pace where it cannot.
 */
final class Heads implements AutoCloseable {
  /** Shortest and longest pause between two questions, in milliseconds. */
  private static final long SHORTEST = 50;

  private static final long LONGEST = 4_000;

  /** Questions for one block of the chain's. */
  private static final int POLLS_A_BLOCK = 3;

  /** How long a subscription may be silent until the head is asked for. */
  private static final Duration SILENCE = Duration.ofSeconds(5);

  private final Client client;
  private final ReentrantLock lock = new ReentrantLock();
  private final Condition changed = lock.newCondition();
  private int watching;
  private boolean running;
  private boolean closed;
  private Tick tick = new Tick(0, -1, null);

  Heads(Client client) {
    this.client = client;
  }

  /** A look at the chain: the head, and what accounts have sent by then. */
  final class Tick {
    private final long place;
    private final long head;
    private final @Nullable EthException failure;
    private final ConcurrentHashMap<Address, CompletableFuture<Long>> counts =
        new ConcurrentHashMap<>();

    private Tick(long place, long head, @Nullable EthException failure) {
      this.place = place;
      this.head = head;
      this.failure = failure;
    }

    /** The head's number, or -1 before one is known. */
    long head() {
      return head;
    }

    /** Why the server does not say it. */
    Optional<EthException> failure() {
      return Optional.ofNullable(failure);
    }

    /** The transactions of an account in the chain: one question for all who wait. */
    long count(Address account) {
      CompletableFuture<Long> mine = new CompletableFuture<>();
      CompletableFuture<Long> first = counts.putIfAbsent(account, mine);
      if (first != null) {
        return Joined.of(first);
      }
      try {
        mine.complete(client.transactionCount(account));
      } catch (RuntimeException failure) {
        mine.completeExceptionally(failure);
      }
      return Joined.of(mine);
    }
  }

  /** Watches the heads until it is closed. */
  Watch watch() {
    lock.lock();
    try {
      check();
      watching++;
      if (!running) {
        running = true;
        Thread.ofVirtual().name("deponent-heads").start(this::run);
      }
      return new Watch(tick);
    } finally {
      lock.unlock();
    }
  }

  private void check() {
    if (closed) {
      throw new TransportException(Kind.CLOSED, false, "the client is closed", null);
    }
  }

  /** One who waits. */
  final class Watch implements AutoCloseable {
    private Tick seen;

    private Watch(Tick seen) {
      this.seen = seen;
    }

    /** The newest look at the chain that was waited for. */
    Tick tick() {
      return seen;
    }

    /** Waits for a newer one; false where the deadline, of {@code nanoTime}, passes before. */
    boolean next(long deadline) {
      lock.lock();
      try {
        while (tick.place == seen.place) {
          check();
          long left = deadline - System.nanoTime();
          if (left <= 0) {
            return false;
          }
          changed.awaitNanos(left);
        }
        check();
        seen = tick;
        return true;
      } catch (InterruptedException interrupted) {
        Thread.currentThread().interrupt();
        throw new TransportException(Kind.TIMEOUT, true, "the thread was interrupted", interrupted);
      } finally {
        lock.unlock();
      }
    }

    @Override
    public void close() {
      lock.lock();
      try {
        watching--;
      } finally {
        lock.unlock();
      }
    }
  }

  private void run() {
    boolean ended = false;
    try {
      while (!(ended = ends())) {
        try (Subscription<BlockHeader> heads = subscribed()) {
          if (heads == null) {
            poll();
          } else {
            follow(heads);
          }
        } catch (EthException lost) {
          tell(-1, lost);
          pause(LONGEST);
        }
      }
    } finally {
      if (!ended) {
        // A fault: the next one who waits begins anew.
        lock.lock();
        running = false;
        lock.unlock();
      }
    }
  }

  /** Whether the thread ends: nobody waits any more. */
  private boolean ends() {
    lock.lock();
    try {
      running = watching > 0 && !closed;
      return !running;
    } finally {
      lock.unlock();
    }
  }

  private boolean wanted() {
    lock.lock();
    try {
      return watching > 0 && !closed;
    } finally {
      lock.unlock();
    }
  }

  /** The subscription to heads, or null where the server has none. */
  private @Nullable Subscription<BlockHeader> subscribed() {
    try {
      return client.subscribe(Eth.newHeads());
    } catch (UnsupportedOperationException | RpcException none) {
      return null;
    }
  }

  private void follow(Subscription<BlockHeader> heads) {
    tell(client.blockNumber(), null);
    while (wanted()) {
      Optional<Notice<BlockHeader>> notice = heads.next(SILENCE);
      // Those that came meanwhile are one look.
      long head = -1;
      while (notice.isPresent()) {
        head = notice.get() instanceof Notice.Value<BlockHeader>(BlockHeader b) ? b.number() : -1;
        notice = heads.next(Duration.ZERO);
      }
      tell(head < 0 ? client.blockNumber() : head, null);
    }
  }

  private void poll() {
    long pause = SHORTEST;
    long head = -1;
    long longest = LONGEST;
    while (wanted()) {
      try {
        long now = client.blockNumber();
        if (head < 0 || now != head) {
          longest = pace(now);
          pause = SHORTEST;
        }
        head = now;
        tell(now, null);
      } catch (EthException failure) {
        tell(-1, failure);
      }
      pause(pause);
      pause = Math.min(longest, pause + pause / 2);
    }
  }

  /** A part of the time between the last two blocks, in milliseconds. */
  private long pace(long head) {
    if (head < 1) {
      return LONGEST;
    }
    Optional<Block> last = client.block(BlockId.of(head));
    Optional<Block> before = client.block(BlockId.of(head - 1));
    if (last.isEmpty() || before.isEmpty()) {
      return LONGEST;
    }
    return pauseOf(last.get().header().timestamp() - before.get().header().timestamp());
  }

  /** The pause between questions, in milliseconds, where blocks are so many seconds apart. */
  static long pauseOf(long seconds) {
    long part = seconds < 0 || seconds > 60 ? LONGEST : seconds * 1_000 / POLLS_A_BLOCK;
    return Math.clamp(part, 5 * SHORTEST, LONGEST);
  }

  private void tell(long head, @Nullable EthException failure) {
    lock.lock();
    try {
      long number = head < 0 ? tick.head : head;
      tick = new Tick(tick.place + 1, number, failure);
      changed.signalAll();
    } finally {
      lock.unlock();
    }
  }

  private void pause(long millis) {
    lock.lock();
    try {
      long left = Duration.ofMillis(millis).toNanos();
      while (left > 0 && !closed) {
        left = changed.awaitNanos(left);
      }
    } catch (InterruptedException never) {
      Thread.currentThread().interrupt();
    } finally {
      lock.unlock();
    }
  }

  /** Fails all who wait. */
  @Override
  public void close() {
    lock.lock();
    try {
      closed = true;
      changed.signalAll();
    } finally {
      lock.unlock();
    }
  }
}
