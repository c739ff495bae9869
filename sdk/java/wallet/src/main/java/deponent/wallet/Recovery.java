package deponent.wallet;

import deponent.eth.Address;
import deponent.eth.Authorization;
import deponent.eth.Hash;
import deponent.eth.Signature;
import deponent.eth.SignedTransaction;
import deponent.eth.SigningRequest;
import deponent.wallet.internal.Curves;
import java.util.Optional;

/**
 * Who signed.
 *
 * <pre>{@code
 * Address sender = Recovery.sender(SignedTransaction.decode(bytes)).orElseThrow();
 * }</pre>
 */
public final class Recovery {
  private Recovery() {}

  /** The sender of a transaction; none where its signature is not canonical, or of no key. */
  public static Optional<Address> sender(SignedTransaction signed) {
    return canonical(signed.transaction().signingHash(), signed.signature());
  }

  /** The account that gave an authorization; none where its signature is not canonical. */
  public static Optional<Address> authority(Authorization.Signed signed) {
    return canonical(signed.authorization().signingHash(), signed.signature());
  }

  /** The account that signed a message, typed data or something else. */
  public static Optional<Address> signer(SigningRequest request, Signature signature) {
    return canonical(request.hash(), signature);
  }

  private static Optional<Address> canonical(Hash hash, Signature signature) {
    return signature.isCanonical()
        ? PublicKey.recover(hash, signature).map(PublicKey::address)
        : Optional.empty();
  }

  /** The library that signs and recovers: {@code libsecp256k1} or {@code bouncycastle}. */
  public static String library() {
    return Curves.chosen().name();
  }
}
