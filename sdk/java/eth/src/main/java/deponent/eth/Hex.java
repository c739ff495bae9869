package deponent.eth;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Objects;

/**
 * Bytes as hexadecimal digits.
 *
 * <pre>{@code
 * Hex.encode(new byte[] {1, (byte) 0xab}); // "0x01ab"
 * Hex.decode("0x01ab");                    // {1, (byte) 0xab}
 * }</pre>
 */
public final class Hex {
  /** One in each byte. */
  private static final long EACH = 0x0101010101010101L;

  /** The two digits of each byte, the first one in the upper byte. */
  private static final short[] PAIRS = new short[256];

  /** What a digit stands for, and -1 where it is none. */
  private static final byte[] VALUES = new byte[256];

  static {
    byte[] digits = "0123456789abcdef".getBytes(StandardCharsets.US_ASCII);
    for (int i = 0; i < 256; i++) {
      PAIRS[i] = (short) (digits[i >> 4] << 8 | digits[i & 15]);
    }
    Arrays.fill(VALUES, (byte) -1);
    for (int i = 0; i < 16; i++) {
      VALUES[digits[i]] = (byte) i;
      VALUES[Character.toUpperCase(digits[i])] = (byte) i;
    }
  }

  private Hex() {}

  /** The digits of {@code bytes} in lower case, after {@code 0x}. */
  public static String encode(byte[] bytes) {
    return encode(bytes, 0, bytes.length);
  }

  /**
   * The digits of {@code length} bytes from {@code at} on, in lower case, after {@code 0x}.
   *
   * @throws IndexOutOfBoundsException if they are not all there
   * @throws IllegalArgumentException if there are more than 2^30-2 bytes, whose digits fit no text
   */
  public static String encode(byte[] bytes, int at, int length) {
    if (length > (Integer.MAX_VALUE - 10) / 2) {
      throw new IllegalArgumentException(length + " bytes are too many for one text");
    }
    byte[] digits = new byte[2 + 2 * length];
    digits[0] = '0';
    digits[1] = 'x';
    encodeTo(bytes, at, length, digits, 2);
    return new String(digits, StandardCharsets.ISO_8859_1);
  }

  /**
   * Writes the digits of {@code length} bytes, two a byte and without {@code 0x}, as ASCII.
   *
   * @throws IndexOutOfBoundsException if they are not all there, or do not fit
   */
  public static void encodeTo(byte[] bytes, int at, int length, byte[] digits, int to) {
    Objects.checkFromIndexSize(at, length, bytes.length);
    Objects.checkFromIndexSize(to, 2 * length, digits.length);
    int i = 0;
    for (; i <= length - 4; i += 4) {
      Words.putLong(digits, to + 2 * i, digitsOf(Words.getInt(bytes, at + i)));
    }
    for (; i < length; i++) {
      short pair = PAIRS[bytes[at + i] & 0xff];
      digits[to + 2 * i] = (byte) (pair >> 8);
      digits[to + 2 * i + 1] = (byte) pair;
    }
  }

  /** The eight digits of four bytes, all at once. */
  private static long digitsOf(int four) {
    long nibbles = four & 0xffffffffL;
    nibbles = (nibbles << 16 | nibbles) & 0x0000ffff0000ffffL;
    nibbles = (nibbles << 8 | nibbles) & 0x00ff00ff00ff00ffL;
    nibbles = (nibbles << 4 | nibbles) & 0x0f0f0f0f0f0f0f0fL;
    return asciiOf(nibbles);
  }

  /** The digits of eight nibbles; {@code 'a'} is 0x27 above what would follow {@code '9'}. */
  private static long asciiOf(long nibbles) {
    long letters = nibbles + 0x0606060606060606L >>> 4 & EACH;
    return nibbles + 0x30 * EACH + 0x27 * letters;
  }

  /**
   * The bytes that the digits stand for, with or without {@code 0x} before them.
   *
   * @throws IllegalArgumentException if their number is odd, or one is no digit
   */
  public static byte[] decode(String hex) {
    int from = hex.startsWith("0x") ? 2 : 0;
    int digits = hex.length() - from;
    if (digits % 2 != 0) {
      throw new IllegalArgumentException(
          "an odd number of hex digits, " + digits + ": " + Quote.of(hex));
    }
    byte[] latin = hex.getBytes(StandardCharsets.ISO_8859_1);
    byte[] bytes = new byte[digits / 2];
    int wrong = decodeTo(latin, from, digits, bytes, 0);
    if (wrong >= 0) {
      throw new IllegalArgumentException(
          "no hex digit at " + wrong + ": " + Quote.of(hex.substring(wrong)));
    }
    return bytes;
  }

  /** Decodes an even number of digits; the place of the first that is none, or -1. */
  static int decodeTo(byte[] digits, int at, int length, byte[] bytes, int to) {
    int end = at + length;
    int i = at;
    int j = to;
    for (; i <= end - 8; i += 8, j += 4) {
      long ascii = Words.getLong(digits, i);
      long nibbles = (ascii & 0x0f * EACH) + 9 * (ascii >>> 6 & EACH);
      // Only digits come out again, but that those of lower bits look like '0' to '9'.
      boolean same = asciiOf(nibbles) == (ascii | 0x20 * EACH) && (nibbles & 0xf0 * EACH) == 0;
      if (!same || ((ascii | ascii >>> 1) & 0x20 * EACH) != 0x20 * EACH) {
        break;
      }
      long pairs = (nibbles >>> 4 | nibbles) & 0x00ff00ff00ff00ffL;
      pairs = (pairs >>> 8 | pairs) & 0x0000ffff0000ffffL;
      Words.putInt(bytes, j, (int) (pairs >>> 16 | pairs));
    }
    for (; i < end; i += 2, j++) {
      int value = VALUES[digits[i] & 0xff] << 4 | VALUES[digits[i + 1] & 0xff];
      if (value < 0) {
        return VALUES[digits[i] & 0xff] < 0 ? i : i + 1;
      }
      bytes[j] = (byte) value;
    }
    return -1;
  }

  /** What a digit stands for, or -1. */
  static int value(int digit) {
    return digit >= 0 && digit < 256 ? VALUES[digit] : -1;
  }
}
