package deponent.engine;

import deponent.eth.Address;
import deponent.eth.Bytes;
import deponent.eth.Hash;
import deponent.eth.Wei;
import java.util.List;

/**
 * {@code ExecutionPayloadV4}: a block of Amsterdam.
 *
 * @param parentHash the parent's hash
 * @param feeRecipient who is paid the fees
 * @param stateRoot the root of the state after the block
 * @param receiptsRoot the root of the receipts
 * @param logsBloom the filter of the logs: 256 bytes
 * @param prevRandao the beacon chain's randomness
 * @param blockNumber the block's number
 * @param gasLimit the gas that the block may use
 * @param gasUsed the gas that the block uses
 * @param timestamp seconds since 1970
 * @param extraData any bytes, at most 32
 * @param baseFeePerGas the base fee
 * @param blockHash the block's own hash
 * @param transactions transactions, each in its form by EIP-2718
 * @param withdrawals withdrawals
 * @param blobGasUsed the gas of blobs that the block uses
 * @param excessBlobGas the gas of blobs above the target so far
 * @param blockAccessList the block's access list (EIP-7928) in RLP
 * @param slotNumber the slot's number
 */
public record ExecutionPayloadV4(
    Hash parentHash,
    Address feeRecipient,
    Hash stateRoot,
    Hash receiptsRoot,
    Bytes logsBloom,
    Hash prevRandao,
    long blockNumber,
    long gasLimit,
    long gasUsed,
    long timestamp,
    Bytes extraData,
    Wei baseFeePerGas,
    Hash blockHash,
    List<Bytes> transactions,
    List<Withdrawal> withdrawals,
    long blobGasUsed,
    long excessBlobGas,
    Bytes blockAccessList,
    long slotNumber)
    implements ExecutionPayload {
  /** Copies the lists. */
  public ExecutionPayloadV4 {
    ExecutionPayloadBuilder.checkBloom(logsBloom);
    transactions = List.copyOf(transactions);
    withdrawals = List.copyOf(withdrawals);
  }

  @Override
  public int version() {
    return 4;
  }
}
