package deponent.client;

/**
 * An element of a {@link Feed}.
 *
 * @param <T> the type of its values
 */
public sealed interface Update<T> {
  /**
   * A value of a block that is in the chain.
   *
   * @param value the value
   * @param <T> its type
   */
  record Added<T>(T value) implements Update<T> {}

  /**
   * A value that was added before, of a block that left the chain. It is the one that was added
   * last of those that were not removed.
   *
   * @param value the value
   * @param <T> its type
   */
  record Removed<T>(T value) implements Update<T> {}

  /**
   * Blocks of which nothing is known: what was added of them may have left the chain, and what they
   * have now is not told.
   *
   * @param from the first block's number
   * @param to the last block's number
   * @param why the reason
   * @param <T> the type of the values
   */
  record Gap<T>(long from, long to, String why) implements Update<T> {}
}
