package deponent.eth;

import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/** {@code string}: UTF-8. */
final class AbiText extends AbiType {
  private static final int WORD = 32;

  AbiText() {
    super(Kind.STRING, "string", true, WORD);
  }

  @Override
  int measure(Object value) {
    return WORD + AbiBytes.padded(utf8Bytes(textOf(value)));
  }

  private String textOf(Object value) {
    if (value instanceof String text) {
      return text;
    }
    throw Misfit.of(value, this);
  }

  @Override
  int put(Object value, byte[] out, int at) {
    String text = textOf(value);
    int length = putUtf8(text, out, at + WORD) - at - WORD;
    Words.putWord(out, at, length);
    int end = at + WORD + AbiBytes.padded(length);
    Arrays.fill(out, at + WORD + length, end, (byte) 0);
    return end;
  }

  @Override
  Object get(AbiDecoder in, int at) {
    int length = in.length(at, "a string");
    int from = in.content(at + WORD, length, "a string");
    for (int i = from; i < from + length; i++) {
      if (in.data[i] < 0) {
        return decoded(in, from, length);
      }
    }
    return new String(in.data, from, length, StandardCharsets.ISO_8859_1);
  }

  private static String decoded(AbiDecoder in, int from, int length) {
    try {
      ByteBuffer bytes = ByteBuffer.wrap(in.data, from, length);
      return StandardCharsets.UTF_8.newDecoder().decode(bytes).toString();
    } catch (CharacterCodingException no) {
      throw in.wrong(from, "a string that is no UTF-8");
    }
  }

  @Override
  void pack(Object value, ByteArrayOutputStream out, boolean padded) {
    String text = textOf(value);
    byte[] bytes = new byte[utf8Bytes(text)];
    putUtf8(text, bytes, 0);
    int length = padded ? AbiBytes.padded(bytes.length) : bytes.length;
    out.writeBytes(Arrays.copyOf(bytes, length));
  }

  private static int utf8Bytes(String text) {
    int bytes = 0;
    int length = text.length();
    for (int i = 0; i < length; i++) {
      char one = text.charAt(i);
      if (one < 0x80) {
        bytes++;
      } else if (one < 0x800) {
        bytes += 2;
      } else if (!Character.isSurrogate(one)) {
        bytes += 3;
      } else {
        pairAt(text, i++);
        bytes += 4;
      }
      if (bytes < 0) {
        throw new Misfit("a string of more than 2^31 bytes");
      }
    }
    return bytes;
  }

  private static int putUtf8(String text, byte[] out, int at) {
    int length = text.length();
    for (int i = 0; i < length; i++) {
      char one = text.charAt(i);
      if (one < 0x80) {
        out[at++] = (byte) one;
      } else if (one < 0x800) {
        out[at++] = (byte) (0xc0 | one >> 6);
        out[at++] = (byte) (0x80 | one & 63);
      } else if (!Character.isSurrogate(one)) {
        out[at++] = (byte) (0xe0 | one >> 12);
        out[at++] = (byte) (0x80 | one >> 6 & 63);
        out[at++] = (byte) (0x80 | one & 63);
      } else {
        int point = pairAt(text, i++);
        out[at++] = (byte) (0xf0 | point >> 18);
        out[at++] = (byte) (0x80 | point >> 12 & 63);
        out[at++] = (byte) (0x80 | point >> 6 & 63);
        out[at++] = (byte) (0x80 | point & 63);
      }
    }
    return at;
  }

  private static int pairAt(String text, int at) {
    int point = text.codePointAt(at);
    if (point < 0x10000) {
      throw new Misfit("half of a surrogate pair at " + at + " of the string");
    }
    return point;
  }

  @Override
  String taken() {
    return "a String is taken";
  }
}
