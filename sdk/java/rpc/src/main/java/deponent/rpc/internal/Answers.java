package deponent.rpc.internal;

import deponent.eth.EthException;
import deponent.eth.JsonReader;
import deponent.eth.RpcException;
import deponent.rpc.Decoder;
import org.jspecify.annotations.Nullable;

/** Takes what a server says: the requests in flight of a connection. */
public interface Answers {
  /** What reads the result of the request with this id; null where none waits for it. */
  @Nullable Decoder<?> decoder(long id);

  /** The result of a request. */
  void answered(long id, Object result);

  /** Why a request has no result. */
  void failed(long id, EthException reason);

  /** An error that names no request: of all that were sent in one message, or of none. */
  void refused(RpcException reason);

  /** A notification of a subscription, whose value is read here. */
  void notified(String subscription, JsonReader value);
}
