package deponent.examples;

import deponent.client.EnsName;
import deponent.eth.Address;
import deponent.wallet.Mnemonic;
import deponent.wallet.PrivateKey;

/** Keys of a phrase, and a signature, without a node: it runs as a native image as well. */
public final class Offline {
  private Offline() {}

  static String run(String phrase, String name) {
    try (Mnemonic mnemonic = Mnemonic.of(phrase);
        PrivateKey key = mnemonic.key(0)) {
      Address address = key.address();
      String signature = key.sign(SignTypedData.mail(address, address)).toBytes().toString();
      return address + " " + EnsName.of(name) + " " + signature;
    }
  }

  /**
   * Prints the address and a signature of the phrase's first key, and a name in its normal form.
   */
  public static void main(String[] arguments) {
    System.out.println(run(arguments[0], arguments[1]));
  }
}
