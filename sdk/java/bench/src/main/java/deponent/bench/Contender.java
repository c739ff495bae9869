package deponent.bench;

/** A connection of a library, on which {@code eth_blockNumber} is called. */
public interface Contender extends AutoCloseable {
  /** One call, until its answer is there. */
  void call() throws Exception;

  /** {@code count} calls in one JSON-RPC batch, or what the library has instead. */
  default void batch(int count) throws Exception {
    throw new UnsupportedOperationException();
  }

  /** {@code count} calls that are in flight together, each a message of its own. */
  default void pipelined(int count) throws Exception {
    throw new UnsupportedOperationException();
  }

  @Override
  void close() throws Exception;
}
