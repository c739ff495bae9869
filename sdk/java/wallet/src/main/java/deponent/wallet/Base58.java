package deponent.wallet;

import java.math.BigInteger;
import java.util.Arrays;
import org.bouncycastle.crypto.digests.RIPEMD160Digest;
import org.bouncycastle.crypto.digests.SHA256Digest;

/** The text form of extended keys: digits to the base 58, with a checksum. */
final class Base58 {
  private static final String DIGITS = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
  private static final BigInteger BASE = BigInteger.valueOf(58);
  private static final int CHECKSUM = 4;

  /** No extended key has more digits. */
  private static final int LONGEST = 120;

  private Base58() {}

  static String encodeChecked(byte[] bytes) {
    byte[] all = Arrays.copyOf(bytes, bytes.length + CHECKSUM);
    System.arraycopy(sha256(sha256(bytes)), 0, all, bytes.length, CHECKSUM);
    StringBuilder text = new StringBuilder();
    BigInteger rest = new BigInteger(1, all);
    while (rest.signum() > 0) {
      BigInteger[] parts = rest.divideAndRemainder(BASE);
      text.append(DIGITS.charAt(parts[1].intValue()));
      rest = parts[0];
    }
    for (int i = 0; i < all.length && all[i] == 0; i++) {
      text.append(DIGITS.charAt(0));
    }
    Arrays.fill(all, (byte) 0);
    return text.reverse().toString();
  }

  static byte[] decodeChecked(String text) {
    if (text.length() > LONGEST) {
      throw new IllegalArgumentException("a text of " + text.length() + " digits is no key");
    }
    BigInteger number = BigInteger.ZERO;
    int zeros = 0;
    for (int i = 0; i < text.length(); i++) {
      int digit = DIGITS.indexOf(text.charAt(i));
      if (digit < 0) {
        throw new IllegalArgumentException("no digit of the base 58 at " + i);
      }
      number = number.multiply(BASE).add(BigInteger.valueOf(digit));
      zeros += digit == 0 && zeros == i ? 1 : 0;
    }
    byte[] magnitude = number.toByteArray();
    int sign = magnitude[0] == 0 ? 1 : 0;
    byte[] all = new byte[zeros + magnitude.length - sign];
    System.arraycopy(magnitude, sign, all, zeros, magnitude.length - sign);
    Arrays.fill(magnitude, (byte) 0);
    byte[] bytes = Arrays.copyOf(all, Math.max(0, all.length - CHECKSUM));
    byte[] given = Arrays.copyOfRange(all, bytes.length, bytes.length + CHECKSUM);
    Arrays.fill(all, (byte) 0);
    if (!Arrays.equals(given, Arrays.copyOf(sha256(sha256(bytes)), CHECKSUM))) {
      Arrays.fill(bytes, (byte) 0);
      throw new IllegalArgumentException("the checksum of the key's text is wrong");
    }
    return bytes;
  }

  /** RIPEMD-160 of SHA-256. */
  static byte[] hash160(byte[] bytes) {
    RIPEMD160Digest digest = new RIPEMD160Digest();
    digest.update(sha256(bytes), 0, 32);
    byte[] hash = new byte[20];
    digest.doFinal(hash, 0);
    return hash;
  }

  private static byte[] sha256(byte[] bytes) {
    SHA256Digest digest = new SHA256Digest();
    digest.update(bytes, 0, bytes.length);
    byte[] hash = new byte[32];
    digest.doFinal(hash, 0);
    return hash;
  }
}
