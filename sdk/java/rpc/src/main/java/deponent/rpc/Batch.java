package deponent.rpc;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;

/**
 * Requests that leave together, in one array of JSON. It belongs to one thread. Arrays of more than
 * 1,000 requests are sent in parts. A request that fails leaves the others alone.
 *
 * <pre>{@code
 * Batch batch = provider.batch();
 * CompletableFuture<Long> chain = batch.add(chainId);
 * CompletableFuture<Long> head = batch.add(blockNumber);
 * batch.send();
 * System.out.println(chain.join() + " " + head.join());
 * }</pre>
 */
public final class Batch {
  /** Requests in one array at most: servers refuse more. */
  static final int MOST = 1_000;

  private final Sender sender;
  private List<Part<?>> parts = new ArrayList<>();

  Batch(Sender sender) {
    this.sender = sender;
  }

  /** Sends parts of a batch, and waits for their ends where that is asked for. */
  interface Sender {
    void send(List<Part<?>> parts, boolean waits);
  }

  /** A request with the future of its result. */
  record Part<T>(Request<T> request, CallFuture<T> future) {
    /** Waits for its end; false if the thread is interrupted before. */
    boolean await() {
      try {
        future.get();
      } catch (ExecutionException | CancellationException ended) {
        // Whoever asks the future learns of it.
      } catch (InterruptedException interrupted) {
        Thread.currentThread().interrupt();
        return false;
      }
      return true;
    }

    void fail(Throwable failure) {
      future.completeExceptionally(failure);
    }
  }

  /**
   * Adds a request, whose result comes after {@link #send}. It is not retried; where a WebSocket or
   * Unix socket is lost, a repeatable one is sent again, alone.
   */
  public <T> CompletableFuture<T> add(Request<T> request) {
    Part<T> part = new Part<>(request, new CallFuture<>());
    parts.add(part);
    return part.future;
  }

  /**
   * Sends what was added since the last time, and does not wait for the answers.
   *
   * @throws deponent.eth.TransportException if it cannot be sent; the futures fail with it, too
   */
  public void send() {
    send(false);
  }

  /**
   * Sends what was added since the last time, and waits for the answers. It is the faster way where
   * they are waited for: no other thread has to wake this one. Afterwards all futures are done;
   * those on which something depends are as soon as the executor of callbacks has come to it. An
   * interrupt ends the wait, and stays set; what is not answered has failed then.
   *
   * @throws deponent.eth.TransportException if it cannot be sent; the futures fail with it, too
   */
  public void sendAndWait() {
    send(true);
  }

  private void send(boolean waits) {
    List<Part<?>> all = parts;
    parts = new ArrayList<>();
    for (int from = 0; from < all.size(); from += MOST) {
      List<Part<?>> some = all.subList(from, Math.min(all.size(), from + MOST));
      try {
        sender.send(some, waits);
      } catch (RuntimeException failure) {
        all.subList(from, all.size()).forEach(part -> part.fail(failure));
        throw failure;
      }
    }
  }
}
