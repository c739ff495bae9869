package deponent.client;

import deponent.eth.Bytes;
import deponent.eth.Hash;
import deponent.eth.JsonReader;
import java.math.BigInteger;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import org.jspecify.annotations.Nullable;

/**
 * The instructions that a transaction ran, as geth's struct logger has them.
 *
 * @param gas the gas that it used
 * @param failed whether it failed
 * @param returnValue what it returned
 * @param structLogs the instructions in the order in which they ran
 */
public record StepTrace(long gas, boolean failed, Bytes returnValue, List<Step> structLogs) {
  private static final Members MEMBERS = Members.of("gas", "failed", "returnValue", "structLogs");

  /** With copies. */
  public StepTrace {
    structLogs = List.copyOf(structLogs);
  }

  /**
   * An instruction that ran.
   *
   * @param pc its place in the code
   * @param op its name
   * @param gas the gas before it
   * @param gasCost the gas that it took
   * @param depth calls in each other, from 1 on
   * @param refund the gas to be given back, if there is any
   * @param error why it failed, if it did
   * @param stack the stack before it, the lowest first
   * @param memory the memory before it, 32 bytes each, where it was asked for
   * @param storage the slots of the contract that were touched so far, where it touches one
   * @param returnData what the last call returned, where it was asked for
   */
  public record Step(
      long pc,
      String op,
      long gas,
      long gasCost,
      long depth,
      OptionalLong refund,
      Optional<String> error,
      List<BigInteger> stack,
      List<Bytes> memory,
      Map<Hash, Hash> storage,
      Optional<Bytes> returnData) {
    private static final Members MEMBERS =
        Members.of(
            "pc",
            "op",
            "gas",
            "gasCost",
            "depth",
            "refund",
            "error",
            "stack",
            "memory",
            "storage",
            "returnData");

    /** With copies. */
    public Step {
      stack = List.copyOf(stack);
      memory = List.copyOf(memory);
      storage = Members.copy(storage);
    }

    /** An error is a text, or an object of an older server. */
    private static String text(JsonReader json) {
      return json.peek() == JsonReader.Kind.STRING ? json.nextString() : json.nextJson();
    }

    static Step read(JsonReader json) {
      Parts parts = new Parts();
      MEMBERS.read(json, parts);
      return parts.made();
    }

    private static final class Parts implements Members.Taker {
      private long pc = -1;
      private @Nullable String op;
      private long gas = -1;
      private long gasCost = -1;
      private long depth = -1;
      private long refund = -1;
      private @Nullable String error;
      private List<BigInteger> stack = List.of();
      private List<Bytes> memory = List.of();
      private Map<Hash, Hash> storage = Map.of();
      private @Nullable Bytes returnData;

      @Override
      public void take(String name, JsonReader json) {
        switch (name) {
          case "pc" -> pc = Members.number(json);
          case "op" -> op = json.nextString();
          case "gas" -> gas = Members.number(json);
          case "gasCost" -> gasCost = Members.number(json);
          case "depth" -> depth = Members.number(json);
          case "refund" -> refund = Members.number(json);
          case "error" -> error = text(json);
          case "stack" -> stack = Members.list(json, JsonReader::nextBigQuantity);
          case "memory" -> memory = Members.list(json, Members::bareBytes);
          case "storage" -> storage = Members.map(json, Hash::of, one -> Hash.of(one.nextString()));
          case "returnData" -> returnData = Members.bareBytes(json);
          default -> throw new AssertionError(name);
        }
      }

      Step made() {
        return new Step(
            Members.the("pc", pc),
            Members.the("op", op),
            Members.the("gas", gas),
            Members.the("gasCost", gasCost),
            Members.the("depth", depth),
            Members.optional(refund),
            Optional.ofNullable(error),
            stack,
            memory,
            storage,
            Optional.ofNullable(returnData));
      }
    }
  }

  static StepTrace read(JsonReader json) {
    Parts parts = new Parts();
    MEMBERS.read(json, parts);
    return parts.made();
  }

  private static final class Parts implements Members.Taker {
    private long gas = -1;
    private boolean failed;
    private @Nullable Bytes returnValue;
    private @Nullable List<Step> structLogs;

    @Override
    public void take(String name, JsonReader json) {
      switch (name) {
        case "gas" -> gas = Members.number(json);
        case "failed" -> failed = json.nextBoolean();
        case "returnValue" -> returnValue = Members.bareBytes(json);
        case "structLogs" -> structLogs = Members.list(json, Step::read);
        default -> throw new AssertionError(name);
      }
    }

    StepTrace made() {
      return new StepTrace(
          Members.the("gas", gas),
          failed,
          Members.the("returnValue", returnValue),
          Members.the("structLogs", structLogs));
    }
  }
}
