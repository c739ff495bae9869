package deponent.rpc;

import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.List;
import java.util.concurrent.Executor;
import java.util.function.Consumer;
import java.util.function.Supplier;
import javax.net.ssl.SSLContext;
import org.jspecify.annotations.Nullable;

/** The settings of one provider, which do not change. */
final class Settings {
  final Endpoint endpoint;
  final long timeoutNanos;
  final int inFlight;
  final long answerBytes;
  final @Nullable SSLContext ssl;
  final @Nullable InetSocketAddress proxy;
  final Retry retry;
  final @Nullable Rate rate;
  final Backoff reconnect;
  final int loneCallers;
  final Executor callbacks;

  /** Whether futures are completed on virtual threads, since no executor was set. */
  final boolean ownCallbacks;

  private final List<String> headers;
  private final @Nullable Supplier<String> bearer;
  private final @Nullable String origin;
  private final @Nullable Listener listener;

  Settings(ProviderBuilder of) {
    endpoint = of.endpoint;
    timeoutNanos = Times.nanos(of.timeout);
    inFlight = of.inFlight;
    answerBytes = of.answerBytes;
    ssl = of.ssl;
    proxy = of.proxy;
    retry = of.retry;
    rate = of.burst == 0 ? null : new Rate(of.perSecond, of.burst);
    reconnect = of.reconnect;
    loneCallers = of.loneCallers;
    Executor given = of.callbacks;
    callbacks = given == null ? Thread::startVirtualThread : given;
    headers = List.copyOf(of.headers);
    bearer = of.bearer;
    origin = of.origin;
    listener = of.listener;
    ownCallbacks = given == null;
  }

  /** The deadline of a request that begins now. */
  long deadline(Request<?> request) {
    return Times.after(request.timeoutNanos >= 0 ? request.timeoutNanos : timeoutNanos);
  }

  /** Adds the headers that were set, each with its line's end. */
  void headersTo(StringBuilder head) {
    if (origin != null) {
      head.append("Origin: ").append(origin).append("\r\n");
    }
    if (bearer != null) {
      String token = ProviderBuilder.checked(bearer.get());
      head.append("Authorization: Bearer ").append(token).append("\r\n");
    } else if (endpoint.user() != null) {
      byte[] user = endpoint.user().getBytes(StandardCharsets.UTF_8);
      String basic = Base64.getEncoder().encodeToString(user);
      head.append("Authorization: Basic ").append(basic).append("\r\n");
    }
    for (String header : headers) {
      head.append(header).append("\r\n");
    }
  }

  /** Tells the listener, whose faults are its own. */
  void tell(Consumer<Listener> what) {
    Listener told = listener;
    if (told == null) {
      return;
    }
    try {
      what.accept(told);
    } catch (RuntimeException | Error dropped) {
      // A listener's fault must not end a connection, nor the thread of deadlines.
    }
  }

  /**
   * Lets the executor of callbacks run {@code what}. On the thread of all deadlines an executor
   * that is set is not asked: it may run the callbacks at once, or block.
   */
  void callBack(Runnable what) {
    if (!ownCallbacks && Deadlines.isMine()) {
      Thread.startVirtualThread(() -> execute(what));
    } else {
      execute(what);
    }
  }

  private void execute(Runnable what) {
    try {
      callbacks.execute(what);
    } catch (RuntimeException | Error refused) {
      // It is shut, or full.
      what.run();
    }
  }
}
