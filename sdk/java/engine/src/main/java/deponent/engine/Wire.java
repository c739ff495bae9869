package deponent.engine;

/** The form in which calls and answers travel. Answers are the same over each. */
public enum Wire {
  /**
   * JSON-RPC over HTTP, WebSocket or a Unix socket, which every client of the network speaks, at
   * twice the bytes. It has no public keys, no timings and no stateless inputs.
   */
  JSON,
  /** The REST Engine API (execution-apis #793): SSZ in the bodies. */
  SSZ,
  /**
   * The same over a Unix socket, with large answers as memory of the server: mapped, and not
   * copied. It needs the module {@code deponent-descriptor}, so Java 22 and Linux.
   */
  DESCRIPTOR
}
