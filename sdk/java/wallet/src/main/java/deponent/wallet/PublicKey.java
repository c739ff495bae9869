package deponent.wallet;

import deponent.eth.Address;
import deponent.eth.Bytes;
import deponent.eth.Hash;
import deponent.eth.Keccak256;
import deponent.eth.Signature;
import deponent.wallet.internal.Curves;
import java.util.Arrays;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/** A public key of secp256k1. */
public final class PublicKey {
  private static final int COORDINATE = 32;

  private final Bytes point;

  PublicKey(byte[] point) {
    this.point = Bytes.of(point);
  }

  /**
   * Of its bytes: 33 in the compressed form, 65 in the other, or 64 without the byte before them.
   *
   * @throws IllegalArgumentException if they are no point of the curve
   */
  public static PublicKey of(Bytes encoded) {
    byte[] bytes = encoded.toBytes();
    if (bytes.length == 2 * COORDINATE) {
      bytes = Bytes.concat(Bytes.of("0x04"), encoded).toBytes();
    }
    boolean form = bytes.length == 65 && bytes[0] == 4;
    form |= bytes.length == 33 && (bytes[0] == 2 || bytes[0] == 3);
    byte @Nullable [] point = form ? Curves.chosen().point(bytes) : null;
    if (point == null) {
      throw new IllegalArgumentException(
          "no public key of secp256k1 in " + encoded.size() + " bytes");
    }
    return new PublicKey(point);
  }

  /**
   * The key that signed, or none where the signature is of no key. Signatures with a high s, which
   * transactions may not have, are taken.
   */
  public static Optional<PublicKey> recover(Hash hash, Signature signature) {
    if (signature.yParity() > 1) {
      return Optional.empty();
    }
    byte[] halves = Arrays.copyOf(signature.toBytes().toBytes(), 2 * COORDINATE);
    byte @Nullable [] point = Curves.chosen().recover(hash.toBytes(), halves, signature.yParity());
    return point == null ? Optional.empty() : Optional.of(new PublicKey(point));
  }

  /** Whether this key signed. */
  public boolean verifies(Hash hash, Signature signature) {
    return recover(hash, signature).filter(this::equals).isPresent();
  }

  /** The account. */
  public Address address() {
    return Address.of(Keccak256.hash(point).toBytes(), 12);
  }

  /** 64 bytes: both coordinates. */
  public Bytes toBytes() {
    return point;
  }

  /** 33 bytes: the parity of y, as 2 or 3, and x. */
  public Bytes compressed() {
    byte[] bytes = new byte[1 + COORDINATE];
    bytes[0] = (byte) (2 + (point.at(2 * COORDINATE - 1) & 1));
    System.arraycopy(point.toBytes(), 0, bytes, 1, COORDINATE);
    return Bytes.of(bytes);
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof PublicKey key && point.equals(key.point);
  }

  @Override
  public int hashCode() {
    return point.hashCode();
  }

  /** The hex digits of the 64 bytes. */
  @Override
  public String toString() {
    return point.toString();
  }
}
