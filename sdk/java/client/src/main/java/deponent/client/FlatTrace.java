package deponent.client;

import deponent.eth.Address;
import deponent.eth.Bytes;
import deponent.eth.Hash;
import deponent.eth.JsonReader;
import deponent.eth.MalformedException;
import deponent.eth.Wei;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;
import org.jspecify.annotations.Nullable;

/**
 * A call, a creation, the end of a contract, or a reward, as OpenEthereum's {@code trace_*} has
 * them.
 *
 * @param action what was done
 * @param result what came of it, if it succeeded
 * @param error why it failed, if it did
 * @param subtraces how many it did itself
 * @param traceAddress its place: in each call from the outermost on, the number of the one within
 * @param transactionHash the transaction
 * @param transactionPosition the transaction's place in the block
 * @param blockHash the block's hash
 * @param blockNumber the block's number
 */
public record FlatTrace(
    Action action,
    Optional<Result> result,
    Optional<String> error,
    long subtraces,
    List<Long> traceAddress,
    Optional<Hash> transactionHash,
    OptionalLong transactionPosition,
    Optional<Hash> blockHash,
    OptionalLong blockNumber) {
  private static final Members MEMBERS =
      Members.of(
          "action",
          "type",
          "result",
          "error",
          "subtraces",
          "traceAddress",
          "transactionHash",
          "transactionPosition",
          "blockHash",
          "blockNumber");

  /** With copies. */
  public FlatTrace {
    traceAddress = List.copyOf(traceAddress);
  }

  /**
   * What came of a call or a creation.
   *
   * @param gasUsed the gas that it used
   * @param output what the call returned
   * @param address the contract that was created
   * @param code its code
   */
  public record Result(
      long gasUsed, Optional<Bytes> output, Optional<Address> address, Optional<Bytes> code) {
    private static final Members MEMBERS = Members.of("gasUsed", "output", "address", "code");

    static Result read(JsonReader json) {
      Parts parts = new Parts();
      MEMBERS.read(json, parts);
      return parts.made();
    }

    private static final class Parts implements Members.Taker {
      private long gasUsed = -1;
      private @Nullable Bytes output;
      private @Nullable Address address;
      private @Nullable Bytes code;

      @Override
      public void take(String name, JsonReader json) {
        switch (name) {
          case "gasUsed" -> gasUsed = Members.number(json);
          case "output" -> output = json.nextBytes();
          case "address" -> address = json.nextAddress();
          case "code" -> code = json.nextBytes();
          default -> throw new AssertionError(name);
        }
      }

      Result made() {
        return new Result(
            Members.the("gasUsed", gasUsed),
            Optional.ofNullable(output),
            Optional.ofNullable(address),
            Optional.ofNullable(code));
      }
    }
  }

  /** What was done. */
  public sealed interface Action {}

  /**
   * A call.
   *
   * @param callType {@code call}, {@code staticcall}, {@code delegatecall} or {@code callcode}
   * @param from who called
   * @param to who was called
   * @param value the ether that went with it
   * @param gas the gas that it had
   * @param input its data
   */
  public record CallAction(
      String callType, Address from, Address to, Wei value, long gas, Bytes input)
      implements Action {}

  /**
   * The creation of a contract.
   *
   * @param creationMethod {@code create} or {@code create2}, where the server says it
   * @param from who created it
   * @param value the ether that went with it
   * @param gas the gas that it had
   * @param init the init code
   */
  public record CreateAction(
      Optional<String> creationMethod, Address from, Wei value, long gas, Bytes init)
      implements Action {}

  /**
   * The end of a contract.
   *
   * @param address the contract
   * @param refundAddress who got its ether
   * @param balance the ether
   */
  public record DestroyAction(Address address, Address refundAddress, Wei balance)
      implements Action {}

  /**
   * A reward for a block or an uncle, before the merge.
   *
   * @param rewardType {@code block} or {@code uncle}
   * @param author who got it
   * @param value how much
   */
  public record RewardAction(String rewardType, Address author, Wei value) implements Action {}

  private static final class ActionParts implements Members.Taker {
    private static final Members MEMBERS =
        Members.of(
            "callType",
            "creationMethod",
            "creationType",
            "rewardType",
            "from",
            "to",
            "author",
            "address",
            "refundAddress",
            "value",
            "balance",
            "gas",
            "input",
            "init");

    private @Nullable String callType;
    private @Nullable String creationMethod;
    private @Nullable String rewardType;
    private @Nullable Address from;
    private @Nullable Address to;
    private @Nullable Address author;
    private @Nullable Address address;
    private @Nullable Address refundAddress;
    private @Nullable Wei value;
    private @Nullable Wei balance;
    private long gas = -1;
    private @Nullable Bytes input;
    private @Nullable Bytes init;

    @Override
    public void take(String name, JsonReader json) {
      switch (name) {
        case "callType" -> callType = json.nextString();
        case "creationMethod", "creationType" -> creationMethod = json.nextString();
        case "rewardType" -> rewardType = json.nextString();
        case "from" -> from = json.nextAddress();
        case "to" -> to = json.nextAddress();
        case "author" -> author = json.nextAddress();
        case "address" -> address = json.nextAddress();
        case "refundAddress" -> refundAddress = json.nextAddress();
        case "value" -> value = json.nextWei();
        case "balance" -> balance = json.nextWei();
        case "gas" -> gas = Members.number(json);
        case "input" -> input = json.nextBytes();
        case "init" -> init = json.nextBytes();
        default -> throw new AssertionError(name);
      }
    }

    Action of(String type) {
      return switch (type) {
        case "call" ->
            new CallAction(
                Members.the("action: callType", callType),
                Members.the("action: from", from),
                Members.the("action: to", to),
                Members.the("action: value", value),
                Members.the("action: gas", gas),
                Members.the("action: input", input));
        case "create" ->
            new CreateAction(
                Optional.ofNullable(creationMethod),
                Members.the("action: from", from),
                Members.the("action: value", value),
                Members.the("action: gas", gas),
                Members.the("action: init", init));
        case "suicide", "selfdestruct" ->
            new DestroyAction(
                Members.the("action: address", address),
                Members.the("action: refundAddress", refundAddress),
                Members.the("action: balance", balance));
        case "reward" ->
            new RewardAction(
                Members.the("action: rewardType", rewardType),
                Members.the("action: author", author),
                Members.the("action: value", value));
        default -> throw new MalformedException("type: unknown: " + Members.quoted(type));
      };
    }
  }

  static FlatTrace read(JsonReader json) {
    Parts parts = new Parts();
    MEMBERS.read(json, parts);
    return parts.made();
  }

  private static final class Parts implements Members.Taker {
    private @Nullable ActionParts action;
    private @Nullable String type;
    private @Nullable Result result;
    private @Nullable String error;
    private long subtraces = -1;
    private @Nullable List<Long> traceAddress;
    private @Nullable Hash transactionHash;
    private long transactionPosition = -1;
    private @Nullable Hash blockHash;
    private long blockNumber = -1;

    @Override
    public void take(String name, JsonReader json) {
      switch (name) {
        case "action" -> {
          action = new ActionParts();
          ActionParts.MEMBERS.read(json, action);
        }
        case "type" -> type = json.nextString();
        case "result" -> result = Result.read(json);
        case "error" -> error = json.nextString();
        case "subtraces" -> subtraces = Members.number(json);
        case "traceAddress" -> traceAddress = Members.list(json, Members::number);
        case "transactionHash" -> transactionHash = json.nextHash();
        case "transactionPosition" -> transactionPosition = Members.number(json);
        case "blockHash" -> blockHash = json.nextHash();
        case "blockNumber" -> blockNumber = Members.number(json);
        default -> throw new AssertionError(name);
      }
    }

    FlatTrace made() {
      return new FlatTrace(
          Members.the("action", action).of(Members.the("type", type)),
          Optional.ofNullable(result),
          Optional.ofNullable(error),
          Members.the("subtraces", subtraces),
          Members.the("traceAddress", traceAddress),
          Optional.ofNullable(transactionHash),
          Members.optional(transactionPosition),
          Optional.ofNullable(blockHash),
          Members.optional(blockNumber));
    }
  }
}
