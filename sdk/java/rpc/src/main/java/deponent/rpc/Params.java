package deponent.rpc;

import deponent.eth.JsonWriter;

/** Writes the parameters of a request. */
@FunctionalInterface
public interface Params {
  /** No parameters. */
  Params NONE = json -> {};

  /**
   * Writes the elements of the array of parameters, without its brackets. It may be called more
   * than once, when a request is sent again.
   */
  void write(JsonWriter json);
}
