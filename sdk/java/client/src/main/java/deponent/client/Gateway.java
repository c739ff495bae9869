package deponent.client;

import deponent.eth.Address;
import deponent.eth.Bytes;

/**
 * Asks the servers that contracts name for data off the chain (EIP-3668). An application that wants
 * a say in which servers are asked, or a proxy, gives its own to {@link Ens#gateway}.
 */
@FunctionalInterface
public interface Gateway {
  /**
   * Asks one server.
   *
   * @param url the address as the contract gave it, with {@code {sender}} and {@code {data}}
   * @param sender the contract that asks
   * @param data what it asks
   * @return what the server answered, which the contract verifies
   * @throws deponent.eth.TransportException without an answer; the next address is tried
   * @throws deponent.eth.ProtocolException if the server refuses or answers something else; with a
   *     {@link Refusal} as cause no other address is tried
   */
  Bytes ask(String url, Address sender, Bytes data);

  /** A server's answer that the request is at fault, by a status from 400 to 499. */
  final class Refusal extends Exception {
    private static final long serialVersionUID = 1;

    private final int status;

    /** With the status and what the server said. */
    public Refusal(int status, String message) {
      super(message, null, false, false);
      this.status = status;
    }

    /** The status of HTTP. */
    public int status() {
      return status;
    }
  }

  /**
   * Asks over HTTPS alone, follows no redirection, gives a server 10 s and takes 4 MiB of it.
   * Whoever wrote the contract chooses the host, which may be one of the caller's own network.
   */
  static Gateway https() {
    return new HttpGateway(false);
  }
}
