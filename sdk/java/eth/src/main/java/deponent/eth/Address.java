package deponent.eth;

/**
 * The address of an account.
 *
 * <pre>{@code
 * Address.of("0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed");
 * }</pre>
 */
public final class Address implements Comparable<Address> {
  /** The number of bytes. */
  public static final int SIZE = 20;

  /** 20 bytes of zero. */
  public static final Address ZERO = new Address(0, 0, 0);

  private final long first;
  private final long second;
  private final int third;

  private Address(long first, long second, int third) {
    this.first = first;
    this.second = second;
    this.third = third;
  }

  /**
   * Of 40 hex digits, with or without {@code 0x} before them. Digits in both cases have to be the
   * checksum of EIP-55; in one case there is none.
   *
   * @throws IllegalArgumentException if there are more or fewer, one is no digit, or the checksum
   *     is wrong
   */
  public static Address of(String hex) {
    byte[] bytes = Hex.decode(hex);
    if (bytes.length != SIZE) {
      throw new IllegalArgumentException(
          "an address has 20 bytes, not " + bytes.length + ": " + Quote.of(hex));
    }
    Address address = of(bytes, 0);
    String digits = hex.substring(hex.length() - 2 * SIZE);
    if (inBothCases(digits) && !address.toString().endsWith(digits)) {
      throw new IllegalArgumentException(
          "wrong checksum, a digit may be mistyped: " + Quote.of(hex));
    }
    return address;
  }

  private static boolean inBothCases(String digits) {
    boolean lower = false;
    boolean upper = false;
    for (int i = 0; i < digits.length(); i++) {
      lower |= digits.charAt(i) >= 'a';
      upper |= digits.charAt(i) >= 'A' && digits.charAt(i) < 'a';
    }
    return lower && upper;
  }

  /**
   * Of 20 bytes.
   *
   * @throws IllegalArgumentException if there are more or fewer
   */
  public static Address of(byte[] bytes) {
    if (bytes.length != SIZE) {
      throw new IllegalArgumentException("an address has 20 bytes, not " + bytes.length);
    }
    return of(bytes, 0);
  }

  /**
   * Of the 20 bytes from {@code at} on.
   *
   * @throws IndexOutOfBoundsException if they are not all there
   */
  public static Address of(byte[] from, int at) {
    return new Address(
        Words.getLong(from, at), Words.getLong(from, at + 8), Words.getInt(from, at + 16));
  }

  /** That of the contract which {@code creator} creates by its transaction with {@code nonce}. */
  public static Address ofCreated(Address creator, long nonce) {
    RlpWriter rlp = new RlpWriter(32);
    rlp.list().add(creator).add(nonce).end();
    return of(Keccak256.hash(rlp.toBytes()).toBytes(), 12);
  }

  /** That of the contract which {@code creator} creates by CREATE2 (EIP-1014). */
  public static Address ofCreated(Address creator, Hash salt, Hash initCodeHash) {
    byte[] preimage = new byte[1 + SIZE + 2 * Hash.SIZE];
    preimage[0] = (byte) 0xff;
    creator.copyTo(preimage, 1);
    salt.copyTo(preimage, 1 + SIZE);
    initCodeHash.copyTo(preimage, 1 + SIZE + Hash.SIZE);
    return of(Keccak256.hash(preimage).toBytes(), 12);
  }

  /** A copy of the 20 bytes. */
  public byte[] toBytes() {
    byte[] bytes = new byte[SIZE];
    copyTo(bytes, 0);
    return bytes;
  }

  /**
   * Copies the 20 bytes to {@code into}, from {@code at} on.
   *
   * @throws IndexOutOfBoundsException if they do not fit
   */
  public void copyTo(byte[] into, int at) {
    Words.putInt(into, at + 16, third);
    Words.putLong(into, at, first);
    Words.putLong(into, at + 8, second);
  }

  /** Writes the 32 bytes that the ABI has for an address. */
  void putWord(byte[] into, int at) {
    Words.putLong(into, at, 0);
    Words.putInt(into, at + 8, 0);
    copyTo(into, at + 12);
  }

  @Override
  public int compareTo(Address other) {
    if (first != other.first) {
      return Long.compareUnsigned(first, other.first);
    }
    if (second != other.second) {
      return Long.compareUnsigned(second, other.second);
    }
    return Integer.compareUnsigned(third, other.third);
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof Address address
        && first == address.first
        && second == address.second
        && third == address.third;
  }

  @Override
  public int hashCode() {
    return Long.hashCode(first ^ second * 31 ^ third * 961L);
  }

  /** The hex digits after {@code 0x}, in the cases of the checksum of EIP-55. */
  @Override
  public String toString() {
    byte[] digits = new byte[2 * SIZE];
    Hex.encodeTo(toBytes(), 0, SIZE, digits, 0);
    byte[] hash = Keccak256.hash(digits).toBytes();
    StringBuilder text = new StringBuilder(2 + 2 * SIZE).append("0x");
    for (int i = 0; i < digits.length; i++) {
      boolean upper = (hash[i / 2] >> (i % 2 == 0 ? 4 : 0) & 8) != 0;
      text.append((char) (upper ? Character.toUpperCase(digits[i]) : digits[i]));
    }
    return text.toString();
  }
}
