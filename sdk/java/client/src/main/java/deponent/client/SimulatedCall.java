package deponent.client;

import deponent.eth.Abi;
import deponent.eth.Bytes;
import deponent.eth.JsonReader;
import deponent.eth.RevertException;
import deponent.eth.RpcException;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;
import org.jspecify.annotations.Nullable;

/**
 * What became of a call of a {@link Simulation}.
 *
 * @param status 1 if it succeeded, and 0 if not
 * @param returnData what it returned
 * @param gasUsed the gas that it used
 * @param maxUsedGas the most gas that it held, before refunds, where the server says it
 * @param logs its logs
 * @param error why it failed, if it did
 */
public record SimulatedCall(
    long status,
    Bytes returnData,
    long gasUsed,
    OptionalLong maxUsedGas,
    List<Log> logs,
    Optional<Failure> error) {
  private static final Members MEMBERS =
      Members.of("status", "returnData", "gasUsed", "maxUsedGas", "logs", "error");

  /** With copies. */
  public SimulatedCall {
    logs = List.copyOf(logs);
  }

  /**
   * Why a simulated call failed.
   *
   * @param code 3 where a contract reverted
   * @param message the reason
   * @param data what the contract reverted with
   */
  public record Failure(int code, String message, Optional<Bytes> data) {
    private static final Members MEMBERS = Members.of("code", "message", "data");

    /**
     * What {@code eth_call} would have thrown; reverts are decoded by the errors of {@code abi}.
     */
    public RpcException exception(Abi abi) {
      return code == 3
          ? RevertException.of(code, message, data.orElse(Bytes.EMPTY), abi)
          : new RpcException(code, message, data.map(bytes -> "\"" + bytes + "\"").orElse(null));
    }

    static Failure read(JsonReader json) {
      Parts parts = new Parts();
      MEMBERS.read(json, parts);
      return parts.made();
    }

    private static final class Parts implements Members.Taker {
      private int code;
      private @Nullable String message;
      private @Nullable Bytes data;

      @Override
      public void take(String name, JsonReader json) {
        switch (name) {
          case "code" -> code = (int) json.nextLong();
          case "message" -> message = json.nextString();
          case "data" -> data = json.nextBytes();
          default -> throw new AssertionError(name);
        }
      }

      Failure made() {
        return new Failure(code, Members.the("message", message), Optional.ofNullable(data));
      }
    }
  }

  /** Whether it succeeded. */
  public boolean succeeded() {
    return status != 0;
  }

  static SimulatedCall read(JsonReader json) {
    Parts parts = new Parts();
    MEMBERS.read(json, parts);
    return parts.made();
  }

  private static final class Parts implements Members.Taker {
    private long status = -1;
    private @Nullable Bytes returnData;
    private long gasUsed = -1;
    private long maxUsedGas = -1;
    private List<Log> logs = List.of();
    private @Nullable Failure error;

    @Override
    public void take(String name, JsonReader json) {
      switch (name) {
        case "status" -> status = json.nextQuantity();
        case "returnData" -> returnData = json.nextBytes();
        case "gasUsed" -> gasUsed = json.nextQuantity();
        case "maxUsedGas" -> maxUsedGas = json.nextQuantity();
        case "logs" -> logs = Members.list(json, Log::read);
        case "error" -> error = Failure.read(json);
        default -> throw new AssertionError(name);
      }
    }

    SimulatedCall made() {
      return new SimulatedCall(
          Members.the("status", status),
          Members.the("returnData", returnData),
          Members.the("gasUsed", gasUsed),
          Members.optional(maxUsedGas),
          logs,
          Optional.ofNullable(error));
    }
  }
}
