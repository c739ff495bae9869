package deponent.eth;

import org.jspecify.annotations.Nullable;

/** A peer sent what is no answer: no JSON-RPC, no HTTP, or a result of another form. */
public final class ProtocolException extends EthException {
  private static final long serialVersionUID = 1;

  /** With the place and the reason as {@code message}. */
  public ProtocolException(String message) {
    super(message, null);
  }

  /** With the place and the reason as {@code message}, and what was thrown there. */
  public ProtocolException(String message, @Nullable Throwable cause) {
    super(message, cause);
  }
}
