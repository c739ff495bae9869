package deponent.eth;

import org.jspecify.annotations.Nullable;

/** Bytes or a text from outside that do not decode; the message says where and why. */
public final class MalformedException extends EthException {
  private static final long serialVersionUID = 1;

  /** With the place and the reason as {@code message}. */
  public MalformedException(String message) {
    super(message, null);
  }

  /** With the place and the reason as {@code message}, and what was thrown there. */
  public MalformedException(String message, @Nullable Throwable cause) {
    super(message, cause);
  }
}
