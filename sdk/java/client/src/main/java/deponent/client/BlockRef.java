package deponent.client;

import deponent.eth.Hash;
import deponent.eth.JsonReader;
import org.jspecify.annotations.Nullable;

/**
 * A block by its number and hash.
 *
 * @param number the number
 * @param hash the hash
 */
public record BlockRef(long number, Hash hash) {
  private static final Members MEMBERS = Members.of("number", "hash");

  static BlockRef read(JsonReader json) {
    Parts parts = new Parts();
    MEMBERS.read(json, parts);
    return parts.made();
  }

  private static final class Parts implements Members.Taker {
    private long number = -1;
    private @Nullable Hash hash;

    @Override
    public void take(String name, JsonReader json) {
      switch (name) {
        case "number" -> number = Members.number(json);
        case "hash" -> hash = json.nextHash();
        default -> throw new AssertionError(name);
      }
    }

    BlockRef made() {
      return new BlockRef(Members.the("number", number), Members.the("hash", hash));
    }
  }
}
