package deponent.rpc;

import deponent.eth.EthException;
import deponent.eth.Hash;
import deponent.eth.JsonReader;
import deponent.eth.JsonWriter;
import deponent.eth.Keccak256;
import deponent.eth.RlpReader;
import deponent.eth.RpcException;
import deponent.eth.TransportException;
import deponent.eth.TransportException.Kind;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;

/** A provider of one address: rate and retries, and what they are for by a connection. */
abstract class Connected implements Provider {
  private static final byte BLOB_TYPE = 3;

  final Settings settings;

  Connected(Settings settings) {
    this.settings = settings;
  }

  /** Begins a call, whose end is told; it may block up to the deadline. */
  abstract void begin(Call<?> call);

  /** Waits for the end of a call that began; false if the thread is interrupted before. */
  boolean await(Call<?> call) {
    return call.await();
  }

  /** Waits for the ends of calls that began; an interrupt ends them. */
  void awaitAll(List<Call<?>> calls) {
    for (Call<?> call : calls) {
      if (!call.await()) {
        TransportException why = new TransportException(Kind.TIMEOUT, true, "interrupted", null);
        calls.forEach(one -> abandon(one, why));
        return;
      }
    }
  }

  /** Begins the calls of a batch. */
  abstract void beginAll(List<Call<?>> calls, long deadline);

  /** Ends a call that nobody waits for any more. */
  abstract void abandon(Call<?> call, EthException why);

  /** Fails on threads that must not wait. */
  abstract void checkThread();

  @Override
  public final <T> T request(Request<T> request) {
    checkThread();
    long deadline = settings.deadline(request);
    for (int tried = 1; ; tried++) {
      Call<T> call = new Call<>(request, deadline, null);
      try {
        pace(1, request.method(), deadline);
        begin(call);
        if (!await(call)) {
          abandon(call, new TransportException(Kind.TIMEOUT, true, "interrupted", null));
          call.await();
        }
        return call.result();
      } catch (EthException failure) {
        if (isKnown(call, failure, tried)) {
          return known(request);
        }
        long pause = again(request, failure, tried, deadline);
        if (pause < 0 || !Rate.pause(pause)) {
          throw failure;
        }
      }
    }
  }

  @Override
  public final <T> CompletableFuture<T> requestAsync(Request<T> request) {
    checkThread();
    CallFuture<T> future = new CallFuture<>();
    attempt(request, future, settings.deadline(request), 1);
    return future;
  }

  private <T> void attempt(Request<T> request, CallFuture<T> future, long deadline, int tried) {
    if (future.isDone()) {
      return;
    }
    Call<T> call = new Call<>(request, deadline, future);
    call.again = failure -> retried(call, failure, tried);
    future.onCancel(() -> abandon(call, cancelled()));
    try {
      pace(1, request.method(), deadline);
      begin(call);
    } catch (RuntimeException failure) {
      if (!retried(call, failure, tried)) {
        future.completeExceptionally(failure);
      }
    }
  }

  static EthException cancelled() {
    return new TransportException(Kind.CLOSED, true, "the future was cancelled", null);
  }

  private <T> boolean retried(Call<T> call, Throwable failure, int tried) {
    CallFuture<T> future = java.util.Objects.requireNonNull(call.future);
    if (isKnown(call, failure, tried)) {
      future.complete(known(call.request));
      return true;
    }
    long pause = again(call.request, failure, tried, call.deadline);
    if (pause < 0) {
      return false;
    }
    Thread.startVirtualThread(
        () -> {
          Rate.pause(pause);
          attempt(call.request, future, call.deadline, tried + 1);
        });
    return true;
  }

  @Override
  public final Batch batch() {
    return new Batch(
        (parts, waits) -> {
          checkThread();
          long deadline = Times.after(settings.timeoutNanos);
          pace(parts.size(), "a batch", deadline);
          List<Call<?>> calls = new ArrayList<>(parts.size());
          for (Batch.Part<?> part : parts) {
            calls.add(call(part, waits));
          }
          beginAll(calls, deadline);
          if (waits) {
            awaitAll(calls);
            deliverHere(calls);
          }
        });
  }

  /** Completes the futures of calls on the thread that waited for them, which runs no callbacks. */
  private void deliverHere(List<Call<?>> calls) {
    List<Call<?>> rest = new ArrayList<>();
    for (Call<?> call : calls) {
      CallFuture<?> future = call.future;
      if (future != null && future.getNumberOfDependents() > 0) {
        rest.add(call);
      } else {
        call.deliver();
      }
    }
    deliver(rest);
  }

  /** Completes the futures of calls that have ended, in one task. */
  final void deliver(List<Call<?>> calls) {
    if (calls.isEmpty()) {
      return;
    }
    settings.callBack(() -> calls.forEach(Call::deliver));
  }

  private <T> Call<T> call(Batch.Part<T> part, boolean waits) {
    long deadline = settings.deadline(part.request());
    Call<T> call = new Call<>(part.request(), deadline, part.future(), waits);
    part.future().onCancel(() -> abandon(call, cancelled()));
    return call;
  }

  private void pace(int count, String method, long deadline) {
    Rate rate = settings.rate;
    if (rate == null) {
      return;
    }
    long wait = rate.reserve(count, Times.now(), deadline);
    if (wait > 0) {
      settings.tell(listener -> listener.throttled(method, wait));
      if (!Rate.pause(wait)) {
        throw new TransportException(Kind.TIMEOUT, false, "interrupted", null);
      }
    }
  }

  /** Whether the server refused because there were too many requests. */
  static boolean isThrottled(Throwable failure) {
    return failure instanceof RpcException error
            && (error.code() == -32005 || error.code() == -32097)
        || failure instanceof TransportException busy && busy.getCause() instanceof RetryAfter;
  }

  /** The pause after which a request is tried again, or -1 if it is not. */
  private long again(Request<?> request, Throwable failure, int tried, long deadline) {
    if (tried >= settings.retry.tries() || !request.isRepeatable() || isClosed()) {
      return -1;
    }
    boolean throttled = isThrottled(failure);
    boolean lost =
        failure instanceof TransportException transport
            && (transport.kind() == Kind.CONNECT || transport.kind() == Kind.CLOSED);
    if (!throttled && !lost) {
      return -1;
    }
    long least = failure.getCause() instanceof RetryAfter after ? after.nanos : 0;
    long pause = Math.max(least, settings.retry.pauseNanos(tried));
    if (pause >= deadline - Times.now()) {
      return -1;
    }
    if (throttled) {
      settings.tell(listener -> listener.throttled(request.method(), pause));
    }
    return pause;
  }

  abstract boolean isClosed();

  /** Whether a transaction that was sent before is refused because the server has it. */
  private static boolean isKnown(Call<?> call, @Nullable Throwable failure, int tried) {
    if (!(failure instanceof RpcException) || tried == 1 && !call.resent) {
      return false;
    }
    String message = String.valueOf(failure.getMessage()).toLowerCase(java.util.Locale.ROOT);
    return call.request.method().equals("eth_sendRawTransaction")
        && (message.contains("already known")
            || message.contains("already imported")
            || message.contains("known transaction"));
  }

  /** The result of a transaction that was sent: its hash. */
  private static <T> T known(Request<T> request) {
    JsonWriter params = new JsonWriter().beginArray();
    request.params().write(params);
    JsonReader json = new JsonReader(params.endArray().toBytes());
    json.beginArray();
    Hash hash = hashOf(json.nextBytes().toBytes());
    return request.result().read(new JsonReader(new JsonWriter().value(hash).toBytes()));
  }

  /** A transaction's hash. Blobs that are sent with it are not hashed (EIP-4844). */
  static Hash hashOf(byte[] sent) {
    if (sent.length > 1 && sent[0] == BLOB_TYPE) {
      RlpReader parts = new RlpReader(sent, 1, sent.length - 1).list();
      if (parts.nextIsList()) {
        byte[] transaction = parts.encoded().toBytes();
        return new Keccak256().update(new byte[] {BLOB_TYPE}).update(transaction).digest();
      }
    }
    return Keccak256.hash(sent);
  }

  /** Writes a request of JSON-RPC. */
  static JsonWriter write(Call<?> call, long id, JsonWriter json) {
    json.beginObject().name("jsonrpc").value("2.0").name("id").value(id);
    json.name("method").value(call.request.method()).name("params").beginArray();
    call.request.params().write(json);
    return json.endArray().endObject();
  }

  /** Tells of the end of a call. */
  final void tellEnd(Call<?> call, @Nullable Throwable failure, long bytes) {
    Listener.Outcome outcome = Listener.Outcome.FAILED;
    if (failure == null) {
      outcome = Listener.Outcome.RESULT;
    } else if (failure instanceof RpcException) {
      outcome = Listener.Outcome.ERROR;
    } else if (failure instanceof TransportException late && late.kind() == Kind.TIMEOUT) {
      outcome = Listener.Outcome.TIMEOUT;
    }
    Listener.Outcome ended = outcome;
    long nanos = Times.now() - call.begun;
    settings.tell(listener -> listener.answered(call.request.method(), nanos, bytes, ended));
  }
}
