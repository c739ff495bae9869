package deponent.bench;

import java.util.concurrent.Callable;
import java.util.function.Function;

/**
 * Work of a library that is measured.
 *
 * @param work what is done once
 * @param text its result as a text that is the same for all libraries
 */
public record Operation(Callable<Object> work, Function<Object, String> text) {
  /** An operation with a result of one type. */
  @SuppressWarnings("unchecked")
  public static <T> Operation of(Callable<T> work, Function<T, String> text) {
    return new Operation((Callable<Object>) work, (Function<Object, String>) text);
  }
}
