package deponent.eth;

import java.util.Objects;

/**
 * The bytes that are decoded, and how much may be made of them. An encoding may point to the same
 * bytes again and again; what comes of it is bounded by {@link #TIMES} its own size.
 */
final class AbiDecoder {
  private static final int WORD = 32;

  /** Bytes that are read together at most, as a multiple of those that are there. */
  private static final int TIMES = 8;

  /** Bytes that may be read in any case. */
  private static final int LEAST = 1 << 16;

  final byte[] data;
  private final int start;
  private final int end;
  private long left;

  AbiDecoder(byte[] data, int start, int length) {
    Objects.checkFromIndexSize(start, length, data.length);
    this.data = data;
    this.start = start;
    this.end = start + length;
    this.left = Math.max(LEAST, (long) TIMES * length);
  }

  /** The value with which the data begins. */
  Object value(AbiType type) {
    checkStatic(type);
    return type.get(this, start);
  }

  private void checkStatic(AbiType type) {
    if (!type.isDynamic() && type.headBytes() > end - start) {
      throw wrong(start, "the data ends in " + type);
    }
  }

  /** Where values of these types begin, whose heads are there. */
  int begin(AbiTuple types) {
    checkStatic(types);
    if (types.isDynamic()) {
      heads(start, 1, types.headsBytes(), types);
    }
    return start;
  }

  /** The values with which the data begins. */
  AbiValues values(AbiTuple types) {
    return (AbiValues) value(types);
  }

  /** The data, of which 32 bytes are at {@code at}. */
  byte[] word(int at, AbiType type) {
    if (at > end - WORD) {
      throw wrong(at, "the data ends in " + type);
    }
    return data;
  }

  /** The number at {@code at}, of elements or of bytes. */
  int length(int at, String what) {
    return number(at, "the length of " + what);
  }

  /** The place to which the offset at {@code at} points. */
  int offset(int at, int base) {
    int offset = number(at, "an offset");
    if (offset > end - base) {
      throw wrong(at, "an offset of " + offset + " points beyond the data");
    }
    return base + offset;
  }

  private int number(int at, String what) {
    if (at > end - WORD) {
      throw wrong(at, "the data ends in " + what);
    }
    long low = Words.getLong(data, at + 24);
    boolean high =
        (Words.getLong(data, at) | Words.getLong(data, at + 8) | Words.getLong(data, at + 16)) != 0;
    if (high || low < 0 || low > Integer.MAX_VALUE) {
      throw wrong(at, what + " is beyond the data");
    }
    return (int) low;
  }

  /** Checks that {@code length} bytes are there, and counts them. */
  int content(int at, int length, String what) {
    if (length > end - at) {
      throw wrong(at, what + " of " + length + " bytes, of which " + (end - at) + " are there");
    }
    count(at, length + WORD);
    return at;
  }

  /**
   * Checks that {@code count} heads of {@code bytes} are there, and counts them. Those of static
   * parts are counted with what holds them.
   */
  void heads(int at, int count, int bytes, Object whole) {
    long all = (long) count * bytes;
    if (all > end - at) {
      throw wrong(at, whole + " with " + count + " elements, for which there are too few bytes");
    }
    // Elements of no bytes cost memory, too.
    count(at, Math.max(all, count) + WORD);
  }

  private void count(int at, long bytes) {
    left -= bytes;
    if (left < 0) {
      throw wrong(at, "more than " + TIMES + " times the data is read: parts overlap or are empty");
    }
  }

  MalformedException wrong(int at, String what) {
    return new MalformedException("ABI at byte " + (at - start) + ": " + what);
  }
}
