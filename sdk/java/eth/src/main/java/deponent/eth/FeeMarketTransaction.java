package deponent.eth;

import java.util.List;
import java.util.OptionalLong;
import org.jspecify.annotations.Nullable;

/**
 * A transaction of type 2: with a tip above the base fee (EIP-1559).
 *
 * @param chainId the chain, from 1 on
 * @param nonce the sender's transactions before this one, as 64 bits without a sign
 * @param maxPriorityFeePerGas the most that the block's builder gets for a unit of gas
 * @param maxFeePerGas the most that it pays for a unit of gas
 * @param gasLimit the most gas that it may use, as 64 bits without a sign
 * @param to the receiver, or null to create a contract
 * @param value what it sends
 * @param data the data of the call, or the init code
 * @param accessList accounts and slots that are warm from the beginning
 */
public record FeeMarketTransaction(
    long chainId,
    long nonce,
    Wei maxPriorityFeePerGas,
    Wei maxFeePerGas,
    long gasLimit,
    @Nullable Address to,
    Wei value,
    Bytes data,
    List<AccessListEntry> accessList)
    implements Transaction {
  /** Copies the lists, and checks the numbers. */
  public FeeMarketTransaction {
    TransactionRlp.checkNonce(nonce);
    TransactionRlp.checkChain(chainId);
    accessList = List.copyOf(accessList);
  }

  @Override
  public int type() {
    return 2;
  }

  @Override
  public OptionalLong chain() {
    return OptionalLong.of(chainId);
  }
}
