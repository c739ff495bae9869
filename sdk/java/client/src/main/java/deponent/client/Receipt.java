package deponent.client;

import deponent.eth.Address;
import deponent.eth.Bytes;
import deponent.eth.Hash;
import deponent.eth.JsonReader;
import deponent.eth.ProtocolException;
import deponent.eth.Wei;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;
import org.jspecify.annotations.Nullable;

/**
 * What became of a transaction that is in a block.
 *
 * @param transactionHash the transaction's hash
 * @param transactionIndex its place in the block
 * @param blockHash the block's hash
 * @param blockNumber the block's number
 * @param type the transaction's type
 * @param from the sender
 * @param to the receiver; none where it creates a contract
 * @param status 1 if it succeeded and 0 if not; none before Byzantium
 * @param root the root of the state after it, before Byzantium
 * @param gasUsed the gas that it used
 * @param cumulativeGasUsed the gas that it and those before it in the block used
 * @param effectiveGasPrice what it paid for a unit of gas
 * @param blobGasUsed the blob gas that it used, of type 3
 * @param blobGasPrice what it paid for a unit of blob gas, of type 3
 * @param contractAddress the contract that it created
 * @param logs its logs
 * @param logsBloom the filter of the logs: 256 bytes
 */
public record Receipt(
    Hash transactionHash,
    long transactionIndex,
    Hash blockHash,
    long blockNumber,
    int type,
    Address from,
    Optional<Address> to,
    OptionalLong status,
    Optional<Hash> root,
    long gasUsed,
    long cumulativeGasUsed,
    Wei effectiveGasPrice,
    OptionalLong blobGasUsed,
    Optional<Wei> blobGasPrice,
    Optional<Address> contractAddress,
    List<Log> logs,
    Bytes logsBloom) {
  private static final Members MEMBERS =
      Members.of(
          "transactionHash",
          "transactionIndex",
          "blockHash",
          "blockNumber",
          "type",
          "from",
          "to",
          "status",
          "root",
          "gasUsed",
          "cumulativeGasUsed",
          "effectiveGasPrice",
          "blobGasUsed",
          "blobGasPrice",
          "contractAddress",
          "logs",
          "logsBloom");

  /** With a copy of {@code logs}. */
  public Receipt {
    logs = List.copyOf(logs);
  }

  /** Whether the transaction succeeded; from before Byzantium, when receipts did not say, true. */
  public boolean succeeded() {
    return status.orElse(1) != 0;
  }

  /**
   * What the sender paid for gas and blobs together.
   *
   * @throws ProtocolException if the server's numbers give more than 2^256-1 wei
   */
  public Wei fee() {
    try {
      Wei gas = effectiveGasPrice.times(gasUsed);
      return blobGasPrice.map(price -> gas.plus(price.times(blobGasUsed.orElse(0)))).orElse(gas);
    } catch (ArithmeticException high) {
      throw MarketFees.tooHigh(high);
    }
  }

  static Receipt read(JsonReader json) {
    Parts parts = new Parts();
    MEMBERS.read(json, parts);
    return parts.receipt();
  }

  private static final class Parts implements Members.Taker {
    private @Nullable Hash transactionHash;
    private long transactionIndex = -1;
    private @Nullable Hash blockHash;
    private long blockNumber = -1;
    private int type;
    private @Nullable Address from;
    private @Nullable Address to;
    private long status = -1;
    private @Nullable Hash root;
    private long gasUsed = -1;
    private long cumulativeGasUsed = -1;
    private @Nullable Wei effectiveGasPrice;
    private long blobGasUsed = -1;
    private @Nullable Wei blobGasPrice;
    private @Nullable Address contractAddress;
    private @Nullable List<Log> logs;
    private @Nullable Bytes logsBloom;

    @Override
    public void take(String name, JsonReader json) {
      switch (name) {
        case "transactionHash" -> transactionHash = json.nextHash();
        case "transactionIndex" -> transactionIndex = json.nextQuantity();
        case "blockHash" -> blockHash = json.nextHash();
        case "blockNumber" -> blockNumber = json.nextQuantity();
        case "type" -> type = Members.octet(json);
        case "from" -> from = json.nextAddress();
        case "to" -> to = json.nextAddress();
        case "status" -> status = json.nextQuantity();
        case "root" -> root = json.nextHash();
        case "gasUsed" -> gasUsed = json.nextQuantity();
        case "cumulativeGasUsed" -> cumulativeGasUsed = json.nextQuantity();
        case "effectiveGasPrice" -> effectiveGasPrice = json.nextWei();
        case "blobGasUsed" -> blobGasUsed = json.nextQuantity();
        case "blobGasPrice" -> blobGasPrice = json.nextWei();
        case "contractAddress" -> contractAddress = json.nextAddress();
        case "logs" -> logs = Members.list(json, Log::read);
        case "logsBloom" -> logsBloom = json.nextBytes();
        default -> throw new AssertionError(name);
      }
    }

    Receipt receipt() {
      return new Receipt(
          Members.the("transactionHash", transactionHash),
          Members.the("transactionIndex", transactionIndex),
          Members.the("blockHash", blockHash),
          Members.the("blockNumber", blockNumber),
          type,
          Members.the("from", from),
          Optional.ofNullable(to),
          Members.optional(status),
          Optional.ofNullable(root),
          Members.the("gasUsed", gasUsed),
          Members.the("cumulativeGasUsed", cumulativeGasUsed),
          Members.the("effectiveGasPrice", effectiveGasPrice),
          Members.optional(blobGasUsed),
          Optional.ofNullable(blobGasPrice),
          Optional.ofNullable(contractAddress),
          Members.the("logs", logs),
          Members.the("logsBloom", logsBloom));
    }
  }
}
