package deponent.client;

import deponent.eth.Bytes;
import deponent.eth.Hash;
import deponent.eth.JsonReader;
import org.jspecify.annotations.Nullable;

/**
 * A block that a server found invalid.
 *
 * @param hash its hash
 * @param block what is in it
 * @param rlp itself in RLP
 */
public record BadBlock(Hash hash, Block block, Bytes rlp) {
  private static final Members MEMBERS = Members.of("hash", "block", "rlp");

  static BadBlock read(JsonReader json) {
    Parts parts = new Parts();
    MEMBERS.read(json, parts);
    return parts.made();
  }

  private static final class Parts implements Members.Taker {
    private @Nullable Hash hash;
    private @Nullable Block block;
    private @Nullable Bytes rlp;

    @Override
    public void take(String name, JsonReader json) {
      switch (name) {
        case "hash" -> hash = json.nextHash();
        case "block" -> block = Block.read(json);
        case "rlp" -> rlp = json.nextBytes();
        default -> throw new AssertionError(name);
      }
    }

    BadBlock made() {
      return new BadBlock(
          Members.the("hash", hash), Members.the("block", block), Members.the("rlp", rlp));
    }
  }
}
