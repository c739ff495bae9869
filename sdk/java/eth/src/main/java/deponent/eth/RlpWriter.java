package deponent.eth;

import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.Objects;

/**
 * Writes RLP, the encoding of transactions and blocks.
 *
 * <pre>{@code
 * byte[] rlp = new RlpWriter().list().add(9).add(address).end().toBytes();
 * }</pre>
 */
public final class RlpWriter {
  /** The longest payload whose length is in the first byte. */
  private static final int SHORT = 55;

  private byte[] out;
  private int size;
  private int[] starts = new int[8];
  private int depth;

  /** Begins with nothing. */
  public RlpWriter() {
    this(256);
  }

  /** Begins with nothing, and room for {@code expectedBytes}. */
  public RlpWriter(int expectedBytes) {
    out = new byte[Math.max(expectedBytes, 16)];
  }

  /** Opens a list. What follows is in it, up to its {@link #end}. */
  public RlpWriter list() {
    if (depth == starts.length) {
      starts = Arrays.copyOf(starts, 2 * depth);
    }
    room(1);
    size++;
    starts[depth++] = size;
    return this;
  }

  /**
   * Closes the list that was opened last.
   *
   * @throws IllegalStateException if none is open
   */
  public RlpWriter end() {
    if (depth == 0) {
      throw new IllegalStateException("no list is open");
    }
    int start = starts[--depth];
    int length = size - start;
    if (length <= SHORT) {
      out[start - 1] = (byte) (0xc0 + length);
      return this;
    }
    int lengthBytes = bytesOf(length);
    room(lengthBytes);
    System.arraycopy(out, start, out, start + lengthBytes, length);
    out[start - 1] = (byte) (0xf7 + lengthBytes);
    putNumber(start, length, lengthBytes);
    size += lengthBytes;
    return this;
  }

  /** Adds a string of bytes. */
  public RlpWriter add(byte[] bytes) {
    return add(bytes, 0, bytes.length);
  }

  /** Adds a string of bytes. */
  public RlpWriter add(Bytes bytes) {
    return add(bytes.array, 0, bytes.array.length);
  }

  /** Adds a string of the bytes that {@code bytes} has left, without moving its position. */
  public RlpWriter add(ByteBuffer bytes) {
    byte[] copy = new byte[bytes.remaining()];
    bytes.duplicate().get(copy);
    return add(copy);
  }

  /**
   * Adds a string of {@code length} bytes from {@code at} on.
   *
   * @throws IndexOutOfBoundsException if they are not all there
   */
  public RlpWriter add(byte[] bytes, int at, int length) {
    Objects.checkFromIndexSize(at, length, bytes.length);
    if (length == 1 && bytes[at] >= 0) {
      room(1);
      out[size++] = bytes[at];
      return this;
    }
    head(length);
    System.arraycopy(bytes, at, out, size, length);
    size += length;
    return this;
  }

  /**
   * Adds a number as its bytes without leading zeros.
   *
   * @throws IllegalArgumentException if it is negative
   */
  public RlpWriter add(long number) {
    if (number < 0) {
      throw new IllegalArgumentException("RLP has no negative numbers: " + number);
    }
    return addUnsigned(number);
  }

  /** Adds a number of 64 bits without a sign as its bytes without leading zeros. */
  public RlpWriter addUnsigned(long number) {
    if (number >= 0 && number < 0x80) {
      room(1);
      out[size++] = number == 0 ? (byte) 0x80 : (byte) number;
      return this;
    }
    int length = bytesOf(number);
    head(length);
    putNumber(size, number, length);
    size += length;
    return this;
  }

  /**
   * Adds a number as its bytes without leading zeros.
   *
   * @throws IllegalArgumentException if it is negative
   */
  public RlpWriter add(BigInteger number) {
    if (number.bitLength() < 64) {
      return add(number.longValue());
    }
    if (number.signum() < 0) {
      throw new IllegalArgumentException("RLP has no negative numbers: " + number);
    }
    byte[] bytes = number.toByteArray();
    int zeros = bytes[0] == 0 ? 1 : 0;
    return add(bytes, zeros, bytes.length - zeros);
  }

  /** Adds a number as its bytes without leading zeros. */
  public RlpWriter add(Wei number) {
    return add(number.toBigInteger());
  }

  /** Adds a string of 20 bytes. */
  public RlpWriter add(Address address) {
    head(Address.SIZE);
    address.copyTo(out, size);
    size += Address.SIZE;
    return this;
  }

  /** Adds a string of 32 bytes. */
  public RlpWriter add(Hash hash) {
    head(Hash.SIZE);
    hash.copyTo(out, size);
    size += Hash.SIZE;
    return this;
  }

  /** Adds what is encoded already. It is not looked at. */
  public RlpWriter addEncoded(byte[] rlp) {
    room(rlp.length);
    System.arraycopy(rlp, 0, out, size, rlp.length);
    size += rlp.length;
    return this;
  }

  /**
   * A copy of all that was written.
   *
   * @throws IllegalStateException if a list is open
   */
  public byte[] toBytes() {
    if (depth != 0) {
      throw new IllegalStateException(depth + " lists are open");
    }
    return Arrays.copyOf(out, size);
  }

  /** The head of a string, with room for what follows. */
  private void head(int length) {
    int lengthBytes = length <= SHORT ? 0 : bytesOf(length);
    room(Math.addExact(1 + lengthBytes, length));
    if (lengthBytes == 0) {
      out[size++] = (byte) (0x80 + length);
      return;
    }
    out[size++] = (byte) (0xb7 + lengthBytes);
    putNumber(size, length, lengthBytes);
    size += lengthBytes;
  }

  private void putNumber(int at, long number, int length) {
    for (int i = 0; i < length; i++) {
      out[at + i] = (byte) (number >>> 8 * (length - 1 - i));
    }
  }

  private static int bytesOf(long number) {
    return (71 - Long.numberOfLeadingZeros(number)) / 8;
  }

  private void room(int more) {
    int needed = Math.addExact(size, more);
    if (needed > out.length) {
      out = Arrays.copyOf(out, (int) Math.min(Integer.MAX_VALUE - 8L, Math.max(needed, 2L * size)));
    }
  }
}
