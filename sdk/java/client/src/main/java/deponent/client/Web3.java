package deponent.client;

import deponent.eth.Bytes;
import deponent.eth.Hash;
import deponent.eth.JsonReader;
import deponent.rpc.Params;
import deponent.rpc.Request;

/** The requests of {@code web3_*}: the server itself. */
public final class Web3 {
  private Web3() {}

  /** {@code web3_clientVersion}: the server's name and version. */
  public static Request<String> clientVersion() {
    return Eth.read("web3_clientVersion", Params.NONE, JsonReader::nextString);
  }

  /** {@code web3_sha3}: the keccak-256 of bytes, as the server has it. */
  public static Request<Hash> sha3(Bytes bytes) {
    return Eth.read("web3_sha3", json -> json.value(bytes), JsonReader::nextHash);
  }
}
