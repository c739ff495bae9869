package deponent.rpc;

import deponent.eth.EthException;
import deponent.eth.TransportException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.atomic.AtomicLongArray;
import java.util.function.Function;

/** Several providers, of which the first that works is asked. */
final class Failover implements Provider {
  /** How long one that failed is passed over. */
  private static final long AWAY = 30_000_000_000L;

  private final List<Provider> all;
  private final AtomicLongArray awayUntil;

  Failover(List<Provider> all) {
    if (all.isEmpty()) {
      throw new IllegalArgumentException("fail-over needs a provider");
    }
    this.all = all;
    for (Provider one : all) {
      if (one instanceof Duplex duplex) {
        duplex.failFast();
      }
    }
    awayUntil = new AtomicLongArray(all.size());
  }

  /** Those that work, in order, and then those that did not lately. */
  private List<Integer> order() {
    List<Integer> order = new ArrayList<>();
    List<Integer> away = new ArrayList<>();
    long now = Times.now();
    for (int i = 0; i < all.size(); i++) {
      boolean down = all.get(i) instanceof Duplex duplex && !duplex.isUp();
      (down || awayUntil.get(i) > now ? away : order).add(i);
    }
    order.addAll(away);
    return order;
  }

  /** Whether the next one is asked after a failure of this one, which is passed over then. */
  private boolean passes(int which, Throwable failure, boolean repeatable) {
    boolean passes = Connected.isThrottled(failure);
    if (failure instanceof TransportException fault) {
      passes =
          switch (fault.kind()) {
            case CONNECT, TIMEOUT, CLOSED, BUSY -> !fault.mayHaveRun() || repeatable;
            case TLS, REFUSED -> false;
          };
    }
    if (passes) {
      awayUntil.set(which, Times.after(AWAY));
    }
    return passes;
  }

  private <R> R first(boolean repeatable, Function<Provider, R> ask) {
    EthException last = null;
    for (int which : order()) {
      try {
        return ask.apply(all.get(which));
      } catch (EthException failure) {
        if (Thread.currentThread().isInterrupted() || !passes(which, failure, repeatable)) {
          throw failure;
        }
        last = failure;
      }
    }
    throw java.util.Objects.requireNonNull(last);
  }

  @Override
  public <T> T request(Request<T> request) {
    return first(request.isRepeatable(), provider -> provider.request(request));
  }

  @Override
  public <T> CompletableFuture<T> requestAsync(Request<T> request) {
    CompletableFuture<T> future = new CompletableFuture<>();
    ask(request, future, order(), 0);
    return future;
  }

  private <T> void ask(
      Request<T> request, CompletableFuture<T> future, List<Integer> order, int place) {
    int which = order.get(place);
    CompletableFuture<T> asked;
    try {
      asked = all.get(which).requestAsync(request);
    } catch (RuntimeException failure) {
      asked = CompletableFuture.failedFuture(failure);
    }
    asked.whenComplete(
        (value, failed) -> {
          Throwable failure = failed instanceof CompletionException ? failed.getCause() : failed;
          if (failure == null) {
            future.complete(value);
          } else if (!future.isDone()
              && passes(which, failure, request.isRepeatable())
              && place + 1 < order.size()) {
            ask(request, future, order, place + 1);
          } else {
            future.completeExceptionally(failure);
          }
        });
  }

  @Override
  public Batch batch() {
    return new Batch(
        (parts, waits) -> {
          // It has not left where sending fails.
          first(
              true,
              provider -> {
                Batch batch = provider.batch();
                List<Runnable> links = parts.stream().map(part -> linked(part, batch)).toList();
                if (waits) {
                  batch.sendAndWait();
                } else {
                  batch.send();
                }
                links.forEach(Runnable::run);
                return true;
              });
        });
  }

  private static <T> Runnable linked(Batch.Part<T> part, Batch batch) {
    CompletableFuture<T> inner = batch.add(part.request());
    return () ->
        inner.whenComplete(
            (value, failure) -> {
              if (failure == null) {
                part.future().complete(value);
              } else {
                part.fail(failure);
              }
            });
  }

  /** It stays with the provider that opened it. */
  @Override
  public <T> Subscription<T> subscribe(Request<String> open, Decoder<T> read) {
    return first(true, provider -> provider.subscribe(open, read));
  }

  @Override
  public void close() {
    all.forEach(Provider::close);
  }
}
