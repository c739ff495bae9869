package deponent.rpc;

import deponent.eth.JsonReader;
import java.time.Duration;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * A request: its method, its parameters, and how its result is read. It can be sent any number of
 * times, by any {@link Provider}.
 *
 * <pre>{@code
 * Request<Long> chainId = Request.of("eth_chainId", Params.NONE, JsonReader::nextQuantity);
 * long id = provider.request(chainId.repeatable());
 * }</pre>
 *
 * @param <T> its result
 */
public final class Request<T> {
  private final String method;
  private final Params params;
  private final Decoder<T> result;
  private final @Nullable Duration timeout;
  private final boolean repeatable;

  /** The time limit, or -1. */
  final long timeoutNanos;

  private Request(
      String method,
      Params params,
      Decoder<T> result,
      @Nullable Duration timeout,
      boolean repeatable) {
    this.method = method;
    this.params = params;
    this.result = result;
    this.timeout = timeout;
    this.repeatable = repeatable;
    timeoutNanos = timeout == null ? -1 : Times.nanos(timeout);
  }

  /**
   * A request that is sent once at most.
   *
   * @throws IllegalArgumentException if the method has no name
   */
  public static <T> Request<T> of(String method, Params params, Decoder<T> result) {
    if (method.isBlank()) {
      throw new IllegalArgumentException("a request has a method");
    }
    return new Request<>(method, params, result, null, false);
  }

  /** A request whose result is taken as the text of its JSON. */
  public static Request<String> ofJson(String method, Params params) {
    return of(method, params, JsonReader::nextJson);
  }

  /**
   * The same, which may be sent again after a connection broke or the server had too much to do: it
   * changes nothing. No request is by itself.
   */
  public Request<T> repeatable() {
    return new Request<>(method, params, result, timeout, true);
  }

  /**
   * The same with a time limit of its own.
   *
   * @throws IllegalArgumentException if it is not positive
   */
  public Request<T> timeout(Duration limit) {
    if (limit.isNegative() || limit.isZero()) {
      throw new IllegalArgumentException("a time limit is positive, not " + limit);
    }
    return new Request<>(method, params, result, limit, repeatable);
  }

  /** The method's name. */
  public String method() {
    return method;
  }

  /** What writes the parameters. */
  public Params params() {
    return params;
  }

  /** What reads the result. */
  public Decoder<T> result() {
    return result;
  }

  /** The time limit; none where the provider's counts. */
  public Optional<Duration> timeout() {
    return Optional.ofNullable(timeout);
  }

  /** Whether it may be sent again. */
  public boolean isRepeatable() {
    return repeatable;
  }

  /** The method's name. */
  @Override
  public String toString() {
    return method;
  }
}
