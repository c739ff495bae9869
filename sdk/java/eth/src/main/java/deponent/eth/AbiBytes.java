package deponent.eth;

import java.io.ByteArrayOutputStream;
import java.util.Arrays;

/** {@code bytes1} to {@code bytes32}, {@code function}, and {@code bytes} of any number. */
final class AbiBytes extends AbiType {
  private static final int WORD = 32;

  /** The number of bytes, or -1 for any. */
  private final int size;

  private AbiBytes(String name, int size) {
    super(size < 0 ? Kind.BYTES : Kind.FIXED_BYTES, name, size < 0, WORD);
    this.size = size;
  }

  static AbiBytes any() {
    return new AbiBytes("bytes", -1);
  }

  static AbiBytes fixed(int size) {
    return new AbiBytes("bytes" + size, size);
  }

  /** An address and a selector. */
  static AbiBytes function() {
    return new AbiBytes("function", Address.SIZE + 4);
  }

  @Override
  public int length() {
    return size;
  }

  @Override
  int measure(Object value) {
    return size < 0 ? padded(lengthOf(value)) + WORD : WORD;
  }

  private int lengthOf(Object value) {
    if (value instanceof Bytes bytes) {
      return bytes.array.length;
    }
    if (value instanceof byte[] bytes) {
      return bytes.length;
    }
    if (value instanceof Hash && size == Hash.SIZE) {
      return Hash.SIZE;
    }
    throw Misfit.of(value, this);
  }

  @Override
  int put(Object value, byte[] out, int at) {
    int length = lengthOf(value);
    int from = at;
    if (size < 0) {
      Words.putWord(out, at, length);
      from += WORD;
    } else if (length != size) {
      throw new Misfit(length + " bytes do not fit " + this);
    }
    if (value instanceof Hash hash) {
      hash.copyTo(out, from);
    } else {
      byte[] bytes = value instanceof Bytes held ? held.array : (byte[]) value;
      System.arraycopy(bytes, 0, out, from, length);
    }
    int end = from + padded(length);
    Arrays.fill(out, from + length, end, (byte) 0);
    return end;
  }

  @Override
  Object get(AbiDecoder in, int at) {
    if (size < 0) {
      int length = in.length(at, "bytes");
      return Bytes.of(in.data, in.content(at + WORD, length, "bytes"), length);
    }
    byte[] data = in.word(at, this);
    for (int i = size; i < WORD; i++) {
      if (data[at + i] != 0) {
        throw in.wrong(at, "more than " + size + " bytes of " + this);
      }
    }
    return Bytes.of(data, at, size);
  }

  @Override
  void pack(Object value, ByteArrayOutputStream out, boolean padded) {
    int length = lengthOf(value);
    if (size >= 0 && length != size) {
      throw new Misfit(length + " bytes do not fit " + this);
    }
    byte[] bytes =
        value instanceof Bytes held
            ? held.array
            : value instanceof Hash hash ? hash.toBytes() : (byte[]) value;
    out.write(bytes, 0, length);
    if (padded) {
      out.write(new byte[padded(length) - length], 0, padded(length) - length);
    }
  }

  /** Up to the next whole word. */
  static int padded(int length) {
    return Math.addExact(length, 31) & ~31;
  }

  @Override
  String taken() {
    return size == Hash.SIZE ? "Bytes, Hash and byte[] are taken" : "Bytes and byte[] are taken";
  }
}
