package deponent.eth;

import java.io.ByteArrayOutputStream;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.util.Arrays;

/** The types of one word: integers, fixed-point numbers, booleans and addresses. */
final class AbiNumber extends AbiType {
  private static final int WORD = 32;

  private final boolean signed;
  private final int bits;
  private final int decimals;

  private AbiNumber(Kind kind, String name, boolean signed, int bits, int decimals) {
    super(kind, name, false, WORD);
    this.signed = signed;
    this.bits = bits;
    this.decimals = decimals;
  }

  static AbiNumber bool() {
    return new AbiNumber(Kind.BOOLEAN, "bool", false, 8, 0);
  }

  static AbiNumber address() {
    return new AbiNumber(Kind.ADDRESS, "address", false, 160, 0);
  }

  static AbiNumber integer(boolean signed, int bits) {
    return new AbiNumber(Kind.INTEGER, (signed ? "int" : "uint") + bits, signed, bits, 0);
  }

  static AbiNumber decimal(boolean signed, int bits, int decimals) {
    String name = (signed ? "fixed" : "ufixed") + bits + "x" + decimals;
    return new AbiNumber(Kind.DECIMAL, name, signed, bits, decimals);
  }

  @Override
  public int bits() {
    return isNumber() ? bits : super.bits();
  }

  @Override
  public boolean isSigned() {
    return isNumber() ? signed : super.isSigned();
  }

  @Override
  public int decimals() {
    return kind() == Kind.DECIMAL ? decimals : super.decimals();
  }

  private boolean isNumber() {
    return kind() == Kind.INTEGER || kind() == Kind.DECIMAL;
  }

  @Override
  int measure(Object value) {
    return WORD;
  }

  @Override
  int put(Object value, byte[] out, int at) {
    switch (kind()) {
      case ADDRESS -> {
        if (!(value instanceof Address address)) {
          throw Misfit.of(value, this);
        }
        address.putWord(out, at);
      }
      case BOOLEAN -> {
        if (!(value instanceof Boolean flag)) {
          throw Misfit.of(value, this);
        }
        Words.putWord(out, at, flag ? 1 : 0);
      }
      case INTEGER -> putInteger(value, out, at);
      case DECIMAL -> {
        if (!(value instanceof BigDecimal number)) {
          throw Misfit.of(value, this);
        }
        putBig(unscaled(number), out, at);
      }
      default -> throw new AssertionError(kind());
    }
    return at + WORD;
  }

  private void putInteger(Object value, byte[] out, int at) {
    if (value instanceof BigInteger number) {
      putBig(number, out, at);
    } else if (value instanceof Wei amount) {
      putWei(amount, out, at);
    } else if (value instanceof Long
        || value instanceof Integer
        || value instanceof Short
        || value instanceof Byte) {
      putLong(((Number) value).longValue(), out, at);
    } else {
      throw Misfit.of(value, this);
    }
  }

  void putWei(Wei amount, byte[] out, int at) {
    if (amount.bitLength() > (signed ? bits - 1 : bits)) {
      throw outside(amount);
    }
    amount.putWord(out, at);
  }

  void putLong(long number, byte[] out, int at) {
    // Bits of the magnitude, as of BigInteger.bitLength().
    int length = 64 - Long.numberOfLeadingZeros(number ^ number >> 63);
    if (number < 0 && !signed || length > (signed ? bits - 1 : bits)) {
      throw outside(number);
    }
    Words.putWord(out, at, number);
  }

  void putBig(BigInteger number, byte[] out, int at) {
    int length = number.bitLength();
    if (number.signum() < 0 && !signed || length > (signed ? bits - 1 : bits)) {
      throw outside(number);
    }
    if (length < 64) {
      Words.putWord(out, at, number.longValue());
      return;
    }
    byte[] bytes = number.toByteArray();
    int zeros = bytes.length > WORD ? 1 : 0;
    int first = at + WORD - bytes.length + zeros;
    Arrays.fill(out, at, first, (byte) (number.signum() >> 31));
    System.arraycopy(bytes, zeros, out, first, bytes.length - zeros);
  }

  private BigInteger unscaled(BigDecimal number) {
    try {
      return number.setScale(decimals).unscaledValue();
    } catch (ArithmeticException fraction) {
      throw new Misfit(number + " has more than " + decimals + " decimals");
    }
  }

  private Misfit outside(Object number) {
    return new Misfit(number + " does not fit " + this);
  }

  @Override
  Object get(AbiDecoder in, int at) {
    byte[] data = in.word(at, this);
    boolean small =
        Words.getLong(data, at) == 0
            && Words.getLong(data, at + 8) == 0
            && Words.getLong(data, at + 16) == 0
            && Words.getLong(data, at + 24) >= 0;
    if (kind() == Kind.ADDRESS) {
      if (Words.getLong(data, at) != 0 || Words.getInt(data, at + 8) != 0) {
        throw in.wrong(at, "an address of more than 20 bytes");
      }
      return Address.of(data, at + 12);
    }
    BigInteger number =
        small
            ? BigInteger.valueOf(Words.getLong(data, at + 24))
            : signed ? new BigInteger(data, at, WORD) : new BigInteger(1, data, at, WORD);
    if (number.bitLength() > (signed ? bits - 1 : bits)) {
      throw in.wrong(at, number + " does not fit " + this);
    }
    if (kind() == Kind.BOOLEAN) {
      if (number.bitLength() > 1) {
        throw in.wrong(at, "a bool is 0 or 1, not " + number);
      }
      return number.signum() != 0;
    }
    return kind() == Kind.INTEGER ? number : new BigDecimal(number, decimals);
  }

  /** An integer in so many bits of Java, a sign among them. */
  long getLong(AbiDecoder in, int at, int javaBits) {
    byte[] data = in.word(at, this);
    long low = Words.getLong(data, at + 24);
    long sign = low >> 63;
    boolean whole =
        Words.getLong(data, at) == sign
            && Words.getLong(data, at + 8) == sign
            && Words.getLong(data, at + 16) == sign
            && (signed || sign == 0);
    int length = 64 - Long.numberOfLeadingZeros(low ^ sign);
    if (!whole || length >= javaBits || length > (signed ? bits - 1 : bits)) {
      // The message is that of the type, or there is a number beyond what was asked for.
      throw in.wrong(at, get(in, at) + " does not fit " + javaBits + " bits of Java");
    }
    return low;
  }

  @Override
  void pack(Object value, ByteArrayOutputStream out, boolean padded) {
    byte[] word = new byte[WORD];
    put(value, word, 0);
    int skipped = padded ? 0 : WORD - bits / 8;
    out.write(word, skipped, WORD - skipped);
  }

  @Override
  String taken() {
    return switch (kind()) {
      case ADDRESS -> "an Address is taken";
      case BOOLEAN -> "a Boolean is taken";
      case DECIMAL -> "a BigDecimal is taken";
      default -> "BigInteger, Wei, long and smaller are taken";
    };
  }
}
