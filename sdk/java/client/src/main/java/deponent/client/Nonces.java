package deponent.client;

import deponent.eth.Address;
import deponent.eth.Hash;
import deponent.eth.TransportException;

/**
 * Gives transactions their nonces: that of the account's next transaction, without holes.
 *
 * <pre>{@code
 * Account me = eth.account(key).nonces(Nonces.remote());
 * }</pre>
 */
public interface Nonces {
  /**
   * Counts here. Where nobody else is sending, the server is asked for the account's transactions,
   * pending ones among them, while gas and fees are found out; those who send meanwhile go on from
   * there. One transaction after the other is given to the server, so one that it refuses leaves no
   * hole, and after it, or without an answer, the server is asked again. It is of one chain.
   */
  static Nonces local() {
    return new LocalNonces();
  }

  /**
   * Asks the server each time, and counts nothing: for accounts from which others send as well, by
   * one thread each.
   */
  static Nonces remote() {
    return new RemoteNonces();
  }

  /** Begins a transaction. It does not block, but may ask the server ahead. */
  Turn begin(Client client, Address account);

  /** One transaction's turn to be sent. */
  interface Turn extends AutoCloseable {
    /**
     * Waits until it is this transaction's turn.
     *
     * @return its nonce
     * @throws deponent.eth.EthException if the server has to be asked, and does not say it
     */
    long take();

    /** The server has {@code transaction}; the account's next one has the nonce {@code next}. */
    void sent(Hash transaction, long next);

    /**
     * The server did not say whether it has the transaction: {@code why}. Those who wait for their
     * turn fail with it, too, instead of waiting for a server that is away one after the other.
     */
    void lost(TransportException why);

    /** Ends the turn. Where nothing was sent, the nonce is free, or nobody knows. */
    @Override
    void close();
  }
}
