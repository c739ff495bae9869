package deponent.wallet.internal;

import java.math.BigInteger;
import java.util.Arrays;
import org.bouncycastle.asn1.x9.X9ECParameters;
import org.bouncycastle.crypto.digests.SHA256Digest;
import org.bouncycastle.crypto.ec.CustomNamedCurves;
import org.bouncycastle.crypto.signers.HMacDSAKCalculator;
import org.bouncycastle.math.ec.ECAlgorithms;
import org.bouncycastle.math.ec.ECPoint;
import org.bouncycastle.math.ec.FixedPointCombMultiplier;
import org.bouncycastle.util.BigIntegers;
import org.jspecify.annotations.Nullable;

/** The curve of BouncyCastle, in Java alone. */
public final class BouncyCastle implements Curve {
  private static final X9ECParameters CURVE = CustomNamedCurves.getByName("secp256k1");
  private static final BigInteger ORDER = CURVE.getN();
  private static final BigInteger HALF_ORDER = ORDER.shiftRight(1);

  /** Makes one; it has no state. */
  public BouncyCastle() {}

  @Override
  public String name() {
    return "bouncycastle";
  }

  @Override
  public byte @Nullable [] publicKey(byte[] secret) {
    BigInteger number = new BigInteger(1, secret);
    if (number.signum() == 0 || number.compareTo(ORDER) >= 0) {
      return null;
    }
    return coordinates(new FixedPointCombMultiplier().multiply(CURVE.getG(), number));
  }

  @Override
  public byte[] sign(byte[] secret, byte[] hash) {
    BigInteger number = new BigInteger(1, secret);
    BigInteger message = new BigInteger(1, hash);
    HMacDSAKCalculator nonces = new HMacDSAKCalculator(new SHA256Digest());
    nonces.init(ORDER, number, hash);
    while (true) {
      BigInteger nonce = nonces.nextK();
      ECPoint point = new FixedPointCombMultiplier().multiply(CURVE.getG(), nonce).normalize();
      BigInteger x = point.getAffineXCoord().toBigInteger();
      // An x from the order on, which no signature in a transaction can say, has odds of 2^-128.
      if (x.compareTo(ORDER) >= 0) {
        continue;
      }
      BigInteger s =
          BigIntegers.modOddInverse(ORDER, nonce)
              .multiply(message.add(number.multiply(x)))
              .mod(ORDER);
      boolean odd = point.getAffineYCoord().testBitZero();
      if (s.compareTo(HALF_ORDER) > 0) {
        s = ORDER.subtract(s);
        odd = !odd;
      }
      if (x.signum() != 0 && s.signum() != 0) {
        byte[] signature = new byte[65];
        BigIntegers.asUnsignedByteArray(x, signature, 0, 32);
        BigIntegers.asUnsignedByteArray(s, signature, 32, 32);
        signature[64] = (byte) (odd ? 1 : 0);
        return signature;
      }
    }
  }

  @Override
  public byte @Nullable [] recover(byte[] hash, byte[] rs, int yParity) {
    BigInteger r = new BigInteger(1, rs, 0, 32);
    BigInteger s = new BigInteger(1, rs, 32, 32);
    boolean range = r.signum() > 0 && s.signum() > 0;
    if (!range || r.compareTo(ORDER) >= 0 || s.compareTo(ORDER) >= 0) {
      return null;
    }
    byte[] encoded = new byte[33];
    encoded[0] = (byte) (2 + yParity);
    System.arraycopy(rs, 0, encoded, 1, 32);
    ECPoint point = decoded(encoded);
    if (point == null) {
      return null;
    }
    BigInteger inverse = BigIntegers.modOddInverseVar(ORDER, r);
    BigInteger ofBase = new BigInteger(1, hash).negate().multiply(inverse).mod(ORDER);
    BigInteger ofPoint = s.multiply(inverse).mod(ORDER);
    ECPoint key = ECAlgorithms.sumOfTwoMultiplies(CURVE.getG(), ofBase, point, ofPoint);
    return key.isInfinity() ? null : coordinates(key);
  }

  @Override
  public byte @Nullable [] point(byte[] encoded) {
    ECPoint point = decoded(encoded);
    return point == null ? null : coordinates(point);
  }

  private static @Nullable ECPoint decoded(byte[] encoded) {
    try {
      ECPoint point = CURVE.getCurve().decodePoint(encoded);
      return point.isInfinity() ? null : point;
    } catch (IllegalArgumentException none) {
      return null;
    }
  }

  private static byte[] coordinates(ECPoint point) {
    return Arrays.copyOfRange(point.getEncoded(false), 1, 65);
  }
}
