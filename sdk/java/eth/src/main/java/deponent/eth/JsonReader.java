package deponent.eth;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Reads JSON (RFC 8259) by pulling one token after the other out of bytes that may still arrive.
 * Only the token ahead is held; hex of any length is decoded while it is read. What is no JSON, and
 * what is another kind of value, is a {@link MalformedException} that says where.
 *
 * <pre>{@code
 * json.beginObject();
 * while (json.hasNext()) {
 *   switch (json.nextName()) {
 *     case "hash" -> hash = json.nextHash();
 *     case "number" -> number = json.nextQuantity();
 *     default -> json.skipValue();
 *   }
 * }
 * json.endObject();
 * }</pre>
 */
public final class JsonReader {
  /** Objects and arrays in each other that are opened at most. */
  private static final int DEEPEST = 512;

  /** Longest number, in bytes: no one needs 1,000 digits, and parsing is slower than linear. */
  private static final int LONGEST_NUMBER = 1024;

  // What may come next, for each open object and array.
  private static final byte DOCUMENT = 0;
  private static final byte DONE = 1;
  private static final byte FIRST_ELEMENT = 2;
  private static final byte NEXT_ELEMENT = 3;
  private static final byte ELEMENT = 4;
  private static final byte FIRST_NAME = 5;
  private static final byte NEXT_NAME = 6;
  private static final byte NAME = 7;
  private static final byte MEMBER = 8;

  private final @Nullable InputStream in;
  private byte[] buffer;
  private int at;
  private int end;

  /** Bytes before those of the buffer. */
  private long passed;

  /** Where what must not leave the buffer begins, or -1. */
  private int kept = -1;

  private byte[] states = new byte[16];
  private int depth;

  /** Whether hex is being read whose closing quote is ahead. */
  private boolean within;

  // The string that was scanned last.
  private int from;
  private int to;
  private boolean escaped;
  private boolean ascii;

  /** Reads all of {@code json}, which is not copied. */
  public JsonReader(byte[] json) {
    this(json, 0, json.length);
  }

  /**
   * Reads {@code length} bytes from {@code at} on, which are not copied.
   *
   * @throws IndexOutOfBoundsException if they are not all there
   */
  public JsonReader(byte[] json, int at, int length) {
    java.util.Objects.checkFromIndexSize(at, length, json.length);
    this.in = null;
    this.buffer = json;
    this.at = at;
    this.end = at + length;
    this.passed = -at;
  }

  /** Reads a text. */
  public JsonReader(String json) {
    this(json.getBytes(StandardCharsets.UTF_8));
  }

  /**
   * Reads what arrives from {@code in}, {@code bufferBytes} at a time. Its {@link IOException}
   * comes out as an {@link UncheckedIOException}.
   */
  public JsonReader(InputStream in, int bufferBytes) {
    this.in = in;
    this.buffer = new byte[Math.max(bufferBytes, 64)];
  }

  /**
   * Begins anew with other bytes, which are not copied.
   *
   * @return this one
   * @throws IndexOutOfBoundsException if they are not all there
   * @throws IllegalStateException if it reads what arrives from a stream
   */
  public JsonReader reset(byte[] json, int at, int length) {
    java.util.Objects.checkFromIndexSize(at, length, json.length);
    if (in != null) {
      throw new IllegalStateException("it reads a stream");
    }
    buffer = json;
    this.at = at;
    end = at + length;
    passed = -at;
    kept = -1;
    depth = 0;
    states[0] = DOCUMENT;
    return this;
  }

  /** The kinds of values. */
  public enum Kind {
    /** {@code {..}}. */
    OBJECT,
    /** {@code [..]}. */
    ARRAY,
    /** {@code ".."}. */
    STRING,
    /** A number. */
    NUMBER,
    /** {@code true} or {@code false}. */
    BOOLEAN,
    /** {@code null}. */
    NULL
  }

  /** Names of members, by which {@link #nextName(Names)} finds the place of the next one. */
  public static final class Names {
    private final byte[][] names;
    private final int[] table;

    private Names(byte[][] names) {
      this.names = names;
      table = new int[Integer.highestOneBit(4 * names.length + 1) * 2];
      for (int i = 0; i < names.length; i++) {
        int slot = slot(names[i], 0, names[i].length);
        while (table[slot] != 0) {
          slot = slot + 1 & table.length - 1;
        }
        table[slot] = i + 1;
      }
    }

    /** Of names in ASCII, each once. */
    public static Names of(String... names) {
      byte[][] bytes = new byte[names.length][];
      for (int i = 0; i < names.length; i++) {
        bytes[i] = names[i].getBytes(StandardCharsets.US_ASCII);
      }
      return new Names(bytes);
    }

    private int slot(byte[] bytes, int from, int to) {
      int length = to - from;
      int hash = length;
      if (length > 0) {
        hash = length * 31 + bytes[from] * 7 + bytes[to - 1] * 131 + bytes[from + length / 2] * 17;
      }
      return (hash ^ hash >>> 7) & table.length - 1;
    }

    private int find(byte[] bytes, int from, int to) {
      int slot = slot(bytes, from, to);
      for (; table[slot] != 0; slot = slot + 1 & table.length - 1) {
        byte[] name = names[table[slot] - 1];
        if (Arrays.equals(name, 0, name.length, bytes, from, to)) {
          return table[slot] - 1;
        }
      }
      return -1;
    }
  }

  /** Bytes that were read so far. */
  public long position() {
    return passed + at;
  }

  /** The kind of the next value, which is not read. */
  public Kind peek() {
    toValue();
    return switch (buffer[at]) {
      case '{' -> Kind.OBJECT;
      case '[' -> Kind.ARRAY;
      case '"' -> Kind.STRING;
      case 't', 'f' -> Kind.BOOLEAN;
      case 'n' -> Kind.NULL;
      case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9' -> Kind.NUMBER;
      default -> throw wrong("no value: " + shown());
    };
  }

  /** Opens the object that is next. */
  public void beginObject() {
    open('{', "an object", FIRST_NAME);
  }

  /** Opens the array that is next. */
  public void beginArray() {
    open('[', "an array", FIRST_ELEMENT);
  }

  private void open(char bracket, String what, byte state) {
    beginValue(bracket, what);
    at++;
    if (depth == DEEPEST) {
      throw wrong("objects and arrays nest deeper than " + DEEPEST);
    }
    if (++depth == states.length) {
      states = Arrays.copyOf(states, 2 * depth);
    }
    states[depth] = state;
  }

  /** Closes the object, which has to be read to its end. */
  public void endObject() {
    close('}', states[depth] == FIRST_NAME || states[depth] == NEXT_NAME);
  }

  /** Closes the array, which has to be read to its end. */
  public void endArray() {
    close(']', states[depth] == FIRST_ELEMENT || states[depth] == NEXT_ELEMENT);
  }

  private void close(char bracket, boolean may) {
    if (!may || !blanks() || buffer[at] != bracket) {
      throw wrong("'" + bracket + "' is expected: " + shown());
    }
    at++;
    depth--;
  }

  /** Whether the open object or array has more; outside of them, whether the value is to come. */
  public boolean hasNext() {
    byte state = states[depth];
    switch (state) {
      case DOCUMENT, MEMBER, ELEMENT, NAME:
        return true;
      case DONE:
        return false;
      default:
    }
    if (!blanks()) {
      throw wrong("the text ends in an object or array");
    }
    boolean array = state == FIRST_ELEMENT || state == NEXT_ELEMENT;
    if (buffer[at] == (array ? ']' : '}')) {
      return false;
    }
    if (state == NEXT_ELEMENT || state == NEXT_NAME) {
      if (buffer[at] != ',') {
        throw wrong("a comma is expected: " + shown());
      }
      at++;
    }
    states[depth] = array ? ELEMENT : NAME;
    return true;
  }

  /** The name of the next member, whose value is read then. */
  public String nextName() {
    toName();
    String name = text();
    toMember();
    return name;
  }

  /** The place of the next member's name among {@code names}, or -1 where it is none of them. */
  public int nextName(Names names) {
    toName();
    int found;
    if (escaped) {
      byte[] plain = text().getBytes(StandardCharsets.UTF_8);
      found = names.find(plain, 0, plain.length);
    } else {
      found = names.find(buffer, from, to);
    }
    toMember();
    return found;
  }

  private void toName() {
    if (states[depth] != NAME && (states[depth] < FIRST_NAME || !hasNext())) {
      throw wrong("a name is expected: " + shown());
    }
    if (states[depth] == MEMBER || !blanks() || buffer[at] != '"') {
      throw wrong("a name is expected: " + shown());
    }
    scan();
  }

  private void toMember() {
    kept = -1;
    if (!blanks() || buffer[at] != ':') {
      throw wrong("a colon is expected: " + shown());
    }
    at++;
    states[depth] = MEMBER;
  }

  /** Whether the next value is {@code null}; it is read then. */
  public boolean nextNull() {
    toValue();
    if (buffer[at] != 'n') {
      return false;
    }
    literal("null");
    return true;
  }

  /** The next value, which is {@code true} or {@code false}. */
  public boolean nextBoolean() {
    toValue();
    boolean value = buffer[at] == 't';
    if (!value && buffer[at] != 'f') {
      throw wrong("not a boolean: " + shown());
    }
    literal(value ? "true" : "false");
    return value;
  }

  /** The next value, which is a string. */
  public String nextString() {
    beginValue('"', "a string");
    scan();
    String text = text();
    kept = -1;
    return text;
  }

  /** The next value, which is a whole number from -2^63 to 2^63-1. */
  public long nextLong() {
    toValue();
    long few = fewDigits();
    if (few >= 0) {
      return few;
    }
    String number = number();
    try {
      return Long.parseLong(number);
    } catch (NumberFormatException no) {
      throw wrong("no whole number of 64 bits: " + Quote.of(number));
    }
  }

  /** The next value, which is a number. */
  public double nextDouble() {
    return Double.parseDouble(number());
  }

  /** The next value, which is a whole number. */
  public BigInteger nextInteger() {
    String number = number();
    try {
      return new BigInteger(number);
    } catch (NumberFormatException no) {
      throw wrong("no whole number: " + Quote.of(number));
    }
  }

  /** The next value, which is a string of {@code 0x} and digits of a number below 2^63. */
  public long nextQuantity() {
    digits(1, "a quantity");
    int first = from;
    while (first < to && buffer[first] == '0') {
      first++;
    }
    long number = 0;
    for (int i = first; i < to; i++) {
      int digit = Hex.value(buffer[i]);
      if (digit < 0) {
        throw wrong("no hex digits: " + Quote.of(text()));
      }
      number = number << 4 | digit;
    }
    if (to - first > 16 || number < 0) {
      throw wrong("a quantity beyond 2^63-1: " + Quote.of(text()));
    }
    kept = -1;
    return number;
  }

  /** The next value, which is a string of {@code 0x} and digits of a number of 256 bits at most. */
  public BigInteger nextBigQuantity() {
    return new BigInteger(1, word());
  }

  /** The next value, which is a string of {@code 0x} and the digits of a number of wei. */
  public Wei nextWei() {
    return Wei.of(word(), 0);
  }

  private byte[] word() {
    digits(1, "a quantity");
    int first = from;
    while (first < to && buffer[first] == '0') {
      first++;
    }
    if (to - first > 64) {
      throw wrong("a quantity of more than 256 bits: " + Quote.of(text()));
    }
    byte[] word = new byte[32];
    for (int i = to - 1, nibble = 63; i >= first; i--, nibble--) {
      int digit = Hex.value(buffer[i]);
      if (digit < 0) {
        throw wrong("no hex digits: " + Quote.of(text()));
      }
      word[nibble / 2] |= (byte) (nibble % 2 == 0 ? digit << 4 : digit);
    }
    kept = -1;
    return word;
  }

  /** The next value, which is a string of {@code 0x} and 40 digits, in any case. */
  public Address nextAddress() {
    byte[] bytes = new byte[Address.SIZE];
    fixed(bytes, "an address");
    return Address.of(bytes, 0);
  }

  /** The next value, which is a string of {@code 0x} and 64 digits. */
  public Hash nextHash() {
    byte[] bytes = new byte[Hash.SIZE];
    fixed(bytes, "a hash");
    return Hash.of(bytes, 0);
  }

  private void fixed(byte[] bytes, String what) {
    digits(0, what);
    if (to - from != 2 * bytes.length) {
      throw wrong(what + " has " + 2 * bytes.length + " digits, not " + (to - from));
    }
    if (Hex.decodeTo(buffer, from, to - from, bytes, 0) >= 0) {
      throw wrong("no hex digits: " + Quote.of(text()));
    }
    kept = -1;
  }

  /** Scans a short string and takes its {@code 0x} off. */
  private void digits(int least, String what) {
    beginValue('"', what);
    scan();
    if (to - from < 2 + least || buffer[from] != '0' || buffer[from + 1] != 'x') {
      throw wrong(what + " begins with 0x: " + Quote.of(text()));
    }
    from += 2;
  }

  /**
   * The next value, which is a string of {@code 0x} and an even number of digits. They are decoded
   * while they arrive, so that beside the result at most the buffer is held.
   */
  public Bytes nextBytes() {
    beginValue('"', "hex");
    at++;
    within = true;
    need(2, "hex");
    if (buffer[at] != '0' || buffer[at + 1] != 'x') {
      throw wrong("hex begins with 0x: " + shown());
    }
    at += 2;
    List<byte[]> parts = new ArrayList<>();
    long size = 0;
    while (true) {
      need(1, "hex");
      if (buffer[at] != '"') {
        need(2, "hex");
      }
      int digits = at;
      while (digits < end && buffer[digits] != '"') {
        digits++;
      }
      boolean ends = digits < end;
      int length = digits - at;
      if (ends && length % 2 != 0) {
        throw wrong("an odd number of hex digits");
      }
      byte[] part = new byte[length / 2];
      int wrong = Hex.decodeTo(buffer, at, length & ~1, part, 0);
      if (wrong >= 0) {
        at = wrong;
        throw wrong("no hex digit: " + shown());
      }
      at += length & ~1;
      size += part.length;
      if (ends) {
        at++;
        within = false;
        return Bytes.own(parts.isEmpty() ? part : join(parts, part, size));
      }
      parts.add(part);
    }
  }

  private byte[] join(List<byte[]> parts, byte[] last, long size) {
    if (size > Integer.MAX_VALUE - 8) {
      throw wrong("more than 2^31 bytes in one value");
    }
    byte[] all = new byte[(int) size];
    int filled = 0;
    for (int i = 0; i < parts.size(); i++) {
      byte[] part = parts.set(i, last);
      System.arraycopy(part, 0, all, filled, part.length);
      filled += part.length;
    }
    System.arraycopy(last, 0, all, filled, last.length);
    return all;
  }

  /** Passes over the next value. */
  public void skipValue() {
    int bottom = depth;
    do {
      switch (states[depth]) {
        case FIRST_ELEMENT, NEXT_ELEMENT:
          if (!hasNext()) {
            endArray();
            continue;
          }
          break;
        case FIRST_NAME, NEXT_NAME, NAME:
          if (!hasNext()) {
            endObject();
            continue;
          }
          boolean name = states[depth] == NAME;
          if (name && (!blanks() || buffer[at] != '"')) {
            throw wrong("a name is expected: " + shown());
          }
          pass();
          toMemberKeeping();
          break;
        default:
      }
      switch (peek()) {
        case OBJECT -> beginObject();
        case ARRAY -> beginArray();
        case STRING -> {
          beginValue('"', "a string");
          pass();
        }
        case NUMBER -> passNumber();
        case BOOLEAN -> nextBoolean();
        case NULL -> nextNull();
      }
    } while (depth > bottom);
  }

  /** The text of the next value, as it is. */
  public String nextJson() {
    toValue();
    kept = at;
    skipValue();
    try {
      return StandardCharsets.UTF_8
          .newDecoder()
          .decode(ByteBuffer.wrap(buffer, kept, at - kept))
          .toString();
    } catch (CharacterCodingException no) {
      throw wrong("no UTF-8");
    } finally {
      kept = -1;
    }
  }

  /** The number of objects and arrays that are open. */
  public int depth() {
    return depth;
  }

  /**
   * Leaves what was opened beyond {@code outer} objects and arrays, and passes over the value of
   * the member whose name was read last there. So reading goes on behind a value that was not read
   * to its end, or of whose form an exception told.
   */
  public void leaveTo(int outer) {
    kept = -1;
    if (within) {
      within = false;
      pass(false);
    }
    while (depth > outer) {
      while (hasNext()) {
        if (states[depth] == NAME) {
          toName();
          toMember();
        }
        skipValue();
      }
      boolean array = states[depth] == FIRST_ELEMENT || states[depth] == NEXT_ELEMENT;
      close(array ? ']' : '}', true);
    }
    if (states[depth] == MEMBER) {
      skipValue();
    }
  }

  /**
   * Whether another text of JSON follows the one that was read; it is read then as the first was.
   *
   * @throws MalformedException if the one before is not read to its end
   */
  public boolean nextDocument() {
    if (depth != 0) {
      throw wrong("the value is not read to its end");
    }
    boolean more = blanks();
    states[0] = more ? DOCUMENT : DONE;
    return more;
  }

  /** Checks that nothing but blanks is left behind the value. */
  public void finish() {
    if (depth != 0 || states[0] != DONE) {
      throw wrong("the value is not read to its end");
    }
    if (blanks()) {
      throw wrong("something is left behind the value: " + shown());
    }
  }

  private void toMemberKeeping() {
    if (!blanks() || buffer[at] != ':') {
      throw wrong("a colon is expected: " + shown());
    }
    at++;
    states[depth] = MEMBER;
  }

  /** Goes to the first byte of the next value. */
  private void toValue() {
    byte state = states[depth];
    if (state == FIRST_ELEMENT || state == NEXT_ELEMENT) {
      if (!hasNext()) {
        throw wrong("the array has no more elements");
      }
    } else if (state != ELEMENT && state != MEMBER && state != DOCUMENT) {
      throw wrong(state == DONE ? "there is one value only" : "a name comes before its value");
    }
    if (!blanks()) {
      throw wrong("the text ends where a value is expected");
    }
  }

  private void beginValue(char first, String what) {
    toValue();
    if (buffer[at] != first) {
      throw wrong("not " + what + ": " + shown());
    }
    done();
  }

  /** Notes that the value ahead is about to be read. */
  private void done() {
    byte state = states[depth];
    states[depth] = state == MEMBER ? NEXT_NAME : state == DOCUMENT ? DONE : NEXT_ELEMENT;
  }

  private void literal(String literal) {
    need(literal.length(), literal);
    for (int i = 0; i < literal.length(); i++) {
      if (buffer[at + i] != literal.charAt(i)) {
        throw wrong("no value: " + shown());
      }
    }
    at += literal.length();
    done();
  }

  /** The number that is next where its digits are in the buffer, up to 18 of them; else -1. */
  private long fewDigits() {
    long number = 0;
    int i = at;
    int most = Math.min(end, at + 18);
    for (; i < most && buffer[i] >= '0' && buffer[i] <= '9'; i++) {
      number = 10 * number + buffer[i] - '0';
    }
    boolean whole = i > at && i < end && (buffer[at] != '0' || i == at + 1);
    if (!whole || "},] \n\r\t".indexOf(buffer[i]) < 0) {
      return -1;
    }
    at = i;
    done();
    return number;
  }

  private String number() {
    toValue();
    boolean keeping = kept >= 0;
    if (!keeping) {
      kept = at;
    }
    int start = at - kept;
    passNumber();
    String number =
        new String(buffer, kept + start, at - kept - start, StandardCharsets.ISO_8859_1);
    if (!keeping) {
      kept = -1;
    }
    return number;
  }

  /** Passes over a number: {@code -?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?}. */
  private void passNumber() {
    long start = position();
    if (current() == '-') {
      at++;
    }
    if (current() == '0') {
      at++;
    } else {
      passDigits(start);
    }
    if (current() == '.') {
      at++;
      passDigits(start);
    }
    if (current() == 'e' || current() == 'E') {
      at++;
      if (current() == '+' || current() == '-') {
        at++;
      }
      passDigits(start);
    }
    done();
  }

  private void passDigits(long start) {
    if (current() < '0' || current() > '9') {
      throw wrong("no number: " + shown());
    }
    while (current() >= '0' && current() <= '9') {
      at++;
      if (position() - start > LONGEST_NUMBER) {
        throw wrong("a number of more than " + LONGEST_NUMBER + " digits");
      }
    }
  }

  /** The byte ahead, or -1 at the end. */
  private int current() {
    return at < end || more() ? buffer[at] : -1;
  }

  /** Passes over blanks; false at the end. */
  private boolean blanks() {
    while (true) {
      while (at < end) {
        byte one = buffer[at];
        if (one != ' ' && one != '\n' && one != '\r' && one != '\t') {
          return true;
        }
        at++;
      }
      if (!more()) {
        return false;
      }
    }
  }

  /**
   * Scans the string whose quote is ahead; its bytes stay in the buffer until {@code kept} goes.
   */
  private void scan() {
    at++;
    boolean keeping = kept >= 0;
    if (!keeping) {
      kept = at;
    }
    int start = at - kept;
    escaped = false;
    ascii = true;
    pass(false);
    from = kept + start;
    to = at - 1;
  }

  private void pass() {
    at++;
    escaped = false;
    pass(false);
  }

  /** Passes over a string up to behind its closing quote. */
  private void pass(boolean backslash) {
    while (true) {
      if (at == end && !more()) {
        throw wrong("the text ends in a string");
      }
      byte one = buffer[at++];
      if (backslash) {
        backslash = false;
      } else if (one == '"') {
        return;
      } else if (one == '\\') {
        backslash = true;
        escaped = true;
      } else if (one < 0) {
        ascii = false;
      } else if (one < ' ') {
        throw wrong("a control character in a string");
      }
    }
  }

  /** The string that was scanned. */
  private String text() {
    if (ascii && !escaped) {
      return new String(buffer, from, to - from, StandardCharsets.ISO_8859_1);
    }
    String text;
    try {
      ByteBuffer bytes = ByteBuffer.wrap(buffer, from, to - from);
      text = StandardCharsets.UTF_8.newDecoder().decode(bytes).toString();
    } catch (CharacterCodingException no) {
      throw wrong("a string that is no UTF-8");
    }
    return escaped ? unescape(text) : text;
  }

  private String unescape(String text) {
    StringBuilder plain = new StringBuilder(text.length());
    for (int i = 0; i < text.length(); i++) {
      char one = text.charAt(i);
      if (one != '\\') {
        plain.append(one);
        continue;
      }
      one = text.charAt(++i);
      switch (one) {
        case '"', '\\', '/' -> plain.append(one);
        case 'b' -> plain.append('\b');
        case 'f' -> plain.append('\f');
        case 'n' -> plain.append('\n');
        case 'r' -> plain.append('\r');
        case 't' -> plain.append('\t');
        case 'u' -> {
          plain.append(unit(text, i + 1));
          i += 4;
        }
        default -> throw wrong("an unknown escape: " + Quote.of("\\" + one));
      }
    }
    return plain.toString();
  }

  private char unit(String text, int at) {
    int unit = 0;
    for (int i = at; i < at + 4; i++) {
      int digit = i < text.length() ? Hex.value(text.charAt(i)) : -1;
      if (digit < 0) {
        throw wrong("\\u has four hex digits");
      }
      unit = unit << 4 | digit;
    }
    return (char) unit;
  }

  private void need(int bytes, String what) {
    while (end - at < bytes) {
      if (!more()) {
        throw wrong("the text ends in " + what);
      }
    }
  }

  /** Gets more bytes, and drops those that nobody needs; false at the end. */
  private boolean more() {
    if (in == null) {
      return false;
    }
    int first = kept >= 0 ? kept : at;
    if (first > 0) {
      System.arraycopy(buffer, first, buffer, 0, end - first);
      passed += first;
      at -= first;
      end -= first;
      kept = kept >= 0 ? 0 : -1;
    }
    if (end == buffer.length) {
      if (end > Integer.MAX_VALUE / 2) {
        throw wrong("a string of more than 2^30 bytes");
      }
      buffer = Arrays.copyOf(buffer, 2 * end);
    }
    try {
      int read = in.read(buffer, end, buffer.length - end);
      if (read > 0) {
        end += read;
      }
      return read > 0;
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }

  private String shown() {
    return at < end
        ? Quote.of(new String(buffer, at, Math.min(end - at, 100), StandardCharsets.ISO_8859_1))
        : "its end";
  }

  private MalformedException wrong(String what) {
    return new MalformedException("JSON at byte " + position() + ": " + what);
  }
}
