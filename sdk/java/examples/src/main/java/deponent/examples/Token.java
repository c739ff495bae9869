package deponent.examples;

import deponent.client.Account;
import deponent.client.Contract;
import deponent.client.Receipt;
import deponent.eth.Address;
import java.math.BigInteger;
import java.util.List;

/** The token of these examples, by its JSON ABI, which has the code that deploys it as well. */
@Contract(abi = "Token.json")
interface Token {
  /** Deploys it, and has its address. */
  static Address deploy(Account me, BigInteger supply) {
    return TokenContract.deploy(me, supply).await().contractAddress().orElseThrow();
  }

  /** Sends tokens, and has what the receipt tells of that. */
  static List<Erc20.Transfer> send(Account me, Address token, Address to, BigInteger value) {
    Receipt receipt = Erc20Contract.at(me, token).transfer(to, value).await();
    return Erc20Contract.TRANSFER.in(receipt, token);
  }
}
