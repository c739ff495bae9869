package deponent.eth;

import java.util.List;
import java.util.OptionalLong;

/**
 * A transaction of type 3: with blobs beside it (EIP-4844).
 *
 * @param chainId the chain, from 1 on
 * @param nonce the sender's transactions before this one, as 64 bits without a sign
 * @param maxPriorityFeePerGas the most that the block's builder gets for a unit of gas
 * @param maxFeePerGas the most that it pays for a unit of gas
 * @param gasLimit the most gas that it may use, as 64 bits without a sign
 * @param to the receiver
 * @param value what it sends
 * @param data the data of the call
 * @param accessList accounts and slots that are warm from the beginning
 * @param maxFeePerBlobGas the most that it pays for a unit of blob gas
 * @param blobVersionedHashes the hashes of its blobs
 */
public record BlobTransaction(
    long chainId,
    long nonce,
    Wei maxPriorityFeePerGas,
    Wei maxFeePerGas,
    long gasLimit,
    Address to,
    Wei value,
    Bytes data,
    List<AccessListEntry> accessList,
    Wei maxFeePerBlobGas,
    List<Hash> blobVersionedHashes)
    implements Transaction {
  /** Copies the lists, and checks the numbers. */
  public BlobTransaction {
    TransactionRlp.checkNonce(nonce);
    TransactionRlp.checkChain(chainId);
    accessList = List.copyOf(accessList);
    blobVersionedHashes = List.copyOf(blobVersionedHashes);
  }

  @Override
  public int type() {
    return 3;
  }

  @Override
  public OptionalLong chain() {
    return OptionalLong.of(chainId);
  }
}
