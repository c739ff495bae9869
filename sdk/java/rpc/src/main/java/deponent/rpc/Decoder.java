package deponent.rpc;

import deponent.eth.JsonReader;

/**
 * Reads a result.
 *
 * @param <T> the type of results
 */
@FunctionalInterface
public interface Decoder<T> {
  /**
   * Reads the value that is next. It runs on the connection's thread while the bytes arrive: it
   * must not block, nor ask the provider for something.
   *
   * @throws deponent.eth.MalformedException if the value has another form; the caller gets a {@link
   *     deponent.eth.ProtocolException} then
   */
  T read(JsonReader json);
}
