package deponent.client;

import deponent.eth.Address;
import deponent.eth.JsonReader;
import deponent.eth.JsonWriter;
import org.jspecify.annotations.Nullable;

/**
 * A withdrawal from the beacon chain (EIP-4895).
 *
 * @param index its number among all withdrawals
 * @param validatorIndex whose it is
 * @param address who receives it
 * @param amount in gwei
 */
public record Withdrawal(long index, long validatorIndex, Address address, long amount) {
  private static final Members MEMBERS = Members.of("index", "validatorIndex", "address", "amount");

  static Withdrawal read(JsonReader json) {
    Parts parts = new Parts();
    MEMBERS.read(json, parts);
    return new Withdrawal(
        Members.the("index", parts.index),
        Members.the("validatorIndex", parts.validatorIndex),
        Members.the("address", parts.address),
        Members.the("amount", parts.amount));
  }

  private static final class Parts implements Members.Taker {
    private long index = -1;
    private long validatorIndex = -1;
    private @Nullable Address address;
    private long amount = -1;

    @Override
    public void take(String name, JsonReader json) {
      switch (name) {
        case "index" -> index = json.nextQuantity();
        case "validatorIndex" -> validatorIndex = json.nextQuantity();
        case "address" -> address = json.nextAddress();
        case "amount" -> amount = json.nextQuantity();
        default -> throw new AssertionError(name);
      }
    }
  }

  void write(JsonWriter json) {
    json.beginObject();
    json.name("index").quantity(index);
    json.name("validatorIndex").quantity(validatorIndex);
    json.name("address").value(address);
    json.name("amount").quantity(amount);
    json.endObject();
  }
}
