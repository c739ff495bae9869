package deponent.bench;

import java.util.Map;

/** Brane, of the jars in {@code DEPONENT_BRANE}. */
public interface Brane {
  /** What it does without a connection, by the names of {@link Inputs}. */
  Map<String, Operation> operations();

  /**
   * A connection by WebSocket.
   *
   * @param blocking whether its thread waits as {@code LITE_BLOCKING} does, and not by yielding
   */
  Contender webSocket(String url, boolean blocking) throws Exception;

  /** A client of HTTP. */
  Contender http(String url) throws Exception;
}
