package deponent.eth;

import java.nio.charset.StandardCharsets;

/** What a {@link Signer} is asked to sign, so that it can show it, refuse it, or hash it itself. */
public sealed interface SigningRequest
    permits SigningRequest.OfTransaction,
        SigningRequest.OfMessage,
        SigningRequest.OfTypedData,
        SigningRequest.OfAuthorization {
  /** The hash that is signed. */
  Hash hash();

  /**
   * A transaction.
   *
   * @param transaction with all its parts
   */
  record OfTransaction(Transaction transaction) implements SigningRequest {
    @Override
    public Hash hash() {
      return transaction.signingHash();
    }
  }

  /**
   * A message (EIP-191), as {@code personal_sign} signs it.
   *
   * @param message its bytes, mostly a text in UTF-8
   */
  record OfMessage(Bytes message) implements SigningRequest {
    @Override
    public Hash hash() {
      String prefix = "\u0019Ethereum Signed Message:\n" + message.size();
      return new Keccak256()
          .update(prefix.getBytes(StandardCharsets.UTF_8))
          .update(message.array)
          .digest();
    }
  }

  /**
   * Typed data (EIP-712).
   *
   * @param data with its domain
   */
  record OfTypedData(TypedData data) implements SigningRequest {
    @Override
    public Hash hash() {
      return data.hash();
    }
  }

  /**
   * An authorization (EIP-7702).
   *
   * @param authorization with its chain
   */
  record OfAuthorization(Authorization authorization) implements SigningRequest {
    @Override
    public Hash hash() {
      return authorization.signingHash();
    }
  }
}
