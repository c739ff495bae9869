package deponent.examples;

import deponent.client.Account;
import deponent.eth.Address;
import deponent.eth.RevertException;
import java.math.BigInteger;

/** 7. Why a transaction would fail, before it is sent: errors of the contract are known by name. */
public final class WhyItFails {
  private WhyItFails() {}

  static String reason(Account me, Address token, Address friend) {
    try {
      Erc20Contract.at(me, token).transfer(friend, BigInteger.TEN);
      return "it would not";
    } catch (RevertException revert) {
      return revert.reason(); // InsufficientBalance(0, 10)
    }
  }
}
