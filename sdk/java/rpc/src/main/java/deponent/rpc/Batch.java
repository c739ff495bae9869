package deponent.rpc;

import java.util.concurrent.CompletableFuture;

/**
 * Requests that are sent in one message (a batch of JSON-RPC). It belongs to one thread.
 *
 * <pre>{@code
 * Batch batch = provider.batch();
 * CompletableFuture<Wei> balance = batch.add(Eth.balance(address));
 * batch.send();
 * balance.join();
 * }</pre>
 */
public interface Batch {
  /**
   * Adds a request. Its future is completed after {@link #send}.
   *
   * @throws IllegalStateException if the batch was sent
   */
  <T> CompletableFuture<T> add(Request<T> request);

  /**
   * Sends all requests. One without any does nothing.
   *
   * @throws IllegalStateException if the batch was sent
   */
  void send();
}
