package deponent.wallet;

import deponent.eth.Address;
import deponent.eth.Bytes;
import deponent.eth.Hash;
import deponent.eth.Hex;
import deponent.eth.Signature;
import deponent.eth.Signer;
import deponent.eth.SigningRequest;
import deponent.wallet.internal.Curves;
import java.security.SecureRandom;
import java.util.Arrays;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import javax.security.auth.Destroyable;
import org.jspecify.annotations.Nullable;

/**
 * A private key in this process. Its text does not show it.
 *
 * <pre>{@code
 * try (PrivateKey key = PrivateKey.of(System.getenv("KEY"))) {
 *   SignedTransaction signed = key.sign(transaction);
 * }
 * }</pre>
 */
public final class PrivateKey implements Signer, Destroyable, AutoCloseable {
  /** The number of bytes. */
  public static final int SIZE = 32;

  private final byte[] secret;
  private final PublicKey publicKey;
  private final Address address;
  private volatile boolean destroyed;

  private PrivateKey(byte[] secret) {
    byte @Nullable [] point = secret.length == SIZE ? Curves.chosen().publicKey(secret) : null;
    if (point == null) {
      throw new IllegalArgumentException(
          "a private key has 32 bytes, is not zero, and is below the order of secp256k1");
    }
    this.secret = secret;
    this.publicKey = new PublicKey(point);
    this.address = publicKey.address();
  }

  /**
   * Of 64 hex digits, with or without {@code 0x} before them.
   *
   * @throws IllegalArgumentException if they are no key; the message does not show them
   * @throws NullPointerException if there are none, as of a variable that is not set
   */
  public static PrivateKey of(String hex) {
    Objects.requireNonNull(
        hex, "there is no private key: is the variable set that should hold it?");
    byte[] secret;
    try {
      secret = Hex.decode(hex);
    } catch (IllegalArgumentException hidden) {
      throw new IllegalArgumentException("a private key is 64 hex digits");
    }
    return new PrivateKey(secret);
  }

  /**
   * Of 32 bytes, which are copied.
   *
   * @throws IllegalArgumentException if they are no key
   */
  public static PrivateKey of(byte[] secret) {
    return new PrivateKey(secret.clone());
  }

  /** A new one, of the system's secure random numbers. */
  public static PrivateKey random() {
    SecureRandom random = new SecureRandom();
    byte[] secret = new byte[SIZE];
    do {
      random.nextBytes(secret);
    } while (Curves.chosen().publicKey(secret) == null);
    return new PrivateKey(secret);
  }

  /** The public key. */
  public PublicKey publicKey() {
    return publicKey;
  }

  @Override
  public Address address() {
    return address;
  }

  /**
   * The signature of a hash: always the same (RFC 6979), with s in the lower half. Sign no hash
   * that others made: it may be that of a transaction.
   *
   * @throws IllegalStateException if the key was destroyed
   */
  public Signature sign(Hash hash) {
    return Signature.of(Bytes.of(Curves.chosen().sign(held(), hash.toBytes())));
  }

  @Override
  public Signature sign(SigningRequest request) {
    return sign(request.hash());
  }

  @Override
  public CompletableFuture<Signature> signAsync(SigningRequest request) {
    return CompletableFuture.completedFuture(sign(request));
  }

  /**
   * A copy of the 32 bytes.
   *
   * @throws IllegalStateException if the key was destroyed
   */
  public byte[] toBytes() {
    return held().clone();
  }

  private byte[] held() {
    if (destroyed) {
      throw new IllegalStateException("the private key was destroyed");
    }
    return secret;
  }

  /** Overwrites the secret. */
  @Override
  public void destroy() {
    destroyed = true;
    Arrays.fill(secret, (byte) 0);
  }

  @Override
  public boolean isDestroyed() {
    return destroyed;
  }

  /** As {@link #destroy}. */
  @Override
  public void close() {
    destroy();
  }

  /** The address, and not the key. */
  @Override
  public String toString() {
    return "PrivateKey[" + address + "]";
  }
}
