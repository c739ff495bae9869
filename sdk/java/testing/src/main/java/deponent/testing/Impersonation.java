package deponent.testing;

import deponent.client.Call;
import deponent.eth.Address;
import deponent.eth.Hash;

/**
 * An account whose transactions need no key, until it is closed.
 *
 * <pre>{@code
 * try (Impersonation whale = chain.impersonate(address)) {
 *   Hash sent = whale.send(Call.to(friend).value(Wei.ether("1")));
 * }
 * }</pre>
 */
public final class Impersonation implements AutoCloseable {
  private final TestClient chain;
  private final Address account;

  Impersonation(TestClient chain, Address account) {
    this.chain = chain;
    this.account = account;
  }

  /** The account. */
  public Address address() {
    return account;
  }

  /**
   * Sends a transaction from the account, and has its hash. Gas, fees and nonce are filled in by
   * the node.
   */
  public Hash send(Call transaction) {
    return chain.send(transaction.from(account));
  }

  /** Ends the impersonation. */
  @Override
  public void close() {
    chain.stopImpersonating(account);
  }

  /** The account's address. */
  @Override
  public String toString() {
    return account.toString();
  }
}
