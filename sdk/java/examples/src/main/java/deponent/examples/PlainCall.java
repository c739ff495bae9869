package deponent.examples;

import deponent.client.Client;
import deponent.eth.AbiFunction;
import deponent.eth.Address;
import java.math.BigInteger;

/** 4. A contract without generated code. */
public final class PlainCall {
  private static final AbiFunction BALANCE_OF =
      AbiFunction.of("balanceOf(address) view returns (uint256)");

  private PlainCall() {}

  static BigInteger held(Client eth, Address token, Address owner) {
    return eth.call(token, BALANCE_OF, owner).integer(0);
  }

  /** Prints the tokens of an account. */
  public static void main(String[] arguments) {
    try (Client eth = Client.connect(arguments[0])) {
      System.out.println(held(eth, Address.of(arguments[1]), Address.of(arguments[2])));
    }
  }
}
