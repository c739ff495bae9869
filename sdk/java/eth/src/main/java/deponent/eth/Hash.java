package deponent.eth;

/** A hash, or another value of 32 bytes, such as a key of a storage slot. */
public final class Hash implements Comparable<Hash> {
  /** The number of bytes. */
  public static final int SIZE = 32;

  /** 32 bytes of zero. */
  public static final Hash ZERO = new Hash(0, 0, 0, 0);

  private final long first;
  private final long second;
  private final long third;
  private final long fourth;

  private Hash(long first, long second, long third, long fourth) {
    this.first = first;
    this.second = second;
    this.third = third;
    this.fourth = fourth;
  }

  /**
   * Of 64 hex digits, with or without {@code 0x} before them.
   *
   * @throws IllegalArgumentException if there are more or fewer, or one is no digit
   */
  public static Hash of(String hex) {
    byte[] bytes = Hex.decode(hex);
    if (bytes.length != SIZE) {
      throw new IllegalArgumentException(
          "a hash has 32 bytes, not " + bytes.length + ": " + Quote.of(hex));
    }
    return of(bytes, 0);
  }

  /**
   * Of 32 bytes.
   *
   * @throws IllegalArgumentException if there are more or fewer
   */
  public static Hash of(byte[] bytes) {
    if (bytes.length != SIZE) {
      throw new IllegalArgumentException("a hash has 32 bytes, not " + bytes.length);
    }
    return of(bytes, 0);
  }

  /**
   * Of the 32 bytes from {@code at} on.
   *
   * @throws IndexOutOfBoundsException if they are not all there
   */
  public static Hash of(byte[] from, int at) {
    return new Hash(
        Words.getLong(from, at),
        Words.getLong(from, at + 8),
        Words.getLong(from, at + 16),
        Words.getLong(from, at + 24));
  }

  /** A copy of the 32 bytes. */
  public byte[] toBytes() {
    byte[] bytes = new byte[SIZE];
    copyTo(bytes, 0);
    return bytes;
  }

  /**
   * Copies the 32 bytes to {@code into}, from {@code at} on.
   *
   * @throws IndexOutOfBoundsException if they do not fit
   */
  public void copyTo(byte[] into, int at) {
    Words.putLong(into, at + 24, fourth);
    Words.putLong(into, at, first);
    Words.putLong(into, at + 8, second);
    Words.putLong(into, at + 16, third);
  }

  @Override
  public int compareTo(Hash other) {
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
    return other instanceof Hash hash
        && first == hash.first
        && second == hash.second
        && third == hash.third
        && fourth == hash.fourth;
  }

  @Override
  public int hashCode() {
    return Long.hashCode(first ^ second * 31 ^ third * 961 ^ fourth * 29_791);
  }

  /** The hex digits in lower case, after {@code 0x}. */
  @Override
  public String toString() {
    return Hex.encode(toBytes());
  }
}
