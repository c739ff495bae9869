package deponent.eth;

import org.jspecify.annotations.Nullable;

/** No answer came over a connection. */
public final class TransportException extends EthException {
  private static final long serialVersionUID = 1;

  private final Kind kind;
  private final boolean mayHaveRun;

  /** With a reason; {@code mayHaveRun} says whether the request may have reached the server. */
  public TransportException(
      Kind kind, boolean mayHaveRun, String message, @Nullable Throwable cause) {
    super(message, cause);
    this.kind = kind;
    this.mayHaveRun = mayHaveRun;
  }

  /** The fault, by what a caller does next. */
  public Kind kind() {
    return kind;
  }

  /** Whether the server may have got the request, so that sending it again may run it twice. */
  public boolean mayHaveRun() {
    return mayHaveRun;
  }

  /** The faults of a connection. */
  public enum Kind {
    /** Nobody listens at the address, or it cannot be resolved. */
    CONNECT,
    /** The certificate is not trusted, is another host's, or the handshake failed. */
    TLS,
    /** The server refused the credentials or the origin (401, 403). */
    REFUSED,
    /** The deadline passed. */
    TIMEOUT,
    /** The connection ended before the answer was there. */
    CLOSED,
    /** Too many requests are in flight, here or at the server (429, 503). */
    BUSY
  }
}
