package deponent.client;

import deponent.eth.JsonReader;
import java.util.OptionalLong;

/**
 * How far a server is that catches up with the chain.
 *
 * @param startingBlock the number of the block where it began, where the server says it
 * @param currentBlock the number of the block where it is
 * @param highestBlock the number of the newest block that it knows
 */
public record SyncStatus(OptionalLong startingBlock, long currentBlock, long highestBlock) {
  private static final Members MEMBERS =
      Members.of("startingBlock", "currentBlock", "highestBlock");

  static SyncStatus read(JsonReader json) {
    Parts parts = new Parts();
    MEMBERS.read(json, parts);
    return parts.made();
  }

  private static final class Parts implements Members.Taker {
    private long startingBlock = -1;
    private long currentBlock = -1;
    private long highestBlock = -1;

    @Override
    public void take(String name, JsonReader json) {
      switch (name) {
        case "startingBlock" -> startingBlock = json.nextQuantity();
        case "currentBlock" -> currentBlock = json.nextQuantity();
        case "highestBlock" -> highestBlock = json.nextQuantity();
        default -> throw new AssertionError(name);
      }
    }

    SyncStatus made() {
      return new SyncStatus(
          Members.optional(startingBlock),
          Members.the("currentBlock", currentBlock),
          Members.the("highestBlock", highestBlock));
    }
  }
}
