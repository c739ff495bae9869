package deponent.rpc;

import deponent.eth.JsonReader;

/**
 * Reads the result of a request out of its JSON. It runs where the bytes arrive, so it waits for
 * nothing and calls nobody.
 *
 * @param <T> what it makes
 */
@FunctionalInterface
public interface Decoder<T> {
  /**
   * Reads one value. A result that may be {@code null} is an {@link java.util.Optional}.
   *
   * @throws deponent.eth.MalformedException if it is another one
   */
  T read(JsonReader json);
}
