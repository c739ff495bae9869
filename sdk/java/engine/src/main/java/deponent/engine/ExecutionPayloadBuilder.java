package deponent.engine;

import deponent.eth.Address;
import deponent.eth.Bytes;
import deponent.eth.Hash;
import deponent.eth.Wei;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Names the fields of an {@link ExecutionPayload} one by one. The structure is the one whose fields
 * were named. A builder belongs to one thread.
 */
public final class ExecutionPayloadBuilder {
  private @Nullable Hash parentHash;
  private @Nullable Address feeRecipient;
  private @Nullable Hash stateRoot;
  private @Nullable Hash receiptsRoot;
  private @Nullable Bytes logsBloom;
  private @Nullable Hash prevRandao;
  private @Nullable Long blockNumber;
  private @Nullable Long gasLimit;
  private @Nullable Long gasUsed;
  private @Nullable Long timestamp;
  private @Nullable Bytes extraData;
  private @Nullable Wei baseFeePerGas;
  private @Nullable Hash blockHash;
  private @Nullable List<Bytes> transactions;
  private @Nullable List<Withdrawal> withdrawals;
  private @Nullable Long blobGasUsed;
  private @Nullable Long excessBlobGas;
  private @Nullable Bytes blockAccessList;
  private @Nullable Long slotNumber;

  ExecutionPayloadBuilder() {}

  /** The parent's hash. */
  public ExecutionPayloadBuilder parentHash(Hash parentHash) {
    this.parentHash = parentHash;
    return this;
  }

  /** Who is paid the fees. */
  public ExecutionPayloadBuilder feeRecipient(Address feeRecipient) {
    this.feeRecipient = feeRecipient;
    return this;
  }

  /** The root of the state after the block. */
  public ExecutionPayloadBuilder stateRoot(Hash stateRoot) {
    this.stateRoot = stateRoot;
    return this;
  }

  /** The root of the receipts. */
  public ExecutionPayloadBuilder receiptsRoot(Hash receiptsRoot) {
    this.receiptsRoot = receiptsRoot;
    return this;
  }

  /** The filter of the logs: 256 bytes. */
  public ExecutionPayloadBuilder logsBloom(Bytes logsBloom) {
    this.logsBloom = logsBloom;
    return this;
  }

  /** The beacon chain's randomness. */
  public ExecutionPayloadBuilder prevRandao(Hash prevRandao) {
    this.prevRandao = prevRandao;
    return this;
  }

  /** The block's number. */
  public ExecutionPayloadBuilder blockNumber(long blockNumber) {
    this.blockNumber = blockNumber;
    return this;
  }

  /** The gas that the block may use. */
  public ExecutionPayloadBuilder gasLimit(long gasLimit) {
    this.gasLimit = gasLimit;
    return this;
  }

  /** The gas that the block uses. */
  public ExecutionPayloadBuilder gasUsed(long gasUsed) {
    this.gasUsed = gasUsed;
    return this;
  }

  /** Seconds since 1970. */
  public ExecutionPayloadBuilder timestamp(long timestamp) {
    this.timestamp = timestamp;
    return this;
  }

  /** Any bytes, at most 32. */
  public ExecutionPayloadBuilder extraData(Bytes extraData) {
    this.extraData = extraData;
    return this;
  }

  /** The base fee. */
  public ExecutionPayloadBuilder baseFeePerGas(Wei baseFeePerGas) {
    this.baseFeePerGas = baseFeePerGas;
    return this;
  }

  /** The block's own hash. */
  public ExecutionPayloadBuilder blockHash(Hash blockHash) {
    this.blockHash = blockHash;
    return this;
  }

  /** Transactions, each in its form by EIP-2718. */
  public ExecutionPayloadBuilder transactions(List<Bytes> transactions) {
    this.transactions = transactions;
    return this;
  }

  /** Withdrawals; from version 2 on. */
  public ExecutionPayloadBuilder withdrawals(List<Withdrawal> withdrawals) {
    this.withdrawals = withdrawals;
    return this;
  }

  /** The gas of blobs that the block uses; from version 3 on. */
  public ExecutionPayloadBuilder blobGasUsed(long blobGasUsed) {
    this.blobGasUsed = blobGasUsed;
    return this;
  }

  /** The gas of blobs above the target so far; from version 3 on. */
  public ExecutionPayloadBuilder excessBlobGas(long excessBlobGas) {
    this.excessBlobGas = excessBlobGas;
    return this;
  }

  /** The block's access list (EIP-7928) in RLP; from version 4 on. */
  public ExecutionPayloadBuilder blockAccessList(Bytes blockAccessList) {
    this.blockAccessList = blockAccessList;
    return this;
  }

  /** The slot's number; from version 4 on. */
  public ExecutionPayloadBuilder slotNumber(long slotNumber) {
    this.slotNumber = slotNumber;
    return this;
  }

  /**
   * The payload.
   *
   * @throws IllegalArgumentException if a field of the structure is missing, and the message names
   *     it
   */
  public ExecutionPayload build() {
    return switch (version()) {
      case 1 ->
          new ExecutionPayloadV1(
              the("parentHash", parentHash),
              the("feeRecipient", feeRecipient),
              the("stateRoot", stateRoot),
              the("receiptsRoot", receiptsRoot),
              the("logsBloom", logsBloom),
              the("prevRandao", prevRandao),
              the("blockNumber", blockNumber),
              the("gasLimit", gasLimit),
              the("gasUsed", gasUsed),
              the("timestamp", timestamp),
              the("extraData", extraData),
              the("baseFeePerGas", baseFeePerGas),
              the("blockHash", blockHash),
              the("transactions", transactions));
      case 2 ->
          new ExecutionPayloadV2(
              the("parentHash", parentHash),
              the("feeRecipient", feeRecipient),
              the("stateRoot", stateRoot),
              the("receiptsRoot", receiptsRoot),
              the("logsBloom", logsBloom),
              the("prevRandao", prevRandao),
              the("blockNumber", blockNumber),
              the("gasLimit", gasLimit),
              the("gasUsed", gasUsed),
              the("timestamp", timestamp),
              the("extraData", extraData),
              the("baseFeePerGas", baseFeePerGas),
              the("blockHash", blockHash),
              the("transactions", transactions),
              the("withdrawals", withdrawals));
      case 3 ->
          new ExecutionPayloadV3(
              the("parentHash", parentHash),
              the("feeRecipient", feeRecipient),
              the("stateRoot", stateRoot),
              the("receiptsRoot", receiptsRoot),
              the("logsBloom", logsBloom),
              the("prevRandao", prevRandao),
              the("blockNumber", blockNumber),
              the("gasLimit", gasLimit),
              the("gasUsed", gasUsed),
              the("timestamp", timestamp),
              the("extraData", extraData),
              the("baseFeePerGas", baseFeePerGas),
              the("blockHash", blockHash),
              the("transactions", transactions),
              the("withdrawals", withdrawals),
              the("blobGasUsed", blobGasUsed),
              the("excessBlobGas", excessBlobGas));
      default ->
          new ExecutionPayloadV4(
              the("parentHash", parentHash),
              the("feeRecipient", feeRecipient),
              the("stateRoot", stateRoot),
              the("receiptsRoot", receiptsRoot),
              the("logsBloom", logsBloom),
              the("prevRandao", prevRandao),
              the("blockNumber", blockNumber),
              the("gasLimit", gasLimit),
              the("gasUsed", gasUsed),
              the("timestamp", timestamp),
              the("extraData", extraData),
              the("baseFeePerGas", baseFeePerGas),
              the("blockHash", blockHash),
              the("transactions", transactions),
              the("withdrawals", withdrawals),
              the("blobGasUsed", blobGasUsed),
              the("excessBlobGas", excessBlobGas),
              the("blockAccessList", blockAccessList),
              the("slotNumber", slotNumber));
    };
  }

  /** The oldest structure that has all fields which were named. */
  private int version() {
    if (blockAccessList != null || slotNumber != null) {
      return 4;
    }
    if (blobGasUsed != null || excessBlobGas != null) {
      return 3;
    }
    return withdrawals == null ? 1 : 2;
  }

  private static <T> T the(String name, @Nullable T value) {
    if (value == null) {
      throw new IllegalArgumentException("executionPayload." + name + " is missing");
    }
    return value;
  }

  static void checkBloom(Bytes logsBloom) {
    if (logsBloom.size() != 256) {
      throw new IllegalArgumentException("logsBloom has 256 bytes, not " + logsBloom.size());
    }
  }
}
