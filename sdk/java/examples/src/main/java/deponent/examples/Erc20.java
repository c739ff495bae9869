package deponent.examples;

import deponent.client.Contract;
import deponent.client.Error;
import deponent.client.Event;
import deponent.client.PendingTransaction;
import deponent.client.Send;
import deponent.client.View;
import deponent.eth.Address;
import java.math.BigInteger;

/** 3. A contract through an interface: the annotation processor writes {@code Erc20Contract}. */
@Contract
public interface Erc20 {
  /** The tokens of an account. */
  @View("balanceOf(address) returns (uint256)")
  BigInteger balanceOf(Address owner);

  /** Sends tokens. */
  @Send("transfer(address to, uint256 value) returns (bool)")
  PendingTransaction transfer(Address to, BigInteger value);

  /** Tokens were sent. */
  @Event("Transfer(address indexed from, address indexed to, uint256 value)")
  record Transfer(Address from, Address to, BigInteger value) {}

  /** An account has fewer tokens than it sends. */
  @Error("InsufficientBalance(uint256 available, uint256 required)")
  record InsufficientBalance(BigInteger available, BigInteger required) {}
}
