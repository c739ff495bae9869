package deponent.rpc;

import java.util.List;
import java.util.concurrent.CompletableFuture;

/**
 * A server of JSON-RPC, or several. All methods may be called from many threads; blocking ones
 * belong on virtual threads where there are many. A provider is made once and shared: it keeps its
 * connections, and makes lost ones anew.
 *
 * <pre>{@code
 * try (Provider provider = Provider.at("wss://eth.example/KEY").connect()) {
 *   Request<Long> number = Request.of("eth_blockNumber", Params.NONE, JsonReader::nextQuantity);
 *   long head = provider.request(number);
 * }
 * }</pre>
 */
public interface Provider extends AutoCloseable {
  /**
   * Begins a connection to {@code ws://}, {@code wss://}, {@code http://}, {@code https://} or
   * {@code unix:/path}.
   *
   * @throws IllegalArgumentException if it is none of them
   */
  static ProviderBuilder at(String address) {
    return new ProviderBuilder(Endpoint.of(address));
  }

  /**
   * A provider that sends each request to the first of {@code inOrder} that works. The next one
   * gets it where there is no connection, no answer in time, or too many requests are in flight.
   * One that failed is tried again after 30 s. A request that may have run goes on to the next one
   * only if it is repeatable. None of them waits for a connection that was lost, or is not there
   * yet ({@link ProviderBuilder#connectInBackground}).
   */
  static Provider failover(Provider... inOrder) {
    return new Failover(List.of(inOrder));
  }

  /**
   * A provider that sends each request to all of {@code of}, and returns the result that {@code
   * least} of them agree on, by {@code equals}. Requests should name a block by its number or hash:
   * at a tag, servers rightly differ.
   *
   * @throws IllegalArgumentException if {@code least} is not from 1 to their number
   */
  static Provider quorum(int least, Provider... of) {
    return new Quorum(least, List.of(of));
  }

  /**
   * Sends a request, and waits for its result. An interrupt ends the wait within 0.1 s, and stays
   * set.
   *
   * @throws deponent.eth.RpcException if the server answers with an error
   * @throws deponent.eth.TransportException without an answer
   * @throws deponent.eth.ProtocolException if the answer is none, or has another form
   * @throws IllegalStateException on the thread that reads the connection, in a {@link Decoder} for
   *     example, which would wait for itself
   */
  <T> T request(Request<T> request);

  /**
   * Sends a request, and returns the future of its result. Where as many requests are in flight as
   * may be, it waits for one of them to end, up to the deadline. The future fails with what {@link
   * #request} throws. Cancelling it gives its place back.
   */
  <T> CompletableFuture<T> requestAsync(Request<T> request);

  /** Begins a JSON-RPC batch: requests that leave in one array, and are answered so. */
  Batch batch();

  /**
   * Subscribes, and waits until the server has confirmed it.
   *
   * @param open the request that opens it, such as {@code eth_subscribe}, with the subscription's
   *     id as result; the method that ends it has {@code unsubscribe} in its place
   * @param read the reader of each value
   * @throws UnsupportedOperationException over HTTP
   */
  <T> Subscription<T> subscribe(Request<String> open, Decoder<T> read);

  /**
   * Closes the connections, and ends subscriptions and requests in flight. A provider of several
   * closes these, too. Later requests fail as CLOSED.
   */
  @Override
  void close();
}
