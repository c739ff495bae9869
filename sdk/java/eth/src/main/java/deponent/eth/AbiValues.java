package deponent.eth;

import java.math.BigInteger;
import java.util.AbstractList;
import java.util.List;
import java.util.RandomAccess;

/**
 * Decoded values, by place and by name: arguments, results, the fields of an event, a tuple.
 *
 * <p>Integers are {@link BigInteger}, addresses {@link Address}, booleans {@link Boolean}, bytes
 * {@link Bytes}, strings {@link String}, fixed-point numbers {@link java.math.BigDecimal}, arrays
 * {@link List}, tuples {@link AbiValues}; of an event's indexed field that is not of 32 bytes its
 * {@link Hash}.
 */
public final class AbiValues extends AbstractList<Object> implements RandomAccess {
  private final List<AbiParameter> parameters;
  private final Object[] values;

  AbiValues(List<AbiParameter> parameters, Object[] values) {
    this.parameters = parameters;
    this.values = values;
  }

  @Override
  public Object get(int index) {
    return values[index];
  }

  @Override
  public int size() {
    return values.length;
  }

  /** Names and types. */
  public List<AbiParameter> parameters() {
    return parameters;
  }

  /**
   * The value of this name.
   *
   * @throws IllegalArgumentException if there is none
   */
  public Object get(String name) {
    return values[indexOf(name)];
  }

  private int indexOf(String name) {
    for (int i = 0; i < values.length; i++) {
      if (parameters.get(i).name().equals(name)) {
        return i;
      }
    }
    throw new IllegalArgumentException("no value is named " + Quote.of(name) + ": " + parameters);
  }

  /** An integer. */
  public BigInteger integer(int index) {
    return as(BigInteger.class, index, "an integer");
  }

  /** An integer. */
  public BigInteger integer(String name) {
    return integer(indexOf(name));
  }

  /** An address. */
  public Address address(int index) {
    return as(Address.class, index, "an address");
  }

  /** An address. */
  public Address address(String name) {
    return address(indexOf(name));
  }

  /** A boolean. */
  public boolean bool(int index) {
    return as(Boolean.class, index, "a boolean");
  }

  /** A boolean. */
  public boolean bool(String name) {
    return bool(indexOf(name));
  }

  /** Bytes, of a fixed number or not. */
  public Bytes bytes(int index) {
    return as(Bytes.class, index, "bytes");
  }

  /** Bytes, of a fixed number or not. */
  public Bytes bytes(String name) {
    return bytes(indexOf(name));
  }

  /** 32 bytes: of {@code bytes32}, or of an event's indexed field. */
  public Hash hash(int index) {
    if (values[index] instanceof Bytes bytes && bytes.size() == Hash.SIZE) {
      return Hash.of(bytes.array, 0);
    }
    return as(Hash.class, index, "a hash");
  }

  /** 32 bytes: of {@code bytes32}, or of an event's indexed field. */
  public Hash hash(String name) {
    return hash(indexOf(name));
  }

  /** A string. */
  public String text(int index) {
    return as(String.class, index, "a string");
  }

  /** A string. */
  public String text(String name) {
    return text(indexOf(name));
  }

  /** The elements of an array. */
  @SuppressWarnings("unchecked")
  public List<Object> list(int index) {
    if (values[index] instanceof AbiValues) {
      throw other(index, "an array");
    }
    return as(List.class, index, "an array");
  }

  /** The elements of an array. */
  public List<Object> list(String name) {
    return list(indexOf(name));
  }

  /** A tuple. */
  public AbiValues tuple(int index) {
    return as(AbiValues.class, index, "a tuple");
  }

  /** A tuple. */
  public AbiValues tuple(String name) {
    return tuple(indexOf(name));
  }

  private <T> T as(Class<T> wanted, int index, String what) {
    Object value = values[index];
    if (!wanted.isInstance(value)) {
      throw other(index, what);
    }
    return wanted.cast(value);
  }

  private IllegalArgumentException other(int index, String what) {
    return new IllegalArgumentException(
        "value " + (index + 1) + ", " + parameters.get(index) + ", is not " + what);
  }
}
