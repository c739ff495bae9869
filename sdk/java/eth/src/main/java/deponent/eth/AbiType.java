package deponent.eth;

import java.io.ByteArrayOutputStream;
import java.util.List;

/**
 * A type of the ABI of contracts.
 *
 * <pre>{@code
 * AbiType.of("(uint256 amount, bytes32[2][] proofs)[]")
 * }</pre>
 *
 * <p>Values are those that {@link AbiValues} names. Taken as well are {@code byte}, {@code short},
 * {@code int}, {@code long} and {@link Wei} for integers, {@link Hash} for {@code bytes32}, {@code
 * byte[]} for bytes, {@code Object[]} for arrays and tuples, and a map of names for tuples.
 */
public abstract sealed class AbiType permits AbiNumber, AbiBytes, AbiText, AbiArray, AbiTuple {
  /** The kinds of types, by the class of their values. */
  public enum Kind {
    /** {@code int8} to {@code uint256}. */
    INTEGER,
    /** {@code fixed128x18} and its like, which Solidity does not have yet. */
    DECIMAL,
    /** {@code bool}. */
    BOOLEAN,
    /** {@code address}. */
    ADDRESS,
    /** {@code bytes1} to {@code bytes32}, and {@code function}. */
    FIXED_BYTES,
    /** {@code bytes}. */
    BYTES,
    /** {@code string}. */
    STRING,
    /** {@code T[]} and {@code T[k]}. */
    ARRAY,
    /** {@code (T1,T2,..)}. */
    TUPLE
  }

  private final Kind kind;
  private final String name;
  private final boolean dynamic;

  /** Bytes in the head of what holds a value: all of a static one, the offset of a dynamic one. */
  private final int headBytes;

  AbiType(Kind kind, String name, boolean dynamic, int headBytes) {
    this.kind = kind;
    this.name = name;
    this.dynamic = dynamic;
    this.headBytes = headBytes;
  }

  /**
   * Of a text as in signatures; members of tuples may have names.
   *
   * @throws IllegalArgumentException if it is no type
   */
  public static AbiType of(String type) {
    AbiParser parser = new AbiParser(type);
    AbiType found = parser.type();
    parser.finish();
    return found;
  }

  /** The kind. */
  public Kind kind() {
    return kind;
  }

  /**
   * The number of bits of an integer or a fixed-point number.
   *
   * @throws IllegalStateException if it is another type
   */
  public int bits() {
    throw lacks("bits");
  }

  /**
   * Whether an integer or a fixed-point number may be negative.
   *
   * @throws IllegalStateException if it is another type
   */
  public boolean isSigned() {
    throw lacks("a sign");
  }

  /**
   * The number of decimals of a fixed-point number.
   *
   * @throws IllegalStateException if it is another type
   */
  public int decimals() {
    throw lacks("decimals");
  }

  /**
   * The number of bytes of {@code bytesN}, or of elements of {@code T[k]}; -1 where it is any.
   *
   * @throws IllegalStateException if it is neither an array nor bytes
   */
  public int length() {
    throw lacks("a length");
  }

  /**
   * The type of an array's elements.
   *
   * @throws IllegalStateException if it is no array
   */
  public AbiType element() {
    throw lacks("elements");
  }

  /**
   * The members of a tuple.
   *
   * @throws IllegalStateException if it is no tuple
   */
  public List<AbiParameter> members() {
    throw lacks("members");
  }

  private IllegalStateException lacks(String what) {
    return new IllegalStateException(this + " has not " + what);
  }

  /** Whether its encoding has a length of its own, and so stands behind the head. */
  public boolean isDynamic() {
    return dynamic;
  }

  /**
   * The encoding of one value, without an offset before it.
   *
   * @throws IllegalArgumentException if it is no value of this type
   */
  public Bytes encode(Object value) {
    byte[] out = new byte[measured(value)];
    put(value, out, 0);
    return Bytes.own(out);
  }

  /**
   * The value of an encoding without an offset before it. What Solidity refuses is refused here:
   * upper bits that do not belong to the value, and what lies beyond the bytes. Padding behind
   * bytes and what follows the value are not looked at.
   *
   * @throws MalformedException if it does not decode
   */
  public Object decode(byte[] encoded) {
    return new AbiDecoder(encoded, 0, encoded.length).value(this);
  }

  /**
   * The values in Solidity's {@code abi.encodePacked}: without padding, but that elements of arrays
   * have 32 bytes. Equal bytes may come of other values; hash them with care.
   *
   * @throws IllegalArgumentException if a value does not fit its type, the numbers of both differ,
   *     or a type has no packed form: tuples, and arrays of dynamic types
   */
  public static Bytes encodePacked(List<AbiType> types, Object... values) {
    if (types.size() != values.length) {
      throw new IllegalArgumentException(types.size() + " types, " + values.length + " values");
    }
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    for (int i = 0; i < values.length; i++) {
      if (!types.get(i).hasPackedForm()) {
        throw new IllegalArgumentException("there is no packed form of " + types.get(i));
      }
      try {
        types.get(i).pack(values[i], out, false);
      } catch (Misfit misfit) {
        throw misfit.in("value " + (i + 1));
      }
    }
    return Bytes.own(out.toByteArray());
  }

  /** As {@link #measure}; more bytes than an array has are the caller's fault, too. */
  final int measured(Object value) {
    try {
      return measure(value);
    } catch (ArithmeticException overflow) {
      throw new IllegalArgumentException("the values have more than 2^31 bytes", overflow);
    }
  }

  int headBytes() {
    return headBytes;
  }

  /** Bytes that {@code value} takes where it stands: the head's if static, else the tail's. */
  abstract int measure(Object value);

  /** Writes {@code value} at {@code at}, all bytes that it takes; the place behind them. */
  abstract int put(Object value, byte[] out, int at);

  /** Reads the value at {@code at}. */
  abstract Object get(AbiDecoder in, int at);

  /** The values that are taken, for messages. */
  abstract String taken();

  /** Adds the packed form; {@code padded} in arrays and tuples. */
  abstract void pack(Object value, ByteArrayOutputStream out, boolean padded);

  boolean hasPackedForm() {
    return true;
  }

  /** As in the signatures of which selectors are hashes: no names, no aliases. */
  @Override
  public String toString() {
    return name;
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof AbiType type && name.equals(type.name);
  }

  @Override
  public int hashCode() {
    return name.hashCode();
  }
}
