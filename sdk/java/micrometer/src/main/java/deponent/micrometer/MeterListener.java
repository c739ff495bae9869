package deponent.micrometer;

import deponent.rpc.Listener;
import io.micrometer.core.instrument.Counter;
import io.micrometer.core.instrument.DistributionSummary;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Tags;
import io.micrometer.core.instrument.Timer;
import java.util.Locale;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReferenceArray;

/**
 * Fills a registry with what providers do. One listener serves any number of providers; their
 * meters are told apart by tags.
 *
 * <pre>{@code
 * Listener meters = MeterListener.of(registry, "node", "main");
 * try (Provider provider = Provider.at("wss://eth.example/KEY").listener(meters).connect()) {
 *   // ..
 * }
 * }</pre>
 *
 * <table>
 * <caption>The meters. Those by method or address appear with their first value.</caption>
 * <tr><th>Name</th><th>Kind</th><th>Tags</th><th>Meaning</th></tr>
 * <tr><td>{@code deponent.rpc.requests}</td><td>timer</td><td>method, outcome</td><td>requests that
 * have ended, and the time that they took; the outcome is {@code result}, {@code error}, {@code
 * timeout} or {@code failed}</td></tr>
 * <tr><td>{@code deponent.rpc.requests.active}</td><td>gauge</td><td></td><td>requests without an
 * end so far</td></tr>
 * <tr><td>{@code deponent.rpc.answer.size}</td><td>summary</td><td>method</td><td>bytes of
 * answers; requests without one are left out</td></tr>
 * <tr><td>{@code deponent.rpc.throttled}</td><td>timer</td><td>method</td><td>how often and how long
 * requests were held back by the server or the provider's rate</td></tr>
 * <tr><td>{@code deponent.rpc.dropped}</td><td>counter</td><td>method</td><td>values of
 * subscriptions that were not taken in time</td></tr>
 * <tr><td>{@code deponent.rpc.connections.lost}</td><td>counter</td><td>address</td><td>connections
 * that were lost</td></tr>
 * <tr><td>{@code deponent.rpc.connections.down}</td><td>gauge</td><td></td><td>connections that are
 * lost now. One whose provider is closed in that state stays counted</td></tr>
 * </table>
 */
public final class MeterListener implements Listener {
  private static final Outcome[] OUTCOMES = Outcome.values();

  private final MeterRegistry registry;
  private final Tags tags;
  private final ConcurrentMap<String, OfMethod> methods = new ConcurrentHashMap<>();
  private final AtomicLong active = new AtomicLong();
  private final AtomicLong down = new AtomicLong();

  private MeterListener(MeterRegistry registry, Tags tags) {
    this.registry = registry;
    this.tags = tags;
    Gauge.builder("deponent.rpc.requests.active", active, AtomicLong::get)
        .description("Requests without an end so far")
        .tags(tags)
        .strongReference(true)
        .register(registry);
    Gauge.builder("deponent.rpc.connections.down", down, AtomicLong::get)
        .description("Connections that are lost now")
        .tags(tags)
        .strongReference(true)
        .register(registry);
  }

  /**
   * A listener that fills {@code registry}. A registry has one listener for the same tags: a second
   * one's gauges would be left out.
   *
   * @param tags keys and values by turns, which all meters get
   * @throws IllegalArgumentException if a key has no value
   */
  public static MeterListener of(MeterRegistry registry, String... tags) {
    return new MeterListener(registry, Tags.of(tags));
  }

  /** The meters of one method, each registered with its first value. */
  private final class OfMethod {
    private final Tags tags;
    private final AtomicReferenceArray<Timer> requests =
        new AtomicReferenceArray<>(OUTCOMES.length);
    private final DistributionSummary size;

    OfMethod(String method) {
      tags = MeterListener.this.tags.and("method", method);
      size =
          DistributionSummary.builder("deponent.rpc.answer.size")
              .description("Bytes of answers")
              .baseUnit("bytes")
              .tags(tags)
              .register(registry);
    }

    /** A registry gives the same timer for the same tags, so two threads may register it. */
    Timer requests(Outcome outcome) {
      Timer timer = requests.get(outcome.ordinal());
      if (timer == null) {
        timer =
            Timer.builder("deponent.rpc.requests")
                .description("Requests that have ended")
                .tags(tags.and("outcome", outcome.name().toLowerCase(Locale.ROOT)))
                .register(registry);
        requests.set(outcome.ordinal(), timer);
      }
      return timer;
    }
  }

  @Override
  public void requested(String method) {
    active.incrementAndGet();
  }

  @Override
  public void answered(String method, long nanos, long bytes, Outcome outcome) {
    active.decrementAndGet();
    OfMethod meters = methods.get(method);
    if (meters == null) {
      meters = methods.computeIfAbsent(method, OfMethod::new);
    }
    meters.requests(outcome).record(nanos, TimeUnit.NANOSECONDS);
    if (bytes > 0) {
      meters.size.record(bytes);
    }
  }

  @Override
  public void lost(String address, Throwable why) {
    down.incrementAndGet();
    Counter.builder("deponent.rpc.connections.lost")
        .description("Connections that were lost")
        .tags(tags.and("address", address))
        .register(registry)
        .increment();
  }

  @Override
  public void restored(String address) {
    down.decrementAndGet();
  }

  @Override
  public void throttled(String method, long nanos) {
    Timer.builder("deponent.rpc.throttled")
        .description("Requests that were held back")
        .tags(tags.and("method", method))
        .register(registry)
        .record(nanos, TimeUnit.NANOSECONDS);
  }

  @Override
  public void slow(String method) {
    Counter.builder("deponent.rpc.dropped")
        .description("Values of subscriptions that were not taken in time")
        .tags(tags.and("method", method))
        .register(registry)
        .increment();
  }
}
