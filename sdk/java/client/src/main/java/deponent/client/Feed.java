package deponent.client;

import deponent.client.FeedSource.Head;
import deponent.eth.EthException;
import deponent.eth.ProtocolException;
import deponent.eth.RpcException;
import deponent.eth.TransportException;
import deponent.eth.TransportException.Kind;
import deponent.rpc.Batch;
import deponent.rpc.Provider;
import deponent.rpc.Request;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.NoSuchElementException;
import java.util.Optional;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/**
 * The values of a chain's blocks, from one block on: those that are there already, and then those
 * that come. It outlives its connection. What was added of a block that left the chain is removed,
 * the last first.
 *
 * <p>A feed has no thread of its own: it asks the server when the next update is asked for, and so
 * goes no faster than they are taken. It knows 1,024 blocks with values and 100,000 values back,
 * for those that leave; beyond that, and for blocks that the server has no more, there is a {@link
 * Update.Gap}. New blocks come by a subscription, over HTTP by polling every quarter of a second to
 * two seconds.
 *
 * <pre>{@code
 * try (Feed<Log> feed = eth.follow(LogFilter.of(transfer).from(token).fromBlock(23_000_000))) {
 *   for (Update<Log> update : feed) {
 *     switch (update) {
 *       case Added<Log>(Log log) -> book(log);
 *       case Removed<Log>(Log log) -> unbook(log);
 *       case Gap<Log>(long from, long to, String why) -> rebuild(from, to);
 *     }
 *   }
 * }
 * }</pre>
 *
 * @param <T> the type of values
 */
public final class Feed<T> implements AutoCloseable, Iterable<Update<T>> {
  private static final int NO_METHOD = -32601;
  private static final Duration FOREVER = Duration.ofDays(36_500);

  /** Pauses after a connection broke, in nanoseconds. */
  private static final long FIRST_PAUSE = 50_000_000;

  private static final long LONGEST_PAUSE = 5_000_000_000L;

  /** Blocks of the first range at most. */
  private static final int FIRST_SPAN = 200;

  /** After so many ranges longer ones are tried again. */
  private static final int TRIED_AGAIN = 16;

  /** A block that the server told of and then refuses is asked for so many times. */
  private static final int REFUSALS = 8;

  private final Provider provider;
  private final FeedSource<T> source;
  private final FeedHeads<T> heads;
  private final FeedChain<T> chain;
  private final Asking asker = new Asking();

  /** One thread at a time goes on. */
  private final ReentrantLock reading = new ReentrantLock();

  /** The block that is gone to; null where the next one is waited for. */
  private @Nullable Head<T> goal;

  /** Whether that block may have left the chain. */
  private boolean doubted;

  /** Blocks of the next range, and of those that come. */
  private long span;

  private long ceiling;

  /** Ranges since the last one that was refused. */
  private int taken;

  private long pause = FIRST_PAUSE;
  private int refusals;
  private volatile boolean closed;

  private Feed(
      Provider provider, FeedSource<T> source, FeedHeads<T> heads, FeedChain<T> chain, Head<T> at) {
    this.provider = provider;
    this.source = source;
    this.heads = heads;
    this.chain = chain;
    this.span = Math.min(FIRST_SPAN, source.longest());
    this.ceiling = source.longest();
    this.goal = at;
  }

  /** Begins at a block; behind the head where there is none. */
  static <T> Feed<T> open(Provider provider, FeedSource<T> source, @Nullable BlockId from) {
    return open(provider, source, from, FeedChain.BLOCKS, FeedChain.VALUES);
  }

  static <T> Feed<T> open(
      Provider provider, FeedSource<T> source, @Nullable BlockId from, int blocks, int values) {
    FeedHeads<T> heads = new FeedHeads<>(provider, source);
    try {
      Head<T> latest = provider.request(heads.latest());
      boolean ahead = from == null || from == BlockId.PENDING;
      long start;
      if (ahead) {
        start = latest.number() + 1;
      } else if (from instanceof BlockId.Number number) {
        start = number.number();
      } else {
        start = provider.request(heads.block(from)).number();
      }
      FeedChain<T> chain = new FeedChain<>(source, start, blocks, values);
      if (ahead) {
        chain.end(latest);
      }
      return new Feed<>(provider, source, heads, chain, latest);
    } catch (RuntimeException failure) {
      heads.close();
      throw failure;
    }
  }

  /**
   * The next update; empty if none comes within {@code atMost}, or if the feed or its client is
   * closed. A request that is under way by then is not cut short. A connection that breaks is
   * waited for; after another failure it may be called again. One thread at a time has its turn.
   *
   * @throws RpcException if the server refuses a request that it should know
   * @throws ProtocolException if an answer is none, or has another form
   * @throws TransportException if the server refuses the connection, or the thread is interrupted
   */
  public Optional<Update<T>> next(Duration atMost) {
    long begun = System.nanoTime();
    long nanos = atMost.compareTo(FOREVER) >= 0 ? FOREVER.toNanos() : atMost.toNanos();
    reading.lock();
    try {
      while (!closed) {
        Update<T> update = chain.poll();
        if (update != null) {
          return Optional.of(update);
        }
        long left = nanos - (System.nanoTime() - begun);
        if (!advance(left)) {
          break;
        }
      }
      return Optional.empty();
    } catch (Closed ended) {
      return Optional.empty();
    } finally {
      reading.unlock();
    }
  }

  /** Goes on by one step, or waits; false if there was no time. */
  private boolean advance(long nanos) {
    try {
      Head<T> to = goal;
      if (to == null) {
        to = heads.next(nanos, asker);
      } else if (doubted) {
        to = asker.ask(heads.latest());
      }
      goal = to;
      doubted = false;
      if (to == null) {
        return false;
      }
      step(to);
      pause = FIRST_PAUSE;
      return true;
    } catch (TransportException failure) {
      if (isFinal(failure)) {
        throw failure;
      }
      if (nanos <= 0) {
        return false;
      }
      doubted = failure.kind() == Kind.BUSY;
      heads.pause(Math.min(nanos, pause));
      pause = Math.min(LONGEST_PAUSE, 2 * pause);
      return true;
    }
  }

  private boolean isFinal(TransportException failure) {
    if (failure.kind() == Kind.CLOSED && !failure.mayHaveRun()) {
      close();
      throw new Closed();
    }
    return failure.kind() == Kind.REFUSED
        || failure.kind() == Kind.TLS
        || Thread.currentThread().isInterrupted();
  }

  private void step(Head<T> to) {
    if (chain.isFollowedBy(to)) {
      take(to);
      return;
    }
    if (!chain.isJoined(to) && !join(to)) {
      goal = null;
      return;
    }
    fetch(to);
  }

  /** Finds where the chain of {@code to} leaves what was told; false where that is no news. */
  private boolean join(Head<T> to) {
    Head<T> newest = chain.last();
    boolean late = newest != null && newest.number() > to.number() && isStill(newest);
    if (late || chain.knows(to) && chain.next() > to.number()) {
      // The head that is known, or an older one.
      return false;
    }
    for (Head<T> last = newest; last != null && !isBelow(last, to); last = chain.last()) {
      chain.remove();
    }
    return chain.join(to);
  }

  /** Whether a block is in the chain of {@code head}, or the head itself. */
  private boolean isBelow(Head<T> block, Head<T> head) {
    if (block.number() >= head.number()) {
      return block.hash().equals(head.hash());
    }
    if (block.number() == head.number() - 1) {
      return block.hash().equals(head.parent());
    }
    return isStill(block);
  }

  private boolean isStill(Head<T> block) {
    Head<T> now = asker.ask(heads.blockOrNull(block.number()));
    return now != null && now.hash().equals(block.hash());
  }

  /** Adds the block that is gone to. */
  private void take(Head<T> to) {
    chain.add(to, at(to));
    goal = null;
  }

  /** The values of the block that is gone to. */
  private List<T> at(Head<T> to) {
    try {
      List<T> values = source.at(to, asker);
      refusals = 0;
      return values;
    } catch (RpcException refused) {
      if (refused.code() == NO_METHOD || ++refusals == REFUSALS) {
        refusals = 0;
        throw refused;
      }
      // It has left the chain, or another server behind the same address does not have it yet.
      throw busy(refused);
    }
  }

  private static TransportException busy(RpcException refused) {
    return new TransportException(Kind.BUSY, true, refused.getMessage(), refused);
  }

  /** Fetches the next blocks up to {@code to}. */
  private void fetch(Head<T> to) {
    long from = chain.next();
    if (from >= to.number()) {
      if (from == to.number()) {
        take(to);
      } else {
        chain.end(to);
        goal = null;
      }
      return;
    }
    long end = Math.min(to.number(), from + span - 1);
    List<T> values;
    try {
      values = source.range(from, end, asker);
    } catch (RpcException | ProtocolException | TransportException refused) {
      narrow(refused, from, end, to);
      return;
    }
    boolean settled = end <= to.number() - FeedChain.BLOCKS;
    if (!settled && !isStill(to, values)) {
      goal = asker.ask(heads.latest());
      return;
    }
    chain.add(end, values);
    if (settled) {
      chain.settle();
    }
    if (end == to.number()) {
      chain.end(to);
      goal = null;
    }
    fit(values.size());
  }

  /** Whether {@code head} is in the chain still, after values below it were asked for. */
  private boolean isStill(Head<T> head, List<T> values) {
    if (!isStill(head)) {
      return false;
    }
    for (T value : values) {
      if (source.numberOf(value) == head.number() && !source.hashOf(value).equals(head.hash())) {
        return false;
      }
    }
    return true;
  }

  /** Makes ranges shorter or longer, so that they have some thousands of values. */
  private void fit(int values) {
    taken++;
    if (taken % TRIED_AGAIN == 0) {
      ceiling = Math.min(source.longest(), 2 * ceiling);
    }
    if (values > 10_000) {
      span = Math.max(1, span * 5_000 / values);
    } else if (values < 2_500) {
      span = Math.min(ceiling, 2 * span);
    }
  }

  /** Goes on after a range was refused: with half of it, or behind what the server has no more. */
  private void narrow(EthException refused, long from, long end, Head<T> to) {
    boolean late = refused instanceof TransportException lost && lost.kind() != Kind.TIMEOUT;
    boolean unknown = refused instanceof RpcException error && error.code() == NO_METHOD;
    if (late || unknown || end == from && !(refused instanceof RpcException)) {
      throw refused;
    }
    if (end > from) {
      span = Math.max(1, (end - from + 1) / 2);
      ceiling = span;
      taken = 0;
      return;
    }
    RpcException error = (RpcException) refused;
    if (isBusy(error)) {
      throw busy(error);
    }
    // The last block has to be there; the first one that is, is looked for.
    at(to);
    if (!isStill(to)) {
      goal = asker.ask(heads.latest());
      return;
    }
    long without = from;
    long with = to.number();
    while (with - without > 1) {
      long middle = without + (with - without) / 2;
      if (has(middle)) {
        with = middle;
      } else {
        without = middle;
      }
    }
    chain.skip(without, "the server refuses them: " + error.getMessage());
    span = Math.min(FIRST_SPAN, source.longest());
    ceiling = source.longest();
  }

  private boolean has(long block) {
    try {
      source.range(block, block, asker);
      return true;
    } catch (RpcException refused) {
      if (isBusy(refused)) {
        throw busy(refused);
      }
      return false;
    }
  }

  /**
   * Whether the code is that of too many requests, too; a range that is too long has it as well.
   */
  private static boolean isBusy(RpcException error) {
    return error.code() == -32005 || error.code() == -32097;
  }

  /** Thrown where the feed was closed meanwhile. */
  private static final class Closed extends RuntimeException {
    private static final long serialVersionUID = 1;

    Closed() {
      super(null, null, false, false);
    }
  }

  private final class Asking implements FeedSource.Asker {
    /** What is waited for, so that closing ends it. */
    private volatile @Nullable CompletableFuture<?> waiting;

    @Override
    public <R> R ask(Request<R> request) {
      return await(provider.requestAsync(request));
    }

    @Override
    public <R> List<R> askAll(List<Request<R>> requests) {
      Batch batch = provider.batch();
      List<CompletableFuture<R>> futures = new ArrayList<>();
      requests.forEach(request -> futures.add(batch.add(request)));
      batch.send();
      List<R> results = new ArrayList<>();
      for (CompletableFuture<R> future : futures) {
        results.add(await(future));
      }
      return results;
    }

    private <R> R await(CompletableFuture<R> future) {
      waiting = future;
      if (closed) {
        future.cancel(true);
      }
      try {
        return future.get();
      } catch (CancellationException cancelled) {
        throw new Closed();
      } catch (ExecutionException failure) {
        Throwable cause = failure.getCause();
        if (closed) {
          throw new Closed();
        }
        if (cause instanceof EthException as) {
          as.fillInStackTrace();
        }
        throw cause instanceof RuntimeException as ? as : new IllegalStateException(cause);
      } catch (InterruptedException interrupted) {
        future.cancel(true);
        Thread.currentThread().interrupt();
        throw new TransportException(Kind.TIMEOUT, true, "the thread was interrupted", interrupted);
      } finally {
        waiting = null;
      }
    }

    void end() {
      CompletableFuture<?> now = waiting;
      if (now != null) {
        now.cancel(true);
      }
    }
  }

  /** Waits for updates, and ends when the feed or its client is closed. */
  @Override
  public Iterator<Update<T>> iterator() {
    return new Iterator<>() {
      private @Nullable Update<T> ahead;

      @Override
      public boolean hasNext() {
        if (ahead == null) {
          ahead = Feed.this.next(FOREVER).orElse(null);
        }
        return ahead != null;
      }

      @Override
      public Update<T> next() {
        if (!hasNext()) {
          throw new NoSuchElementException("the feed is closed");
        }
        Update<T> next = ahead;
        ahead = null;
        return java.util.Objects.requireNonNull(next);
      }
    };
  }

  /** Ends it, and whoever waits for an update. */
  @Override
  public void close() {
    closed = true;
    heads.close();
    asker.end();
  }
}
