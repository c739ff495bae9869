package deponent.eth;

import java.math.BigInteger;

/**
 * A signature over secp256k1, of which the signer's key can be recovered.
 *
 * @param r the x-coordinate of the signature's point, at most 256 bits
 * @param s its other half, at most 256 bits
 * @param yParity whether the point's y-coordinate is odd: 0 or 1; at most 255 in authorizations
 */
public record Signature(BigInteger r, BigInteger s, int yParity) {
  /** The number of bytes of {@link #toBytes}. */
  public static final int SIZE = 65;

  private static final BigInteger ORDER =
      new BigInteger("fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141", 16);

  private static final BigInteger HALF_ORDER = ORDER.shiftRight(1);

  /** Checks that all parts have so many bits at most. */
  public Signature {
    boolean half = r.signum() < 0 || r.bitLength() > 256 || s.signum() < 0 || s.bitLength() > 256;
    if (half || yParity < 0 || yParity > 255) {
      throw new IllegalArgumentException("a signature has two numbers of 256 bits and a parity");
    }
  }

  /**
   * Of 65 bytes: r, s, and the parity as 0, 1, 27 or 28.
   *
   * @throws IllegalArgumentException if there are more or fewer, or the last is another
   */
  public static Signature of(Bytes bytes) {
    if (bytes.size() != SIZE) {
      throw new IllegalArgumentException("a signature has 65 bytes, not " + bytes.size());
    }
    int last = bytes.at(SIZE - 1) & 0xff;
    if (last > 1 && last != 27 && last != 28) {
      throw new IllegalArgumentException("a signature ends in 0, 1, 27 or 28, not " + last);
    }
    return new Signature(
        new BigInteger(1, bytes.array, 0, 32),
        new BigInteger(1, bytes.array, 32, 32),
        last >= 27 ? last - 27 : last);
  }

  /**
   * Whether a transaction may have it: r and s are from 1 to the curve's order, s is in the lower
   * half (EIP-2), and the parity is 0 or 1.
   */
  public boolean isCanonical() {
    return yParity <= 1
        && r.signum() > 0
        && s.signum() > 0
        && r.compareTo(ORDER) < 0
        && s.compareTo(HALF_ORDER) <= 0;
  }

  /** 65 bytes: r, s, and 27 or 28, as {@code personal_sign} and contracts have it. */
  public Bytes toBytes() {
    byte[] bytes = new byte[SIZE];
    Wei.of(r).putWord(bytes, 0);
    Wei.of(s).putWord(bytes, 32);
    bytes[SIZE - 1] = (byte) (27 + yParity);
    return Bytes.own(bytes);
  }

  /** The hex digits of the 65 bytes. */
  @Override
  public String toString() {
    return toBytes().toString();
  }
}
