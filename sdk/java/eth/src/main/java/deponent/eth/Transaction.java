package deponent.eth;

import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;
import org.jspecify.annotations.Nullable;

/**
 * A transaction that is not signed yet.
 *
 * <pre>{@code
 * Transaction transfer =
 *     Transaction.to(friend).chainId(1).nonce(7).value(Wei.ether("1")).gasLimit(21_000)
 *         .fees(Wei.gwei("20"), Wei.gwei("1")).build();
 * Hash signed = transfer.signingHash();
 * }</pre>
 */
public sealed interface Transaction
    permits LegacyTransaction,
        AccessListTransaction,
        FeeMarketTransaction,
        BlobTransaction,
        SetCodeTransaction {
  /** Begins a transaction to {@code to}. */
  static TransactionBuilder to(Address to) {
    return new TransactionBuilder(to);
  }

  /** Begins a transaction that creates a contract by {@code initCode}. */
  static TransactionBuilder create(Bytes initCode) {
    return new TransactionBuilder(null).data(initCode);
  }

  /** The type: 0 for legacy ones, 1 to 4. */
  int type();

  /** The chain's id; none of a transaction that counts on all chains. */
  OptionalLong chain();

  /** The sender's transactions before this one, as 64 bits without a sign; never 2^64-1. */
  long nonce();

  /** The most gas that it may use, as 64 bits without a sign. */
  long gasLimit();

  /** The receiver; none where it creates a contract. */
  @Nullable Address to();

  /** What it sends. */
  Wei value();

  /** The data of the call, or the init code. */
  Bytes data();

  /** The most that it pays for a unit of gas. */
  Wei maxFeePerGas();

  /** The most that the block's builder gets for a unit of gas. */
  Wei maxPriorityFeePerGas();

  /** Accounts and slots that are warm from the beginning. */
  List<AccessListEntry> accessList();

  /** The bytes of which the signed hash is made. */
  default Bytes signingPayload() {
    return TransactionRlp.unsigned(this);
  }

  /** The hash that is signed. */
  default Hash signingHash() {
    return Keccak256.hash(signingPayload());
  }

  /** With a signature, which is not checked. */
  default SignedTransaction signed(Signature signature) {
    return new SignedTransaction(this, signature);
  }

  /** The gas that is paid before anything runs, in the forks since Prague. */
  default long intrinsicGas() {
    return TransactionGas.intrinsic(this);
  }

  /** The gas that is paid at least, for the data alone (EIP-7623, since Prague). */
  default long floorGas() {
    return TransactionGas.floor(this);
  }

  /** Why no block has it, as far as it says so itself: its gas, its fees, the size of its code. */
  default Optional<String> fault() {
    return TransactionGas.fault(this);
  }
}
