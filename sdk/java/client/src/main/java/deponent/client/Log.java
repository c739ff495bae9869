package deponent.client;

import deponent.eth.AbiEvent;
import deponent.eth.AbiValues;
import deponent.eth.Address;
import deponent.eth.Bytes;
import deponent.eth.Hash;
import deponent.eth.JsonReader;
import java.util.List;
import java.util.OptionalLong;
import org.jspecify.annotations.Nullable;

/**
 * A log that a contract wrote.
 *
 * @param address the contract
 * @param topics up to 4 topics
 * @param data the data
 * @param blockHash the block's hash; zero of a log that is in no block yet
 * @param blockNumber the block's number; 0 of a log that is in no block yet
 * @param blockTimestamp the block's time in seconds since 1970, where the server says it
 * @param transactionHash the transaction's hash
 * @param transactionIndex the transaction's place in the block
 * @param logIndex its place among the logs of the block
 * @param removed whether its block left the chain
 */
public record Log(
    Address address,
    List<Hash> topics,
    Bytes data,
    Hash blockHash,
    long blockNumber,
    OptionalLong blockTimestamp,
    Hash transactionHash,
    long transactionIndex,
    long logIndex,
    boolean removed) {
  private static final Members MEMBERS =
      Members.of(
          "address",
          "topics",
          "data",
          "blockHash",
          "blockNumber",
          "blockTimestamp",
          "transactionHash",
          "transactionIndex",
          "logIndex",
          "removed");

  /** With a copy of {@code topics}. */
  public Log {
    topics = List.copyOf(topics);
  }

  /** Whether it may be of {@code event}. */
  public boolean isOf(AbiEvent event) {
    return event.isIn(topics);
  }

  /**
   * The fields of an event.
   *
   * @throws deponent.eth.MalformedException if it is of another event, or does not decode
   */
  public AbiValues decode(AbiEvent event) {
    return event.decode(topics, data);
  }

  /** Reads one. */
  static Log read(JsonReader json) {
    Parts parts = new Parts();
    MEMBERS.read(json, parts);
    return parts.log();
  }

  private static final class Parts implements Members.Taker {
    private @Nullable Address address;
    private @Nullable List<Hash> topics;
    private @Nullable Bytes data;
    private @Nullable Hash blockHash;
    private long blockNumber = -1;
    private long blockTimestamp = -1;
    private @Nullable Hash transactionHash;
    private long transactionIndex = -1;
    private long logIndex = -1;
    private boolean removed;

    @Override
    public void take(String name, JsonReader json) {
      switch (name) {
        case "address" -> address = json.nextAddress();
        case "topics" -> topics = Members.list(json, JsonReader::nextHash);
        case "data" -> data = json.nextBytes();
        case "blockHash" -> blockHash = json.nextHash();
        case "blockNumber" -> blockNumber = json.nextQuantity();
        case "blockTimestamp" -> blockTimestamp = json.nextQuantity();
        case "transactionHash" -> transactionHash = json.nextHash();
        case "transactionIndex" -> transactionIndex = json.nextQuantity();
        case "logIndex" -> logIndex = json.nextQuantity();
        case "removed" -> removed = json.nextBoolean();
        default -> throw new AssertionError(name);
      }
    }

    Log log() {
      boolean pending = blockHash == null;
      return new Log(
          Members.the("address", address),
          Members.the("topics", topics),
          Members.the("data", data),
          pending ? Hash.ZERO : blockHash,
          pending ? 0 : Members.the("blockNumber", blockNumber),
          Members.optional(blockTimestamp),
          Members.the("transactionHash", transactionHash),
          pending ? 0 : Members.the("transactionIndex", transactionIndex),
          pending ? 0 : Members.the("logIndex", logIndex),
          removed);
    }
  }
}
