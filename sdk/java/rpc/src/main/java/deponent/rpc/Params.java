package deponent.rpc;

import deponent.eth.JsonWriter;

/**
 * Writes the parameters of a request, each a value of JSON.
 *
 * <pre>{@code
 * Params params = json -> json.value(address).value("latest");
 * }</pre>
 */
@FunctionalInterface
public interface Params {
  /** No parameters. */
  Params NONE = json -> {};

  /** Writes all values, one after the other. It may be asked more than once. */
  void write(JsonWriter json);
}
