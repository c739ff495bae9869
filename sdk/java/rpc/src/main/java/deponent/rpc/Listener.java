package deponent.rpc;

/**
 * Is told of what a provider does, to count and measure it. Its methods are called on threads of
 * callers and connections: they must be quick. What they throw is dropped.
 */
public interface Listener {
  /** The ends of a request. */
  enum Outcome {
    /** There was a result. */
    RESULT,
    /** The server answered with an error. */
    ERROR,
    /** The deadline passed. */
    TIMEOUT,
    /** There was no answer for another reason, or one that does not decode. */
    FAILED
  }

  /** A request was given to a connection. */
  default void requested(String method) {}

  /**
   * A request has ended.
   *
   * @param nanos the time since it was given to the connection, in nanoseconds
   * @param bytes the size of the answer's JSON, 0 without an answer
   */
  default void answered(String method, long nanos, long bytes, Outcome outcome) {}

  /** The connection to {@code address} was lost. */
  default void lost(String address, Throwable why) {}

  /** The connection to {@code address} is there again. */
  default void restored(String address) {}

  /** The server, or the rate set here, held a request back for {@code nanos}. */
  default void throttled(String method, long nanos) {}

  /** A subscription's reader is too slow: its oldest value was dropped. */
  default void slow(String method) {}
}
