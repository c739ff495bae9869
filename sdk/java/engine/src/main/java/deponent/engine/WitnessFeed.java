package deponent.engine;

import deponent.eth.Hash;
import deponent.eth.JsonReader;
import deponent.eth.RpcException;
import deponent.eth.TransportException;
import deponent.rpc.Notice;
import deponent.rpc.Provider;
import deponent.rpc.Request;
import deponent.rpc.Subscription;
import java.time.Duration;
import java.util.Iterator;
import java.util.NoSuchElementException;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;

/**
 * What becomes of blocks and their witnesses, one notice after the other. None is missed: after a
 * broken connection, and where the reader was too slow, the server is told the last block that was
 * taken, and begins behind it. A block can be told of twice then.
 *
 * <p>Iterating waits for notices, and ends when the feed is closed. One thread reads.
 *
 * <pre>{@code
 * try (WitnessFeed feed = engine.followWitnesses(null)) {
 *   for (WitnessNotice notice : feed) {
 *     if (notice.status() == WitnessNotice.Status.CANONICAL) {
 *       prove(engine.statelessInput(notice.hash()));
 *     }
 *   }
 * }
 * }</pre>
 */
public final class WitnessFeed implements AutoCloseable, Iterable<WitnessNotice> {
  private static final String METHOD = "deponent_subscribeWitnesses";

  /** The first pause before a further try, and the longest. */
  private static final long FIRST_NANOS = 100_000_000;

  private static final long LONGEST_NANOS = 5_000_000_000L;

  private static final Duration YEARS = Duration.ofDays(36_500);

  private final Provider provider;

  /** The last block that was taken, or the one that the reader named. */
  private volatile @Nullable Hash last;

  private volatile @Nullable Subscription<WitnessNotice> subscription;
  private volatile boolean closed;

  private WitnessFeed(Provider provider, @Nullable Hash after) {
    this.provider = provider;
    last = after;
  }

  static WitnessFeed open(Provider provider, @Nullable Hash after) {
    WitnessFeed feed = new WitnessFeed(provider, after);
    try {
      feed.subscribe();
      return feed;
    } catch (RuntimeException failure) {
      provider.close();
      throw failure;
    }
  }

  private Subscription<WitnessNotice> subscribe() {
    Request<String> open =
        Request.of(
            METHOD,
            json -> {
              Hash seen = last;
              if (seen != null) {
                json.value(seen);
              }
            },
            JsonReader::nextString);
    Subscription<WitnessNotice> opened = provider.subscribe(open, WitnessNotice::read);
    subscription = opened;
    return opened;
  }

  /**
   * The next notice; empty if none comes within {@code atMost}, or the feed is closed.
   *
   * @throws RpcException if the server no longer knows the last block that was taken (4444), or has
   *     no such subscription; the feed is of no more use
   * @throws deponent.eth.ProtocolException if a notice has another form
   */
  public Optional<WitnessNotice> next(Duration atMost) {
    long begun = System.nanoTime();
    long most = atMost.compareTo(YEARS) > 0 ? YEARS.toNanos() : atMost.toNanos();
    long pause = FIRST_NANOS;
    while (!closed) {
      long left = Math.max(0, most - (System.nanoTime() - begun));
      Subscription<WitnessNotice> from = subscription;
      if (from == null) {
        try {
          from = subscribe();
        } catch (TransportException lost) {
          if (left == 0 || Thread.currentThread().isInterrupted()) {
            return Optional.empty();
          }
          LockSupport.parkNanos(Math.min(pause, left));
          pause = Math.min(2 * pause, LONGEST_NANOS);
          continue;
        }
      }
      Optional<Notice<WitnessNotice>> found = from.next(Duration.ofNanos(left));
      if (found.isEmpty()) {
        return Optional.empty();
      }
      switch (found.get()) {
        case Notice.Value<WitnessNotice>(WitnessNotice value) -> {
          if (value.status() != WitnessNotice.Status.SAFE
              && value.status() != WitnessNotice.Status.FINALIZED) {
            last = value.hash();
          }
          return found.map(notice -> value);
        }
        case Notice.Gap<WitnessNotice> gap -> {
          // The server repeats what was missed, and what waits behind the gap with it.
          subscription = null;
          from.close();
        }
      }
    }
    return Optional.empty();
  }

  @Override
  public Iterator<WitnessNotice> iterator() {
    return new Iterator<>() {
      private @Nullable WitnessNotice ahead;

      @Override
      public boolean hasNext() {
        if (ahead == null) {
          ahead = WitnessFeed.this.next(YEARS).orElse(null);
        }
        return ahead != null;
      }

      @Override
      public WitnessNotice next() {
        if (!hasNext()) {
          throw new NoSuchElementException("the feed has ended");
        }
        WitnessNotice next = Objects.requireNonNull(ahead);
        ahead = null;
        return next;
      }
    };
  }

  /** Ends the feed and its connection. */
  @Override
  public void close() {
    closed = true;
    provider.close();
  }
}
