package deponent.rpc;

import deponent.eth.EthException;
import deponent.eth.ProtocolException;
import deponent.eth.RpcException;
import deponent.eth.TransportException;
import deponent.eth.TransportException.Kind;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/** Several providers, which are all asked, and of which some have to agree. */
final class Quorum implements Provider {
  private final int least;
  private final List<Provider> all;

  Quorum(int least, List<Provider> all) {
    if (least < 1 || least > all.size()) {
      throw new IllegalArgumentException(
          "from 1 to " + all.size() + " providers can agree, not " + least);
    }
    this.least = least;
    this.all = all;
  }

  /** The answers to one request. */
  private final class Vote<T> {
    private final String method;
    private final CompletableFuture<T> future;
    private final ReentrantLock lock = new ReentrantLock();
    private final Map<Object, Integer> counts = new HashMap<>();
    private int answers;
    private int most;
    private @Nullable Throwable last;

    Vote(String method, CompletableFuture<T> future) {
      this.method = method;
      this.future = future;
    }

    void of(@Nullable T value, @Nullable Throwable failed) {
      Throwable failure = failed instanceof CompletionException ? failed.getCause() : failed;
      boolean agreed = false;
      boolean impossible;
      lock.lock();
      try {
        answers++;
        if (failure == null || failure instanceof RpcException) {
          // Servers that agree on an error agree.
          Object key =
              failure instanceof RpcException error
                  ? Arrays.asList("error", error.code(), error.data())
                  : Arrays.asList("result", value);
          int count = counts.merge(key, 1, Integer::sum);
          most = Math.max(most, count);
          agreed = count == least;
        } else {
          last = failure;
        }
        impossible = most + all.size() - answers < least;
      } finally {
        lock.unlock();
      }
      if (agreed && failure == null) {
        future.complete(value);
      } else if (agreed) {
        future.completeExceptionally(Objects.requireNonNull(failure));
      } else if (impossible) {
        future.completeExceptionally(disagreement());
      }
    }

    private Throwable disagreement() {
      Throwable cause = last;
      if (counts.isEmpty() && cause != null) {
        return cause;
      }
      String what = method + ": " + most + " of " + all.size() + " servers agree, not " + least;
      return new ProtocolException(what, cause);
    }
  }

  @Override
  public <T> T request(Request<T> request) {
    CompletableFuture<T> future = requestAsync(request);
    try {
      return future.get();
    } catch (InterruptedException interrupted) {
      future.cancel(false);
      Thread.currentThread().interrupt();
      throw new TransportException(Kind.TIMEOUT, true, "interrupted", interrupted);
    } catch (ExecutionException failed) {
      Throwable failure = Objects.requireNonNull(failed.getCause());
      if (failure instanceof EthException) {
        failure.fillInStackTrace();
      }
      throw Call.unchecked(failure);
    }
  }

  @Override
  public <T> CompletableFuture<T> requestAsync(Request<T> request) {
    CompletableFuture<T> future = new CompletableFuture<>();
    Vote<T> vote = new Vote<>(request.method(), future);
    for (Provider one : all) {
      CompletableFuture<T> asked;
      try {
        asked = one.requestAsync(request);
      } catch (RuntimeException failure) {
        asked = CompletableFuture.failedFuture(failure);
      }
      asked.whenComplete(vote::of);
    }
    return future;
  }

  @Override
  public Batch batch() {
    return new Batch(
        (parts, waits) -> {
          List<Vote<?>> votes = new ArrayList<>();
          parts.forEach(part -> votes.add(vote(part)));
          for (Provider one : all) {
            Batch batch = one.batch();
            for (int i = 0; i < parts.size(); i++) {
              add(batch, parts.get(i), votes.get(i));
            }
            try {
              batch.send();
            } catch (EthException told) {
              // The votes have it by the futures.
            }
          }
          for (Batch.Part<?> part : parts) {
            if (waits && !part.await()) {
              parts.forEach(one -> one.future().cancel(false));
              return;
            }
          }
        });
  }

  private <T> Vote<T> vote(Batch.Part<T> part) {
    return new Vote<>(part.request().method(), part.future());
  }

  @SuppressWarnings("unchecked")
  private static <T> void add(Batch batch, Batch.Part<T> part, Vote<?> vote) {
    batch.add(part.request()).whenComplete(((Vote<T>) vote)::of);
  }

  @Override
  public <T> Subscription<T> subscribe(Request<String> open, Decoder<T> read) {
    throw new UnsupportedOperationException(
        "servers send values at different times: subscribe to one of them");
  }

  @Override
  public void close() {
    all.forEach(Provider::close);
  }
}
