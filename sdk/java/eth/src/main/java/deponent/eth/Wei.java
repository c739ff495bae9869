package deponent.eth;

import java.math.BigDecimal;
import java.math.BigInteger;

/**
 * An amount of ether in wei, 10^-18 ether: from 0 to 2^256-1. Arithmetic is exact, or throws.
 *
 * <pre>{@code
 * Wei.ether("0.5").plus(Wei.gwei("21")).toEther(); // 0.500000021
 * }</pre>
 */
public final class Wei implements Comparable<Wei> {
  /** None. */
  public static final Wei ZERO = new Wei(0, 0, 0, 0);

  private static final int ETHER_DECIMALS = 18;
  private static final int GWEI_DECIMALS = 9;

  // 64 bits each, the highest first.
  private final long first;
  private final long second;
  private final long third;
  private final long fourth;

  private Wei(long first, long second, long third, long fourth) {
    this.first = first;
    this.second = second;
    this.third = third;
    this.fourth = fourth;
  }

  /**
   * A number of wei.
   *
   * @throws IllegalArgumentException if it is negative
   */
  public static Wei of(long wei) {
    if (wei < 0) {
      throw new IllegalArgumentException("an amount is not negative: " + wei);
    }
    return wei == 0 ? ZERO : new Wei(0, 0, 0, wei);
  }

  /**
   * A number of wei.
   *
   * @throws IllegalArgumentException if it is negative, or has more than 256 bits
   */
  public static Wei of(BigInteger wei) {
    if (wei.signum() < 0 || wei.bitLength() > 256) {
      throw new IllegalArgumentException("an amount is from 0 to 2^256-1: " + wei.toString(16));
    }
    if (wei.bitLength() < 64) {
      return of(wei.longValue());
    }
    return new Wei(
        wei.shiftRight(192).longValue(),
        wei.shiftRight(128).longValue(),
        wei.shiftRight(64).longValue(),
        wei.longValue());
  }

  /**
   * A decimal number of ether, such as {@code "0.5"}.
   *
   * @throws IllegalArgumentException if it is no number, negative, not whole in wei, or too large
   */
  public static Wei ether(String amount) {
    return decimal(amount, ETHER_DECIMALS, "ether");
  }

  /**
   * A decimal number of gwei (10^9 wei), such as {@code "1.5"}.
   *
   * @throws IllegalArgumentException if it is no number, negative, not whole in wei, or too large
   */
  public static Wei gwei(String amount) {
    return decimal(amount, GWEI_DECIMALS, "gwei");
  }

  private static Wei decimal(String amount, int decimals, String unit) {
    if (!amount.matches("(?=\\.?[0-9])[0-9]{0,78}(\\.[0-9]{0,78})?")) {
      throw new IllegalArgumentException("no decimal number of " + unit + ": " + Quote.of(amount));
    }
    try {
      return of(new BigDecimal(amount).scaleByPowerOfTen(decimals).toBigIntegerExact());
    } catch (ArithmeticException fraction) {
      throw new IllegalArgumentException(
          "more than " + decimals + " decimals of " + unit + ": " + Quote.of(amount), fraction);
    }
  }

  /** The 32 bytes from {@code at} on, the highest first. */
  static Wei of(byte[] from, int at) {
    return new Wei(
        Words.getLong(from, at),
        Words.getLong(from, at + 8),
        Words.getLong(from, at + 16),
        Words.getLong(from, at + 24));
  }

  /**
   * The sum.
   *
   * @throws ArithmeticException if it has more than 256 bits
   */
  public Wei plus(Wei other) {
    long d = fourth + other.fourth;
    long carry = Long.compareUnsigned(d, fourth) < 0 ? 1 : 0;
    if ((first | second | third | other.first | other.second | other.third | carry) == 0) {
      return new Wei(0, 0, 0, d);
    }
    BigInteger sum = toBigInteger().add(other.toBigInteger());
    if (sum.bitLength() > 256) {
      throw new ArithmeticException("a sum beyond 2^256-1 wei");
    }
    return of(sum);
  }

  /**
   * The difference.
   *
   * @throws ArithmeticException if {@code other} is more
   */
  public Wei minus(Wei other) {
    if (compareTo(other) < 0) {
      throw new ArithmeticException(this + " less " + other + " would be negative");
    }
    return of(toBigInteger().subtract(other.toBigInteger()));
  }

  /**
   * This amount so many times.
   *
   * @throws ArithmeticException if the product has more than 256 bits
   * @throws IllegalArgumentException if {@code factor} is negative
   */
  public Wei times(long factor) {
    if (factor < 0) {
      throw new IllegalArgumentException("an amount is not negative: times " + factor);
    }
    BigInteger product = toBigInteger().multiply(BigInteger.valueOf(factor));
    if (product.bitLength() > 256) {
      throw new ArithmeticException("a product beyond 2^256-1 wei");
    }
    return of(product);
  }

  /**
   * A part of this amount, rounded down.
   *
   * @throws IllegalArgumentException if {@code divisor} is not positive
   */
  public Wei dividedBy(long divisor) {
    if (divisor <= 0) {
      throw new IllegalArgumentException("a divisor is positive: " + divisor);
    }
    return of(toBigInteger().divide(BigInteger.valueOf(divisor)));
  }

  /** The number of wei. */
  public BigInteger toBigInteger() {
    if ((first | second | third) == 0 && fourth >= 0) {
      return BigInteger.valueOf(fourth);
    }
    byte[] bytes = new byte[32];
    putWord(bytes, 0);
    return new BigInteger(1, bytes);
  }

  /**
   * The number of wei.
   *
   * @throws ArithmeticException if it is beyond 2^63-1
   */
  public long toLong() {
    if (bitLength() > 63) {
      throw new ArithmeticException(this + " is beyond 2^63-1");
    }
    return fourth;
  }

  /** The number of ether, without zeros behind its decimals. */
  public BigDecimal toEther() {
    return in(ETHER_DECIMALS);
  }

  /** The number of gwei, without zeros behind its decimals. */
  public BigDecimal toGwei() {
    return in(GWEI_DECIMALS);
  }

  private BigDecimal in(int decimals) {
    BigDecimal number = new BigDecimal(toBigInteger(), decimals).stripTrailingZeros();
    return number.scale() < 0 ? number.setScale(0) : number;
  }

  int bitLength() {
    if (first != 0) {
      return 256 - Long.numberOfLeadingZeros(first);
    }
    if (second != 0) {
      return 192 - Long.numberOfLeadingZeros(second);
    }
    if (third != 0) {
      return 128 - Long.numberOfLeadingZeros(third);
    }
    return 64 - Long.numberOfLeadingZeros(fourth);
  }

  /** Writes the 32 bytes, the highest first. */
  void putWord(byte[] into, int at) {
    Words.putLong(into, at, first);
    Words.putLong(into, at + 8, second);
    Words.putLong(into, at + 16, third);
    Words.putLong(into, at + 24, fourth);
  }

  @Override
  public int compareTo(Wei other) {
    if (first != other.first) {
      return Long.compareUnsigned(first, other.first);
    }
    if (second != other.second) {
      return Long.compareUnsigned(second, other.second);
    }
    if (third != other.third) {
      return Long.compareUnsigned(third, other.third);
    }
    return Long.compareUnsigned(fourth, other.fourth);
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof Wei wei
        && first == wei.first
        && second == wei.second
        && third == wei.third
        && fourth == wei.fourth;
  }

  @Override
  public int hashCode() {
    return Long.hashCode(first ^ second * 31 ^ third * 961 ^ fourth * 29_791);
  }

  /** The number of wei in decimal digits. */
  @Override
  public String toString() {
    return toBigInteger().toString();
  }
}
