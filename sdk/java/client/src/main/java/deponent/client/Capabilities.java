package deponent.client;

import deponent.eth.JsonReader;
import java.util.Optional;
import java.util.OptionalLong;
import org.jspecify.annotations.Nullable;

/**
 * What data a server has.
 *
 * @param head the head of its chain
 * @param state states
 * @param tx transactions by their hash
 * @param logs logs
 * @param receipts receipts
 * @param blocks blocks
 * @param stateproofs proofs of states
 */
public record Capabilities(
    BlockRef head, Data state, Data tx, Data logs, Data receipts, Data blocks, Data stateproofs) {
  private static final Members MEMBERS =
      Members.of("head", "state", "tx", "logs", "receipts", "blocks", "stateproofs");

  /**
   * From which block on a server has a kind of data.
   *
   * @param disabled whether it has none
   * @param oldestBlock the number of the oldest block that it has the data of
   * @param deleteStrategy what it deletes, if it does
   */
  public record Data(
      boolean disabled, OptionalLong oldestBlock, Optional<DeleteStrategy> deleteStrategy) {
    private static final Members MEMBERS = Members.of("disabled", "oldestBlock", "deleteStrategy");

    static Data read(JsonReader json) {
      Parts parts = new Parts();
      MEMBERS.read(json, parts);
      return parts.made();
    }

    private static final class Parts implements Members.Taker {
      private boolean disabled;
      private long oldestBlock = -1;
      private @Nullable DeleteStrategy deleteStrategy;

      @Override
      public void take(String name, JsonReader json) {
        switch (name) {
          case "disabled" -> disabled = json.nextBoolean();
          case "oldestBlock" -> oldestBlock = json.nextQuantity();
          case "deleteStrategy" -> deleteStrategy = DeleteStrategy.read(json);
          default -> throw new AssertionError(name);
        }
      }

      Data made() {
        return new Data(
            disabled, Members.optional(oldestBlock), Optional.ofNullable(deleteStrategy));
      }
    }
  }

  /**
   * What data a server deletes.
   *
   * @param type {@code window} where it keeps that of the newest blocks, or another
   * @param retentionBlocks how many blocks it keeps the data of
   */
  public record DeleteStrategy(String type, OptionalLong retentionBlocks) {
    private static final Members MEMBERS = Members.of("type", "retentionBlocks");

    static DeleteStrategy read(JsonReader json) {
      Parts parts = new Parts();
      MEMBERS.read(json, parts);
      return parts.made();
    }

    private static final class Parts implements Members.Taker {
      private @Nullable String type;
      private long retentionBlocks = -1;

      @Override
      public void take(String name, JsonReader json) {
        switch (name) {
          case "type" -> type = json.nextString();
          case "retentionBlocks" -> retentionBlocks = json.nextQuantity();
          default -> throw new AssertionError(name);
        }
      }

      DeleteStrategy made() {
        return new DeleteStrategy(Members.the("type", type), Members.optional(retentionBlocks));
      }
    }
  }

  static Capabilities read(JsonReader json) {
    Parts parts = new Parts();
    MEMBERS.read(json, parts);
    return parts.made();
  }

  private static final class Parts implements Members.Taker {
    private @Nullable BlockRef head;
    private @Nullable Data state;
    private @Nullable Data tx;
    private @Nullable Data logs;
    private @Nullable Data receipts;
    private @Nullable Data blocks;
    private @Nullable Data stateproofs;

    @Override
    public void take(String name, JsonReader json) {
      switch (name) {
        case "head" -> head = BlockRef.read(json);
        case "state" -> state = Data.read(json);
        case "tx" -> tx = Data.read(json);
        case "logs" -> logs = Data.read(json);
        case "receipts" -> receipts = Data.read(json);
        case "blocks" -> blocks = Data.read(json);
        case "stateproofs" -> stateproofs = Data.read(json);
        default -> throw new AssertionError(name);
      }
    }

    Capabilities made() {
      return new Capabilities(
          Members.the("head", head),
          Members.the("state", state),
          Members.the("tx", tx),
          Members.the("logs", logs),
          Members.the("receipts", receipts),
          Members.the("blocks", blocks),
          Members.the("stateproofs", stateproofs));
    }
  }
}
