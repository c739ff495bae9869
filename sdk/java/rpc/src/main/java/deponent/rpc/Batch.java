package deponent.rpc;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.function.Consumer;

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

  private final Consumer<List<Part<?>>> sender;
  private List<Part<?>> parts = new ArrayList<>();

  Batch(Consumer<List<Part<?>>> sender) {
    this.sender = sender;
  }

  /** A request with the future of its result. */
  record Part<T>(Request<T> request, CallFuture<T> future) {
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
   * Sends what was added since the last time, and does not wait for answers.
   *
   * @throws deponent.eth.TransportException if it cannot be sent; the futures fail with it, too
   */
  public void send() {
    List<Part<?>> all = parts;
    parts = new ArrayList<>();
    for (int from = 0; from < all.size(); from += MOST) {
      List<Part<?>> some = all.subList(from, Math.min(all.size(), from + MOST));
      try {
        sender.accept(some);
      } catch (RuntimeException failure) {
        all.subList(from, all.size()).forEach(part -> part.fail(failure));
        throw failure;
      }
    }
  }
}
