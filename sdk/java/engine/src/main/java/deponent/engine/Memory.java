package deponent.engine;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.List;

/**
 * Bytes that are read alone: a part of one buffer, or of several that follow each other, of one
 * length, a power of two, but for the last.
 */
final class Memory {
  /** Moves all places to buffer 0. */
  private static final int ONE = 62;

  private final ByteBuffer[] pieces;
  private final int shift;
  private final long from;
  private final long bytes;

  private Memory(ByteBuffer[] pieces, int shift, long from, long bytes) {
    this.pieces = pieces;
    this.shift = shift;
    this.from = from;
    this.bytes = bytes;
  }

  /** All that {@code buffer} has left. */
  static Memory of(ByteBuffer buffer) {
    return new Memory(new ByteBuffer[] {little(buffer)}, ONE, 0, buffer.remaining());
  }

  /** All that {@code buffers} have left, one after the other. */
  static Memory of(List<ByteBuffer> buffers) {
    if (buffers.size() < 2) {
      return of(buffers.isEmpty() ? ByteBuffer.allocate(0) : buffers.get(0));
    }
    ByteBuffer[] pieces = buffers.stream().map(Memory::little).toArray(ByteBuffer[]::new);
    int each = pieces[0].limit();
    long bytes = 0;
    for (int index = 0; index < pieces.length; index++) {
      int length = pieces[index].limit();
      if (length > each || length < each && index < pieces.length - 1) {
        throw new IllegalArgumentException("buffers of different lengths");
      }
      bytes += length;
    }
    if (Integer.bitCount(each) != 1) {
      throw new IllegalArgumentException("buffers of a length that is no power of two");
    }
    return new Memory(pieces, Integer.numberOfTrailingZeros(each), 0, bytes);
  }

  private static ByteBuffer little(ByteBuffer buffer) {
    return buffer.slice().asReadOnlyBuffer().order(ByteOrder.LITTLE_ENDIAN);
  }

  long bytes() {
    return bytes;
  }

  /** The bytes from {@code start} up to {@code end}, which are here. */
  Memory part(long start, long end) {
    check(start, end - start);
    return new Memory(pieces, shift, from + start, end - start);
  }

  byte get(long at) {
    check(at, 1);
    long place = from + at;
    return pieces[(int) (place >>> shift)].get(within(place));
  }

  /** A number of 32 bits, the lowest first. */
  int getInt(long at) {
    check(at, Integer.BYTES);
    long place = from + at;
    return isWhole(place, Integer.BYTES)
        ? pieces[(int) (place >>> shift)].getInt(within(place))
        : view(at, Integer.BYTES).order(ByteOrder.LITTLE_ENDIAN).getInt();
  }

  /** A number of 64 bits, the lowest first. */
  long getLong(long at) {
    return view(at, Long.BYTES).order(ByteOrder.LITTLE_ENDIAN).getLong();
  }

  /** Copies to the beginning of {@code into}. */
  void copyTo(long at, byte[] into, int length) {
    putInto(at, ByteBuffer.wrap(into, 0, length), length);
  }

  /** Adds bytes to what {@code out} has. */
  void putInto(long at, ByteBuffer out, int length) {
    check(at, length);
    int left = length;
    for (long place = from + at; left > 0; ) {
      ByteBuffer piece = pieces[(int) (place >>> shift)];
      int start = within(place);
      int some = Math.min(left, piece.limit() - start);
      out.put(out.position(), piece, start, some).position(out.position() + some);
      place += some;
      left -= some;
    }
  }

  /** A view of bytes in one buffer; a copy of bytes in several. */
  ByteBuffer view(long at, int length) {
    check(at, length);
    long place = from + at;
    if (isWhole(place, length)) {
      return length == 0
          ? ByteBuffer.allocate(0).asReadOnlyBuffer()
          : pieces[(int) (place >>> shift)].slice(within(place), length);
    }
    ByteBuffer joined = ByteBuffer.allocate(length);
    putInto(at, joined, length);
    return joined.flip().asReadOnlyBuffer();
  }

  private int within(long place) {
    return (int) (place & (1L << shift) - 1);
  }

  private boolean isWhole(long place, int length) {
    return length == 0 || place >>> shift == place + length - 1 >>> shift;
  }

  private void check(long at, long length) {
    if (at < 0 || length < 0 || at > bytes - length) {
      throw new IndexOutOfBoundsException(length + " bytes from " + at + " on in " + bytes);
    }
  }
}
