package deponent.eth;

import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.Objects;

/** Bytes that do not change. They are equal where their contents are. */
public final class Bytes implements Comparable<Bytes> {
  /** No bytes. */
  public static final Bytes EMPTY = new Bytes(new byte[0]);

  final byte[] array;

  private Bytes(byte[] array) {
    this.array = array;
  }

  /** An array that nobody else has. */
  static Bytes own(byte[] array) {
    return array.length == 0 ? EMPTY : new Bytes(array);
  }

  /**
   * The bytes of hex digits, with or without {@code 0x} before them.
   *
   * @throws IllegalArgumentException if their number is odd, or one is no digit
   */
  public static Bytes of(String hex) {
    return own(Hex.decode(hex));
  }

  /** A copy of {@code bytes}. */
  public static Bytes of(byte[] bytes) {
    return own(bytes.clone());
  }

  /**
   * A copy of {@code length} bytes from {@code at} on.
   *
   * @throws IndexOutOfBoundsException if they are not all there
   */
  public static Bytes of(byte[] bytes, int at, int length) {
    Objects.checkFromIndexSize(at, length, bytes.length);
    return own(Arrays.copyOfRange(bytes, at, at + length));
  }

  /** The contents of {@code parts}, one after the other. */
  public static Bytes concat(Bytes... parts) {
    int size = 0;
    for (Bytes part : parts) {
      size = Math.addExact(size, part.size());
    }
    byte[] all = new byte[size];
    int at = 0;
    for (Bytes part : parts) {
      part.copyTo(all, at);
      at += part.size();
    }
    return own(all);
  }

  /** The number of bytes. */
  public int size() {
    return array.length;
  }

  /** Whether there are none. */
  public boolean isEmpty() {
    return array.length == 0;
  }

  /**
   * One byte.
   *
   * @throws IndexOutOfBoundsException if there is none at {@code index}
   */
  public byte at(int index) {
    return array[index];
  }

  /**
   * The bytes from {@code from} to before {@code to}.
   *
   * @throws IndexOutOfBoundsException if they are not all there
   */
  public Bytes slice(int from, int to) {
    Objects.checkFromToIndex(from, to, array.length);
    return own(Arrays.copyOfRange(array, from, to));
  }

  /** A copy. */
  public byte[] toBytes() {
    return array.clone();
  }

  /**
   * Copies all bytes to {@code into}, from {@code at} on.
   *
   * @throws IndexOutOfBoundsException if they do not fit
   */
  public void copyTo(byte[] into, int at) {
    System.arraycopy(array, 0, into, at, array.length);
  }

  /** A view that reads alone. */
  public ByteBuffer asBuffer() {
    return ByteBuffer.wrap(array).asReadOnlyBuffer();
  }

  @Override
  public int compareTo(Bytes other) {
    return Arrays.compareUnsigned(array, other.array);
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof Bytes bytes && Arrays.equals(array, bytes.array);
  }

  @Override
  public int hashCode() {
    return Arrays.hashCode(array);
  }

  /** The hex digits in lower case, after {@code 0x}. */
  @Override
  public String toString() {
    return Hex.encode(array);
  }
}
