package deponent.rpc;

import deponent.eth.EthException;
import java.io.IOException;

/** A fault of the peer after which the connection cannot be used. */
final class Fatal extends IOException {
  private static final long serialVersionUID = 1;

  /** The code with which a WebSocket is closed. */
  final int code;

  final EthException fault;

  Fatal(int code, EthException fault) {
    super(fault.getMessage(), fault);
    this.code = code;
    this.fault = fault;
  }
}
