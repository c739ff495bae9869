package deponent.eth;

import java.util.List;
import java.util.OptionalLong;
import org.jspecify.annotations.Nullable;

/**
 * A transaction of the first kind.
 *
 * @param chain the chain (EIP-155), or none where it counts on all
 * @param nonce the sender's transactions before this one, as 64 bits without a sign
 * @param gasPrice what it pays for a unit of gas
 * @param gasLimit the most gas that it may use, as 64 bits without a sign
 * @param to the receiver, or null to create a contract
 * @param value what it sends
 * @param data the data of the call, or the init code
 */
public record LegacyTransaction(
    OptionalLong chain,
    long nonce,
    Wei gasPrice,
    long gasLimit,
    @Nullable Address to,
    Wei value,
    Bytes data)
    implements Transaction {
  /** Checks the numbers. */
  public LegacyTransaction {
    TransactionRlp.checkNonce(nonce);
    TransactionRlp.checkChain(chain.orElse(1));
  }

  @Override
  public int type() {
    return 0;
  }

  @Override
  public Wei maxFeePerGas() {
    return gasPrice;
  }

  @Override
  public Wei maxPriorityFeePerGas() {
    return gasPrice;
  }

  @Override
  public List<AccessListEntry> accessList() {
    return List.of();
  }
}
