package deponent.eth;

import org.jspecify.annotations.Nullable;

/** Why there is no answer. What a caller gave wrongly is an {@link IllegalArgumentException}. */
public abstract sealed class EthException extends RuntimeException
    permits MalformedException,
        TransportException,
        RpcException,
        ProtocolException,
        ReplacedException {
  private static final long serialVersionUID = 1;

  EthException(String message, @Nullable Throwable cause) {
    super(message, cause);
  }
}
