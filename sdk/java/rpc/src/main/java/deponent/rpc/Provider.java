package deponent.rpc;

import java.util.concurrent.CompletableFuture;

/**
 * Sends requests to a server, or to several. Any number of threads use it at a time; on virtual
 * threads, waiting costs next to nothing.
 */
public interface Provider extends AutoCloseable {
  /**
   * Sends a request and waits for its result.
   *
   * @throws deponent.eth.TransportException if no answer came
   * @throws deponent.eth.RpcException if the answer is an error
   * @throws deponent.eth.ProtocolException if the answer cannot be read
   */
  <T> T request(Request<T> request);

  /** Sends a request. The future fails with what {@link #request} throws. */
  <T> CompletableFuture<T> requestAsync(Request<T> request);

  /** Collects requests, to be sent in one message. */
  Batch batch();

  /** Ends all that is in flight, and the connections. */
  @Override
  void close();
}
