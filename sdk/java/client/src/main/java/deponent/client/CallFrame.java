package deponent.client;

import deponent.eth.Address;
import deponent.eth.Bytes;
import deponent.eth.Hash;
import deponent.eth.JsonReader;
import deponent.eth.Wei;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;
import org.jspecify.annotations.Nullable;

/**
 * A call and those that it made, as geth's {@code callTracer} has them.
 *
 * @param type {@code CALL}, {@code STATICCALL}, {@code CREATE2}, or another instruction
 * @param from who called
 * @param to who was called, or created
 * @param value the ether that went with it
 * @param gas the gas that it had
 * @param gasUsed the gas that it used
 * @param input its data, or the init code
 * @param output what it returned, or the code
 * @param error why it failed, if it did
 * @param revertReason Solidity's reason, if there is one
 * @param logs its own logs, where they were asked for
 * @param calls the calls that it made
 */
public record CallFrame(
    String type,
    Address from,
    Optional<Address> to,
    Optional<Wei> value,
    long gas,
    long gasUsed,
    Bytes input,
    Bytes output,
    Optional<String> error,
    Optional<String> revertReason,
    List<FrameLog> logs,
    List<CallFrame> calls) {
  private static final Members MEMBERS =
      Members.of(
          "type",
          "from",
          "to",
          "value",
          "gas",
          "gasUsed",
          "input",
          "output",
          "error",
          "revertReason",
          "logs",
          "calls");

  /** With copies. */
  public CallFrame {
    logs = List.copyOf(logs);
    calls = List.copyOf(calls);
  }

  /**
   * A log of a call.
   *
   * @param address the contract
   * @param topics up to 4 topics
   * @param data the data
   * @param position how many calls its call had made before
   * @param index its place among the logs of the transaction
   */
  public record FrameLog(
      Address address, List<Hash> topics, Bytes data, OptionalLong position, OptionalLong index) {
    private static final Members MEMBERS =
        Members.of("address", "topics", "data", "position", "index");

    /** With copies. */
    public FrameLog {
      topics = List.copyOf(topics);
    }

    static FrameLog read(JsonReader json) {
      Parts parts = new Parts();
      MEMBERS.read(json, parts);
      return parts.made();
    }

    private static final class Parts implements Members.Taker {
      private @Nullable Address address;
      private @Nullable List<Hash> topics;
      private @Nullable Bytes data;
      private long position = -1;
      private long index = -1;

      @Override
      public void take(String name, JsonReader json) {
        switch (name) {
          case "address" -> address = json.nextAddress();
          case "topics" -> topics = Members.list(json, JsonReader::nextHash);
          case "data" -> data = json.nextBytes();
          case "position" -> position = json.nextQuantity();
          case "index" -> index = json.nextQuantity();
          default -> throw new AssertionError(name);
        }
      }

      FrameLog made() {
        return new FrameLog(
            Members.the("address", address),
            Members.the("topics", topics),
            Members.the("data", data),
            Members.optional(position),
            Members.optional(index));
      }
    }
  }

  static CallFrame read(JsonReader json) {
    Parts parts = new Parts();
    MEMBERS.read(json, parts);
    return parts.made();
  }

  private static final class Parts implements Members.Taker {
    private @Nullable String type;
    private @Nullable Address from;
    private @Nullable Address to;
    private @Nullable Wei value;
    private long gas = -1;
    private long gasUsed = -1;
    private @Nullable Bytes input;
    private Bytes output = Bytes.EMPTY;
    private @Nullable String error;
    private @Nullable String revertReason;
    private List<FrameLog> logs = List.of();
    private List<CallFrame> calls = List.of();

    @Override
    public void take(String name, JsonReader json) {
      switch (name) {
        case "type" -> type = json.nextString();
        case "from" -> from = json.nextAddress();
        case "to" -> to = json.nextAddress();
        case "value" -> value = json.nextWei();
        case "gas" -> gas = json.nextQuantity();
        case "gasUsed" -> gasUsed = json.nextQuantity();
        case "input" -> input = json.nextBytes();
        case "output" -> output = json.nextBytes();
        case "error" -> error = json.nextString();
        case "revertReason" -> revertReason = json.nextString();
        case "logs" -> logs = Members.list(json, FrameLog::read);
        case "calls" -> calls = Members.list(json, CallFrame::read);
        default -> throw new AssertionError(name);
      }
    }

    CallFrame made() {
      return new CallFrame(
          Members.the("type", type),
          Members.the("from", from),
          Optional.ofNullable(to),
          Optional.ofNullable(value),
          Members.the("gas", gas),
          Members.the("gasUsed", gasUsed),
          Members.the("input", input),
          output,
          Optional.ofNullable(error),
          Optional.ofNullable(revertReason),
          logs,
          calls);
    }
  }
}
