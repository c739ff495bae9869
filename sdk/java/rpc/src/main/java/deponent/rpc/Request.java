package deponent.rpc;

import deponent.eth.JsonReader;
import java.time.Duration;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * A call of a JSON-RPC method.
 *
 * @param <T> the type of its result
 */
public final class Request<T> {
  private static final Set<String> READS =
      Set.of(
          "eth_accounts",
          "eth_baseFee",
          "eth_blobBaseFee",
          "eth_blockNumber",
          "eth_call",
          "eth_callMany",
          "eth_chainId",
          "eth_coinbase",
          "eth_createAccessList",
          "eth_estimateGas",
          "eth_feeHistory",
          "eth_gasPrice",
          "eth_hashrate",
          "eth_maxPriorityFeePerGas",
          "eth_mining",
          "eth_protocolVersion",
          "eth_sendRawTransaction",
          "eth_simulateV1",
          "eth_syncing",
          "debug_executionWitness");

  private static final Set<String> FAMILIES =
      Set.of("debug_get", "debug_trace", "eth_get", "net_", "trace_", "txpool_", "web3_");

  private final String method;
  private final Params params;
  private final Decoder<T> result;
  private final @Nullable Duration timeout;
  private final boolean repeatable;

  private Request(
      String method,
      Params params,
      Decoder<T> result,
      @Nullable Duration timeout,
      boolean repeatable) {
    this.method = Objects.requireNonNull(method);
    this.params = Objects.requireNonNull(params);
    this.result = Objects.requireNonNull(result);
    this.timeout = timeout;
    this.repeatable = repeatable;
  }

  /**
   * A call of {@code method}. It is repeatable if the method is known to read alone, or is {@code
   * eth_sendRawTransaction}, whose transaction runs once however often it is sent.
   */
  public static <T> Request<T> of(String method, Params params, Decoder<T> result) {
    if (method.isBlank()) {
      throw new IllegalArgumentException("a request has a method");
    }
    return new Request<>(method, params, result, null, isRead(method));
  }

  /** A call of {@code method} whose result is kept as its JSON. */
  public static Request<String> ofJson(String method, Params params) {
    return of(method, params, JsonReader::nextJson);
  }

  private static boolean isRead(String method) {
    // What a filter gave is not given again.
    return READS.contains(method)
        || !method.equals("eth_getFilterChanges") && FAMILIES.stream().anyMatch(method::startsWith);
  }

  /**
   * The same with a deadline of its own, counted from the call on.
   *
   * @throws IllegalArgumentException if it is not positive
   */
  public Request<T> timeout(Duration timeout) {
    if (timeout.isNegative() || timeout.isZero()) {
      throw new IllegalArgumentException("a timeout is positive: " + timeout);
    }
    return new Request<>(method, params, result, timeout, repeatable);
  }

  /** The same, which may be sent again although it may have run. */
  public Request<T> repeatable() {
    return new Request<>(method, params, result, timeout, true);
  }

  /** The method's name. */
  public String method() {
    return method;
  }

  /** The parameters. */
  public Params params() {
    return params;
  }

  /** The reader of the result. */
  public Decoder<T> result() {
    return result;
  }

  /** The deadline of its own, if it has one. */
  public Optional<Duration> timeout() {
    return Optional.ofNullable(timeout);
  }

  /** Whether it may be sent again although it may have run. */
  public boolean isRepeatable() {
    return repeatable;
  }

  @Override
  public String toString() {
    return method;
  }
}
