package deponent.eth;

import java.util.List;
import java.util.OptionalLong;

/**
 * A transaction of type 4: with authorizations (EIP-7702).
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
 * @param authorizations accounts that take the code of contracts
 */
public record SetCodeTransaction(
    long chainId,
    long nonce,
    Wei maxPriorityFeePerGas,
    Wei maxFeePerGas,
    long gasLimit,
    Address to,
    Wei value,
    Bytes data,
    List<AccessListEntry> accessList,
    List<Authorization.Signed> authorizations)
    implements Transaction {
  /** Copies the lists, and checks the numbers. */
  public SetCodeTransaction {
    TransactionRlp.checkNonce(nonce);
    TransactionRlp.checkChain(chainId);
    accessList = List.copyOf(accessList);
    authorizations = List.copyOf(authorizations);
  }

  @Override
  public int type() {
    return 4;
  }

  @Override
  public OptionalLong chain() {
    return OptionalLong.of(chainId);
  }
}
