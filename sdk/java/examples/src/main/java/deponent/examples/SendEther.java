package deponent.examples;

import deponent.client.Account;
import deponent.client.Call;
import deponent.client.Client;
import deponent.client.Receipt;
import deponent.eth.Address;
import deponent.eth.Wei;
import deponent.wallet.PrivateKey;

/** 2. Ether is sent, and its receipt awaited: nonce, fees and gas are filled in. */
public final class SendEther {
  private SendEther() {}

  static Receipt send(Client eth, PrivateKey key, Address friend) {
    Account me = eth.account(key);
    return me.send(Call.to(friend).value(Wei.ether("0.5"))).await();
  }

  /** Sends half an ether from the account of the variable KEY. */
  public static void main(String[] arguments) {
    try (Client eth = Client.connect(arguments[0])) {
      PrivateKey key = PrivateKey.of(System.getenv("KEY"));
      System.out.println(send(eth, key, Address.of(arguments[1])).transactionHash());
    }
  }
}
