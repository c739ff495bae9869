package deponent.client;

import deponent.eth.Address;
import deponent.eth.Authorization;
import deponent.eth.JsonReader;
import deponent.eth.JsonWriter;
import deponent.eth.MalformedException;
import deponent.eth.Signature;
import java.math.BigInteger;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** Authorizations (EIP-7702) in JSON. */
final class Authorizations {
  private static final Members MEMBERS =
      Members.of("chainId", "address", "nonce", "yParity", "r", "s");

  private Authorizations() {}

  static Authorization.Signed read(JsonReader json) {
    Parts parts = new Parts();
    MEMBERS.read(json, parts);
    BigInteger nonce = Members.the("nonce", parts.nonce);
    if (nonce.bitLength() > 64) {
      throw new MalformedException("nonce: more than 64 bits: 0x" + nonce.toString(16));
    }
    Authorization authorization =
        new Authorization(
            Members.the("chainId", parts.chainId),
            Members.the("address", parts.address),
            nonce.longValue());
    return authorization.signed(
        new Signature(
            Members.the("r", parts.r),
            Members.the("s", parts.s),
            (int) Members.the("yParity", parts.yParity)));
  }

  private static final class Parts implements Members.Taker {
    private @Nullable BigInteger chainId;
    private @Nullable Address address;
    private @Nullable BigInteger nonce;
    private long yParity = -1;
    private @Nullable BigInteger r;
    private @Nullable BigInteger s;

    @Override
    public void take(String name, JsonReader json) {
      switch (name) {
        case "chainId" -> chainId = json.nextBigQuantity();
        case "address" -> address = json.nextAddress();
        case "nonce" -> nonce = json.nextBigQuantity();
        case "yParity" -> yParity = Members.octet(json);
        case "r" -> r = json.nextBigQuantity();
        case "s" -> s = json.nextBigQuantity();
        default -> throw new AssertionError(name);
      }
    }
  }

  static void write(List<Authorization.Signed> all, JsonWriter json) {
    json.beginArray();
    for (Authorization.Signed one : all) {
      json.beginObject().name("chainId").quantity(one.authorization().chainId());
      json.name("address").value(one.authorization().address());
      String nonce = Long.toUnsignedString(one.authorization().nonce());
      json.name("nonce").quantity(new BigInteger(nonce));
      json.name("yParity").quantity(one.signature().yParity());
      json.name("r").quantity(one.signature().r()).name("s").quantity(one.signature().s());
      json.endObject();
    }
    json.endArray();
  }
}
