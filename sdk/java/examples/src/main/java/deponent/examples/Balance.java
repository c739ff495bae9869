package deponent.examples;

import deponent.client.Client;
import deponent.eth.Address;
import java.math.BigDecimal;

/** 1. A balance: the address of the node chooses the transport. */
public final class Balance {
  private Balance() {}

  static BigDecimal of(String node, String account) {
    try (Client eth = Client.connect(node)) {
      return eth.balance(Address.of(account)).toEther();
    }
  }

  /** Prints the balance of an account at a node, in ether. */
  public static void main(String[] arguments) {
    System.out.println(of(arguments[0], arguments[1]));
  }
}
