package deponent.engine;

import deponent.eth.Bytes;
import deponent.eth.Hash;
import deponent.eth.JsonReader;
import deponent.eth.Keccak256;
import deponent.eth.MalformedException;
import deponent.eth.RlpWriter;
import java.math.BigInteger;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** A header as an object, which geth has where others have RLP in hex. */
final class HeaderJson {
  /** In the order of RLP; from {@code baseFeePerGas} on each came with a fork. */
  private static final List<String> MEMBERS =
      List.of(
          "parentHash",
          "sha3Uncles",
          "miner",
          "stateRoot",
          "transactionsRoot",
          "receiptsRoot",
          "logsBloom",
          "difficulty",
          "number",
          "gasLimit",
          "gasUsed",
          "timestamp",
          "extraData",
          "mixHash",
          "nonce",
          "baseFeePerGas",
          "withdrawalsRoot",
          "blobGasUsed",
          "excessBlobGas",
          "parentBeaconBlockRoot",
          "requestsHash",
          "blockAccessListHash",
          "slotNumber",
          "hash");

  private static final JsonReader.Names NAMES = JsonReader.Names.of(MEMBERS.toArray(String[]::new));
  private static final int HASH = MEMBERS.size() - 1;

  /** Those that every header has. */
  private static final int ALWAYS = 15;

  private HeaderJson() {}

  /**
   * Reads an object, and returns the header's RLP.
   *
   * @throws MalformedException if a member is missing, or it is not what its hash says
   */
  static Bytes read(JsonReader json) {
    @Nullable Object[] values = new Object[MEMBERS.size()];
    json.beginObject();
    while (json.hasNext()) {
      int member = json.nextName(NAMES);
      if (member < 0) {
        json.skipValue();
      } else if (!json.nextNull()) {
        values[member] = isNumber(member) ? json.nextBigQuantity() : json.nextBytes();
      }
    }
    json.endObject();
    RlpWriter rlp = new RlpWriter(1_024).list();
    boolean ended = false;
    for (int member = 0; member < HASH; member++) {
      Object value = values[member];
      if (value == null ? member < ALWAYS : ended) {
        String name = MEMBERS.get(value == null ? member : member - 1);
        throw new MalformedException("headers: " + name + " is missing");
      }
      ended = value == null;
      if (value instanceof Bytes bytes) {
        rlp.add(bytes);
      } else if (value instanceof BigInteger number) {
        rlp.add(number);
      }
    }
    byte[] header = rlp.end().toBytes();
    if (values[HASH] instanceof Bytes hash) {
      Hash found = Keccak256.hash(header);
      if (!found.toString().equals(hash.toString())) {
        throw new MalformedException("headers: one has the hash " + found + ", not " + hash);
      }
    }
    return Bytes.of(header);
  }

  private static boolean isNumber(int member) {
    return member >= 7 && member <= 11
        || member == 15
        || member == 17
        || member == 18
        || member == 22;
  }
}
