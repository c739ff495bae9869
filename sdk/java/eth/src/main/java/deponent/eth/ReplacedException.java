package deponent.eth;

import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * A transaction that no block will have: another one, which does something else, took its nonce.
 */
public final class ReplacedException extends EthException {
  private static final long serialVersionUID = 1;

  private final transient Hash transaction;
  private final transient @Nullable Hash replacement;

  /** With the transaction that has no place any more, and the one that took it, if it is known. */
  public ReplacedException(Hash transaction, @Nullable Hash replacement) {
    super(
        transaction
            + " is in no block: its nonce was used by "
            + (replacement == null ? "another transaction, or an authorization" : replacement),
        null);
    this.transaction = transaction;
    this.replacement = replacement;
  }

  /** The transaction that was replaced. */
  public Hash transaction() {
    return transaction;
  }

  /** The transaction in its place; none where an authorization (EIP-7702) took the nonce. */
  public Optional<Hash> replacement() {
    return Optional.ofNullable(replacement);
  }
}
