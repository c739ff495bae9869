package deponent.rpc;

import deponent.eth.TransportException;
import java.net.InetSocketAddress;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.Executor;
import java.util.function.Supplier;
import javax.net.ssl.SSLContext;
import org.jspecify.annotations.Nullable;

/**
 * The settings of a {@link Provider}, each with a default. It can be used again: each {@link
 * #connect} makes a provider of its own.
 *
 * <pre>{@code
 * Provider provider =
 *     Provider.at("wss://eth.example")
 *         .bearer(tokens::fresh)
 *         .timeout(Duration.ofSeconds(5))
 *         .rate(25, 50)
 *         .connect();
 * }</pre>
 */
public final class ProviderBuilder {
  final Endpoint endpoint;
  final List<String> headers = new ArrayList<>();
  @Nullable Supplier<String> bearer;
  Duration timeout = Duration.ofSeconds(20);
  int inFlight = 1_024;
  long answerBytes = 1L << 31;
  @Nullable SSLContext ssl;
  @Nullable InetSocketAddress proxy;
  @Nullable String origin;
  Retry retry = Retry.DEFAULT;
  double perSecond;
  int burst;
  Backoff reconnect = Backoff.DEFAULT;
  @Nullable Executor callbacks;
  @Nullable Listener listener;

  /**
   * Callers that wait alone, one after the other, before the next one reads its answer itself. In
   * any order of callers the results are the same: it is for tests.
   */
  int loneCallers = 8;

  ProviderBuilder(Endpoint endpoint) {
    this.endpoint = endpoint;
  }

  /**
   * Adds a header to each HTTP request, or to WebSocket's handshake.
   *
   * @throws IllegalArgumentException if it has characters that headers have not
   */
  public ProviderBuilder header(String name, String value) {
    if (!name.matches("[!#$%&'*+.^_`|~0-9A-Za-z-]+")) {
      throw new IllegalArgumentException("no name of a header: " + name);
    }
    headers.add(name + ": " + checked(value));
    return this;
  }

  static String checked(String value) {
    for (int i = 0; i < value.length(); i++) {
      char one = value.charAt(i);
      if (one < ' ' && one != '\t' || one >= 0x7f) {
        throw new IllegalArgumentException("a header's value is printable ASCII");
      }
    }
    return value;
  }

  /**
   * Sends {@code Authorization: Bearer} with a new token for each HTTP request or handshake.
   * Without one, the user of an address such as {@code https://user:password@host} is sent, if it
   * has one.
   */
  public ProviderBuilder bearer(Supplier<String> token) {
    bearer = Objects.requireNonNull(token);
    return this;
  }

  /**
   * Sets the time limit of handshakes, and of requests that have none of their own; 20 s by
   * default.
   *
   * @throws IllegalArgumentException if it is not positive
   */
  public ProviderBuilder timeout(Duration timeout) {
    if (timeout.isNegative() || timeout.isZero()) {
      throw new IllegalArgumentException("a timeout is positive: " + timeout);
    }
    this.timeout = timeout;
    return this;
  }

  /**
   * Sets how many requests are in flight at most; 1,024 by default. More wait for one to end, up to
   * their deadlines, and fail as BUSY then. Over HTTP they share 256 connections.
   *
   * @throws IllegalArgumentException if it is not from 1 to 65,536
   */
  public ProviderBuilder inFlight(int most) {
    if (most < 1 || most > 1 << 16) {
      throw new IllegalArgumentException("from 1 to 65536 requests are in flight: " + most);
    }
    inFlight = most;
    return this;
  }

  /**
   * Sets how many bytes an answer has at most; 2 GiB by default. A longer one is a {@link
   * deponent.eth.ProtocolException}, and ends the connection.
   *
   * @throws IllegalArgumentException if it is not positive
   */
  public ProviderBuilder answerBytes(long most) {
    if (most < 1) {
      throw new IllegalArgumentException("an answer has at least one byte: " + most);
    }
    answerBytes = most;
    return this;
  }

  /**
   * Takes certificates and keys from {@code context}; from Java's default context otherwise. Host
   * names are verified in both cases.
   */
  public ProviderBuilder ssl(SSLContext context) {
    ssl = Objects.requireNonNull(context);
    return this;
  }

  /** Connects through the HTTP proxy at {@code proxy}, by {@code CONNECT}. */
  public ProviderBuilder proxy(InetSocketAddress proxy) {
    this.proxy = Objects.requireNonNull(proxy);
    return this;
  }

  /** Sets the header {@code Origin}; none is sent by default. */
  public ProviderBuilder origin(String origin) {
    this.origin = checked(origin);
    return this;
  }

  /** Sets how repeatable requests are retried; {@link Retry#DEFAULT} otherwise. */
  public ProviderBuilder retry(Retry retry) {
    this.retry = Objects.requireNonNull(retry);
    return this;
  }

  /**
   * Sets how many requests are sent a second at most, after {@code burst} that leave at once. A
   * batch counts as its requests. More wait, up to their deadline. There is no limit by default.
   *
   * @throws IllegalArgumentException if one of them is not positive
   */
  public ProviderBuilder rate(double perSecond, int burst) {
    if (!(perSecond > 0) || burst < 1) {
      throw new IllegalArgumentException("a rate and its burst are positive");
    }
    this.perSecond = perSecond;
    this.burst = burst;
    return this;
  }

  /** Sets the pauses between attempts to reconnect; {@link Backoff#DEFAULT} otherwise. */
  public ProviderBuilder reconnect(Backoff backoff) {
    reconnect = Objects.requireNonNull(backoff);
    return this;
  }

  /**
   * Completes futures on {@code executor}, and with them what depends on them; on virtual threads
   * by default. One task completes those whose answers came together.
   */
  public ProviderBuilder callbacks(Executor executor) {
    callbacks = Objects.requireNonNull(executor);
    return this;
  }

  /** Tells {@code listener} of requests and connections; none by default. */
  public ProviderBuilder listener(Listener listener) {
    this.listener = Objects.requireNonNull(listener);
    return this;
  }

  /**
   * Connects. HTTP connects at the first request.
   *
   * @throws TransportException if there is no connection within the timeout
   */
  public Provider connect() {
    Settings settings = new Settings(this);
    if (endpoint.kind() == Endpoint.Kind.HTTP) {
      return new HttpProvider(settings);
    }
    return Duplex.open(settings, true);
  }

  /**
   * Begins to connect, and does not wait for it. Requests wait for the connection up to their
   * deadlines; it is tried again with the pauses of {@link #reconnect}. So one of several servers
   * may be down when a fail-over of them begins.
   */
  public Provider connectInBackground() {
    Settings settings = new Settings(this);
    if (endpoint.kind() == Endpoint.Kind.HTTP) {
      return new HttpProvider(settings);
    }
    return Duplex.open(settings, false);
  }

  /**
   * Requests of HTTP with bodies of bytes, to the host of {@code http://} or {@code https://}, or
   * over a Unix socket; paths come with them. It connects at the first one.
   *
   * @throws IllegalArgumentException if the address is that of a WebSocket
   */
  public Http http() {
    if (endpoint.kind() == Endpoint.Kind.WEB_SOCKET) {
      throw new IllegalArgumentException("no address of HTTP: " + endpoint);
    }
    return new Http(new Settings(this), null);
  }

  /**
   * The same over a Unix socket, where large answers come as memory of the server: mapped, and not
   * copied. It asks for that in each request ({@code Deponent-Descriptor}). Empty where the address
   * is another one, or there is no module {@code deponent-descriptor}, which needs Java 22 and
   * Linux.
   */
  public Optional<Http> httpByDescriptor() {
    return endpoint.kind() == Endpoint.Kind.UNIX
        ? Passing.service().map(service -> new Http(new Settings(this), service))
        : Optional.empty();
  }
}
