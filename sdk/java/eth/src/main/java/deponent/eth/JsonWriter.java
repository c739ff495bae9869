package deponent.eth;

import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/**
 * Writes JSON into an array that it can be used with again.
 *
 * <pre>{@code
 * json.beginArray().value(address).value("latest").endArray();
 * }</pre>
 */
public final class JsonWriter {
  private static final byte[] DIGITS = "0123456789abcdef".getBytes(StandardCharsets.US_ASCII);

  /** Room for what is behind long hex, so that it is not copied for a few brackets. */
  private static final int BEHIND = 128;

  private byte[] out;
  private int size;

  /** Whether a comma is due before the next name or value. */
  private boolean comma;

  /** Begins with nothing. */
  public JsonWriter() {
    this(256);
  }

  /** Begins with nothing, and room for {@code expectedBytes}. */
  public JsonWriter(int expectedBytes) {
    out = new byte[Math.max(expectedBytes, 64)];
  }

  /** Forgets what was written, and keeps the room. */
  public JsonWriter clear() {
    size = 0;
    comma = false;
    return this;
  }

  /** The number of bytes written. */
  public int size() {
    return size;
  }

  /** The array with what was written, up to {@link #size}, until more is written. */
  public byte[] array() {
    return out;
  }

  /** A copy of what was written. */
  public byte[] toBytes() {
    return Arrays.copyOf(out, size);
  }

  /** Opens an object. */
  public JsonWriter beginObject() {
    return open('{');
  }

  /** Closes an object. */
  public JsonWriter endObject() {
    return close('}');
  }

  /** Opens an array. */
  public JsonWriter beginArray() {
    return open('[');
  }

  /** Closes an array. */
  public JsonWriter endArray() {
    return close(']');
  }

  private JsonWriter open(char bracket) {
    before(1);
    out[size++] = (byte) bracket;
    comma = false;
    return this;
  }

  private JsonWriter close(char bracket) {
    room(1);
    out[size++] = (byte) bracket;
    comma = true;
    return this;
  }

  /** A member's name; its value follows. */
  public JsonWriter name(String name) {
    value(name);
    room(1);
    out[size++] = ':';
    comma = false;
    return this;
  }

  /** A string. */
  public JsonWriter value(String text) {
    int length = text.length();
    before(length + 2);
    int begin = size;
    out[size++] = '"';
    for (int i = 0; i < length; i++) {
      char one = text.charAt(i);
      if (one < ' ' || one == '"' || one == '\\' || one >= 0x80) {
        size = begin;
        return escaped(text);
      }
      out[size++] = (byte) one;
    }
    out[size++] = '"';
    return this;
  }

  private JsonWriter escaped(String text) {
    StringBuilder quoted = new StringBuilder(text.length() + 16).append('"');
    for (int i = 0; i < text.length(); i++) {
      char one = text.charAt(i);
      if (one == '"' || one == '\\') {
        quoted.append('\\').append(one);
      } else if (one < ' ' || Character.isSurrogate(one)) {
        quoted.append("\\u");
        for (int shift = 12; shift >= 0; shift -= 4) {
          quoted.append((char) DIGITS[one >> shift & 15]);
        }
      } else {
        quoted.append(one);
      }
    }
    return put(quoted.append('"').toString().getBytes(StandardCharsets.UTF_8));
  }

  /** A number of JSON. */
  public JsonWriter value(long number) {
    before(20);
    if (number == Long.MIN_VALUE) {
      return put(Long.toString(number).getBytes(StandardCharsets.US_ASCII));
    }
    if (number < 0) {
      out[size++] = '-';
    }
    long rest = Math.abs(number);
    int digits = 1;
    for (long ten = 10; digits < 19 && rest >= ten; ten *= 10) {
      digits++;
    }
    for (int i = size + digits - 1; i >= size; i--) {
      out[i] = (byte) ('0' + rest % 10);
      rest /= 10;
    }
    size += digits;
    return this;
  }

  /** A boolean. */
  public JsonWriter value(boolean value) {
    return raw(value ? "true" : "false");
  }

  /** A string of {@code 0x} and 40 digits in lower case. */
  public JsonWriter value(Address address) {
    return hex(address.toBytes());
  }

  /** A string of {@code 0x} and 64 digits. */
  public JsonWriter value(Hash hash) {
    return hex(hash.toBytes());
  }

  /** A string of {@code 0x} and two digits a byte. */
  public JsonWriter value(Bytes bytes) {
    return hex(bytes.array);
  }

  /** A string of {@code 0x} and two digits a byte. */
  public JsonWriter hex(byte[] bytes) {
    int behind = bytes.length < 1 << 12 ? 0 : BEHIND;
    before(Math.addExact(4 + behind, Math.multiplyExact(2, bytes.length)));
    out[size++] = '"';
    out[size++] = '0';
    out[size++] = 'x';
    Hex.encodeTo(bytes, 0, bytes.length, out, size);
    size += 2 * bytes.length;
    out[size++] = '"';
    return this;
  }

  /**
   * A number as a string of {@code 0x} and its digits, without leading zeros.
   *
   * @throws IllegalArgumentException if it is negative
   */
  public JsonWriter quantity(long number) {
    if (number < 0) {
      throw new IllegalArgumentException("a quantity is not negative: " + number);
    }
    before(20);
    out[size++] = '"';
    out[size++] = '0';
    out[size++] = 'x';
    int shift = Math.max(0, (63 - Long.numberOfLeadingZeros(number)) / 4 * 4);
    for (; shift >= 0; shift -= 4) {
      out[size++] = DIGITS[(int) (number >>> shift) & 15];
    }
    out[size++] = '"';
    return this;
  }

  /**
   * A number as a string of {@code 0x} and its digits, without leading zeros.
   *
   * @throws IllegalArgumentException if it is negative
   */
  public JsonWriter quantity(BigInteger number) {
    if (number.signum() < 0) {
      throw new IllegalArgumentException("a quantity is not negative: " + number);
    }
    return raw("\"0x" + number.toString(16) + "\"");
  }

  /** A number of wei as a string of {@code 0x} and its digits, without leading zeros. */
  public JsonWriter quantity(Wei amount) {
    return quantity(amount.toBigInteger());
  }

  /** {@code null}. */
  public JsonWriter nullValue() {
    return raw("null");
  }

  /** A value that is JSON already. It is not looked at. */
  public JsonWriter raw(String json) {
    byte[] bytes = json.getBytes(StandardCharsets.UTF_8);
    before(bytes.length);
    return put(bytes);
  }

  private JsonWriter put(byte[] bytes) {
    room(bytes.length);
    System.arraycopy(bytes, 0, out, size, bytes.length);
    size += bytes.length;
    return this;
  }

  /** Room for a value, behind its comma. */
  private void before(int bytes) {
    room(bytes + 1);
    if (comma) {
      out[size++] = ',';
    }
    comma = true;
  }

  private void room(int more) {
    int needed = Math.addExact(size, more);
    if (needed > out.length) {
      out = Arrays.copyOf(out, (int) Math.min(Integer.MAX_VALUE - 8L, Math.max(needed, 2L * size)));
    }
  }
}
