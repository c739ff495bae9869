package deponent.client;

import deponent.eth.JsonReader;
import deponent.rpc.Params;
import deponent.rpc.Request;

/** The requests of {@code net_*}: a server and its peers. */
public final class Net {
  private Net() {}

  /** {@code net_version}: the network's id, which is the chain's as a rule. */
  public static Request<String> version() {
    return Eth.read("net_version", Params.NONE, JsonReader::nextString);
  }

  /** {@code net_listening}: whether other nodes can connect. */
  public static Request<Boolean> listening() {
    return Eth.read("net_listening", Params.NONE, JsonReader::nextBoolean);
  }

  /** {@code net_peerCount}: the number of nodes that it is connected with. */
  public static Request<Long> peerCount() {
    return Eth.read("net_peerCount", Params.NONE, Members::number);
  }
}
