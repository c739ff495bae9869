package deponent.eth;

import java.util.List;
import java.util.OptionalLong;
import org.jspecify.annotations.Nullable;

/**
 * A transaction of type 1: with an access list (EIP-2930).
 *
 * @param chainId the chain, from 1 on
 * @param nonce the sender's transactions before this one, as 64 bits without a sign
 * @param gasPrice what it pays for a unit of gas
 * @param gasLimit the most gas that it may use, as 64 bits without a sign
 * @param to the receiver, or null to create a contract
 * @param value what it sends
 * @param data the data of the call, or the init code
 * @param accessList accounts and slots that are warm from the beginning
 */
public record AccessListTransaction(
    long chainId,
    long nonce,
    Wei gasPrice,
    long gasLimit,
    @Nullable Address to,
    Wei value,
    Bytes data,
    List<AccessListEntry> accessList)
    implements Transaction {
  /** Copies the lists, and checks the numbers. */
  public AccessListTransaction {
    TransactionRlp.checkNonce(nonce);
    TransactionRlp.checkChain(chainId);
    accessList = List.copyOf(accessList);
  }

  @Override
  public int type() {
    return 1;
  }

  @Override
  public OptionalLong chain() {
    return OptionalLong.of(chainId);
  }

  @Override
  public Wei maxFeePerGas() {
    return gasPrice;
  }

  @Override
  public Wei maxPriorityFeePerGas() {
    return gasPrice;
  }
}
