package deponent.wallet.internal;

import org.jspecify.annotations.Nullable;

/**
 * The arithmetic of secp256k1. Keys, hashes and halves of signatures are 32 bytes each, points 64:
 * both coordinates. Any number of threads use it at a time.
 */
public interface Curve {
  /** The library's name. */
  String name();

  /** The public key, or null where the secret is none: zero, or not below the order. */
  byte @Nullable [] publicKey(byte[] secret);

  /** 65 bytes: r, s in the lower half, and the parity of y (RFC 6979, SHA-256). */
  byte[] sign(byte[] secret, byte[] hash);

  /** The public key that signed, or null where there is none; {@code rs} has 64 bytes. */
  byte @Nullable [] recover(byte[] hash, byte[] rs, int yParity);

  /** The point of 33 or 65 bytes, or null where they are none. */
  byte @Nullable [] point(byte[] encoded);
}
