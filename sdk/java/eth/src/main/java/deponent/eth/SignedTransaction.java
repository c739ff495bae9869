package deponent.eth;

import java.util.Optional;

/**
 * A transaction with its signature, as it is sent and as blocks have it.
 *
 * @param transaction what is signed
 * @param signature the sender's
 */
public record SignedTransaction(Transaction transaction, Signature signature) {
  /** Checks that the signature's parity is 0 or 1. */
  public SignedTransaction {
    if (signature.yParity() > 1) {
      throw new IllegalArgumentException("a parity of " + signature.yParity() + ": it is 0 or 1");
    }
  }

  /**
   * Of the bytes that {@code eth_sendRawTransaction} takes, without blobs beside them. Signatures
   * are not checked against the curve, nor whether a block takes the transaction: {@link #fault}.
   *
   * @throws MalformedException if they are no transaction of a type from 0 to 4
   */
  public static SignedTransaction decode(Bytes bytes) {
    return TransactionRlp.decode(bytes);
  }

  /** The bytes that {@code eth_sendRawTransaction} takes, but for blobs: {@link BlobSidecar}. */
  public Bytes encode() {
    return TransactionRlp.signed(this);
  }

  /** The transaction's hash. */
  public Hash hash() {
    return Keccak256.hash(encode());
  }

  /** Why no block has it, as far as it says so itself. */
  public Optional<String> fault() {
    return signature.isCanonical()
        ? transaction.fault()
        : Optional.of("a signature outside of the curve's order, or with a high s");
  }
}
