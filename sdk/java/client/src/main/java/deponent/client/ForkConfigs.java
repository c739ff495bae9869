package deponent.client;

import deponent.eth.Address;
import deponent.eth.Bytes;
import deponent.eth.JsonReader;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * The rules of a chain (EIP-7910).
 *
 * @param current of the head
 * @param next of the next fork that is known
 * @param last of the last fork that is known
 */
public record ForkConfigs(Fork current, Optional<Fork> next, Optional<Fork> last) {
  private static final Members MEMBERS = Members.of("current", "next", "last");

  /**
   * The rules of a fork.
   *
   * @param activationTime when it begins, in seconds since 1970
   * @param blobSchedule its blobs, if it has any
   * @param chainId the chain
   * @param forkId 4 bytes by which nodes know each other (EIP-6122)
   * @param precompiles its precompiled contracts by name
   * @param systemContracts its system contracts by name
   */
  public record Fork(
      long activationTime,
      Optional<BlobSchedule> blobSchedule,
      long chainId,
      Bytes forkId,
      Map<String, Address> precompiles,
      Map<String, Address> systemContracts) {
    private static final Members MEMBERS =
        Members.of(
            "activationTime",
            "blobSchedule",
            "chainId",
            "forkId",
            "precompiles",
            "systemContracts");

    /** With copies. */
    public Fork {
      precompiles = Members.copy(precompiles);
      systemContracts = Members.copy(systemContracts);
    }

    static Fork read(JsonReader json) {
      Parts parts = new Parts();
      MEMBERS.read(json, parts);
      return parts.made();
    }

    private static final class Parts implements Members.Taker {
      private long activationTime = -1;
      private @Nullable BlobSchedule blobSchedule;
      private long chainId = -1;
      private @Nullable Bytes forkId;
      private @Nullable Map<String, Address> precompiles;
      private @Nullable Map<String, Address> systemContracts;

      @Override
      public void take(String name, JsonReader json) {
        switch (name) {
          case "activationTime" -> activationTime = Members.number(json);
          case "blobSchedule" -> blobSchedule = BlobSchedule.read(json);
          case "chainId" -> chainId = json.nextQuantity();
          case "forkId" -> forkId = json.nextBytes();
          case "precompiles" ->
              precompiles = Members.map(json, key -> key, JsonReader::nextAddress);
          case "systemContracts" ->
              systemContracts = Members.map(json, key -> key, JsonReader::nextAddress);
          default -> throw new AssertionError(name);
        }
      }

      Fork made() {
        return new Fork(
            Members.the("activationTime", activationTime),
            Optional.ofNullable(blobSchedule),
            Members.the("chainId", chainId),
            Members.the("forkId", forkId),
            Members.the("precompiles", precompiles),
            Members.the("systemContracts", systemContracts));
      }
    }
  }

  /**
   * How many blobs the blocks of a fork have (EIP-7840).
   *
   * @param target the number at which their fee stays as it is
   * @param max the most
   * @param baseFeeUpdateFraction how slowly their fee follows
   */
  public record BlobSchedule(long target, long max, long baseFeeUpdateFraction) {
    private static final Members MEMBERS = Members.of("target", "max", "baseFeeUpdateFraction");

    static BlobSchedule read(JsonReader json) {
      Parts parts = new Parts();
      MEMBERS.read(json, parts);
      return parts.made();
    }

    private static final class Parts implements Members.Taker {
      private long target = -1;
      private long max = -1;
      private long baseFeeUpdateFraction = -1;

      @Override
      public void take(String name, JsonReader json) {
        switch (name) {
          case "target" -> target = Members.number(json);
          case "max" -> max = Members.number(json);
          case "baseFeeUpdateFraction" -> baseFeeUpdateFraction = Members.number(json);
          default -> throw new AssertionError(name);
        }
      }

      BlobSchedule made() {
        return new BlobSchedule(
            Members.the("target", target),
            Members.the("max", max),
            Members.the("baseFeeUpdateFraction", baseFeeUpdateFraction));
      }
    }
  }

  static ForkConfigs read(JsonReader json) {
    Parts parts = new Parts();
    MEMBERS.read(json, parts);
    return parts.made();
  }

  private static final class Parts implements Members.Taker {
    private @Nullable Fork current;
    private @Nullable Fork next;
    private @Nullable Fork last;

    @Override
    public void take(String name, JsonReader json) {
      switch (name) {
        case "current" -> current = Fork.read(json);
        case "next" -> next = Fork.read(json);
        case "last" -> last = Fork.read(json);
        default -> throw new AssertionError(name);
      }
    }

    ForkConfigs made() {
      return new ForkConfigs(
          Members.the("current", current), Optional.ofNullable(next), Optional.ofNullable(last));
    }
  }
}
