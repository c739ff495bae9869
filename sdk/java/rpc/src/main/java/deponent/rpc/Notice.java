package deponent.rpc;

import java.time.Instant;

/**
 * An element of a subscription.
 *
 * @param <T> the type of its values
 */
public sealed interface Notice<T> {
  /**
   * A value that the server sent.
   *
   * @param value the value
   * @param <T> its type
   */
  record Value<T>(T value) implements Notice<T> {}

  /**
   * The place of values that were lost.
   *
   * @param since when the first of them may have been lost
   * @param why the reason
   * @param <T> the type of the values
   */
  record Gap<T>(Instant since, String why) implements Notice<T> {}
}
