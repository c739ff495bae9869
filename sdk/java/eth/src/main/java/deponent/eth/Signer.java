package deponent.eth;

import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;

/**
 * Signs for one account: a key in this process, or a service elsewhere. It may refuse.
 *
 * <pre>{@code
 * SignedTransaction signed = signer.sign(transaction);
 * Signature greeting = signer.signMessage("Hello");
 * }</pre>
 */
public interface Signer {
  /** The account. */
  Address address();

  /** Signs; the future fails with an {@link EthException} where there is no signature. */
  CompletableFuture<Signature> signAsync(SigningRequest request);

  /**
   * Signs, and waits for it.
   *
   * @throws EthException if there is no signature
   */
  default Signature sign(SigningRequest request) {
    try {
      return signAsync(request).join();
    } catch (CompletionException failed) {
      if (failed.getCause() instanceof RuntimeException cause) {
        throw cause;
      }
      throw failed;
    }
  }

  /** A transaction, with its signature. */
  default SignedTransaction sign(Transaction transaction) {
    return transaction.signed(sign(new SigningRequest.OfTransaction(transaction)));
  }

  /** An authorization, with its signature. */
  default Authorization.Signed sign(Authorization authorization) {
    return authorization.signed(sign(new SigningRequest.OfAuthorization(authorization)));
  }

  /** The signature of typed data. */
  default Signature sign(TypedData data) {
    return sign(new SigningRequest.OfTypedData(data));
  }

  /**
   * The signature of a text, as {@code personal_sign} makes it.
   *
   * @throws IllegalArgumentException if it has half of a surrogate pair, which is no UTF-8
   */
  default Signature signMessage(String text) {
    return signMessage(AbiType.encodePacked(List.of(new AbiText()), text));
  }

  /** The signature of a message, as {@code personal_sign} makes it. */
  default Signature signMessage(Bytes message) {
    return sign(new SigningRequest.OfMessage(message));
  }
}
