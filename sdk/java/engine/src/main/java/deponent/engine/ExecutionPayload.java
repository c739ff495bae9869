package deponent.engine;

import deponent.eth.Address;
import deponent.eth.Bytes;
import deponent.eth.Hash;
import deponent.eth.JsonReader;
import deponent.eth.JsonWriter;
import deponent.eth.MalformedException;
import deponent.eth.Wei;
import java.util.List;

/**
 * A block as the Engine API has it. Each structure of the specification is a record; a field that a
 * structure lacks is empty or zero here. Numbers have 64 bits without a sign.
 *
 * <pre>{@code
 * ExecutionPayloadBuilder block = ExecutionPayload.builder().parentHash(parent).blockNumber(7);
 * // .. the other members of its structure: build() names one that is missing
 * ExecutionPayload payload = block.build();
 * }</pre>
 */
public sealed interface ExecutionPayload
    permits ExecutionPayloadV1, ExecutionPayloadV2, ExecutionPayloadV3, ExecutionPayloadV4 {
  /** The number in the structure's name, 1 to 4. */
  int version();

  /** The parent's hash. */
  Hash parentHash();

  /** Who is paid the fees. */
  Address feeRecipient();

  /** The root of the state after the block. */
  Hash stateRoot();

  /** The root of the receipts. */
  Hash receiptsRoot();

  /** The filter of the logs: 256 bytes. */
  Bytes logsBloom();

  /** The beacon chain's randomness. */
  Hash prevRandao();

  /** The block's number. */
  long blockNumber();

  /** The gas that the block may use. */
  long gasLimit();

  /** The gas that the block uses. */
  long gasUsed();

  /** Seconds since 1970. */
  long timestamp();

  /** Any bytes, at most 32. */
  Bytes extraData();

  /** The base fee. */
  Wei baseFeePerGas();

  /** The block's own hash. */
  Hash blockHash();

  /** Transactions, each in its form by EIP-2718. */
  List<Bytes> transactions();

  /** Withdrawals; from version 2 on. */
  default List<Withdrawal> withdrawals() {
    return List.of();
  }

  /** The gas of blobs that the block uses; from version 3 on. */
  default long blobGasUsed() {
    return 0;
  }

  /** The gas of blobs above the target so far; from version 3 on. */
  default long excessBlobGas() {
    return 0;
  }

  /** The block's access list (EIP-7928) in RLP; from version 4 on. */
  default Bytes blockAccessList() {
    return Bytes.EMPTY;
  }

  /** The slot's number; from version 4 on. */
  default long slotNumber() {
    return 0;
  }

  /** A payload whose fields are named one by one. */
  static ExecutionPayloadBuilder builder() {
    return new ExecutionPayloadBuilder();
  }

  /**
   * Reads the next value, an object of the structure whose members it has.
   *
   * @throws MalformedException if a member is missing, malformed, there twice, or of no structure:
   *     without it the payload would not have its hash
   */
  static ExecutionPayload read(JsonReader json) {
    return PayloadJson.read(json);
  }

  /** Writes an object with the structure's members. */
  default void write(JsonWriter json) {
    PayloadJson.write(this, json);
  }
}
