package deponent.eth;

import org.jspecify.annotations.Nullable;

/** The server answered with an error of JSON-RPC. */
public sealed class RpcException extends EthException permits RevertException {
  private static final long serialVersionUID = 1;

  private final int code;
  private final @Nullable String data;

  /** With the error's members; {@code data} is its JSON, where there is one. */
  public RpcException(int code, String message, @Nullable String data) {
    super(message, null);
    this.code = code;
    this.data = data;
  }

  /** The error's code, such as -32601 where there is no such method. */
  public int code() {
    return code;
  }

  /** The error's data as JSON, or null where it has none. */
  public @Nullable String data() {
    return data;
  }
}
