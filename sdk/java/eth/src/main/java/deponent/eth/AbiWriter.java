package deponent.eth;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.util.Arrays;
import java.util.List;
import java.util.function.BiConsumer;
import org.jspecify.annotations.Nullable;

/**
 * Encodes the arguments of a call one after the other, each by the method of its type. It is what
 * code that was generated for a contract calls: nothing is boxed, and nothing is looked up. {@link
 * AbiFunction#encode} takes the same values as objects, and gives the same bytes.
 *
 * <pre>{@code
 * AbiFunction transfer = AbiFunction.of("transfer(address to, uint256 value)");
 * Bytes data = AbiWriter.of(transfer).address(friend).unsigned(value, 256).toBytes();
 * }</pre>
 *
 * <p>Values that do not fit are an {@link IllegalArgumentException} that names their place in the
 * signature. The writer does not know which type is next: that the methods are those of the
 * signature is the caller's part. It belongs to one thread.
 */
public final class AbiWriter {
  private static final int WORD = 32;

  /** The most bytes that are taken because the last call needed them. */
  private static final int MOST_GUESSED = 1 << 16;

  /** Numbers in a frame of the stack. */
  private static final int FRAME = 3;

  private static final int[] NO_FRAMES = {};
  private static final byte[] NO_BYTES = {};
  private static final AbiNumber[] UNSIGNED = integers(false);
  private static final AbiNumber[] SIGNED = integers(true);
  static final AbiNumber BOOL = AbiNumber.bool();
  static final AbiNumber ADDRESS = AbiNumber.address();
  static final AbiBytes BYTES = AbiBytes.any();
  static final AbiText TEXT = new AbiText();
  private static final AbiBytes[] FIXED_BYTES = fixedBytes();

  /** The parameters, for messages. */
  private final AbiTuple types;

  /** The signature, for messages. */
  private final String name;

  /** The function, or null. */
  private final @Nullable AbiCall call;

  private byte[] out;
  private final int start;

  /** Where the next tail goes. */
  private int end;

  // The tuple or array that is being written: where offsets count from, the place of the next
  // value, and the end of such places.
  private int base;
  private int head;
  private int headsEnd;

  /** The same of those around it, the outermost first. */
  private int[] frames = NO_FRAMES;

  private int depth;

  private AbiWriter(AbiTuple types, String name, int start, @Nullable AbiCall call) {
    this.types = types;
    this.name = name;
    this.start = start;
    this.call = call;
    int spare = call != null && types.isDynamic() ? call.guess : 0;
    try {
      out = new byte[Math.addExact(Math.addExact(start, types.headsBytes()), spare)];
    } catch (ArithmeticException overflow) {
      throw tooLong(overflow);
    }
    begin();
  }

  private void begin() {
    base = start;
    head = start;
    headsEnd = start + types.headsBytes();
    end = headsEnd;
    depth = 0;
  }

  /** Of the data of a call: the selector is written. */
  public static AbiWriter of(AbiFunction function) {
    AbiCall call = function.call;
    AbiWriter writer = new AbiWriter(call.inputs, call.signature, 4, call);
    Words.putInt(writer.out, 0, call.selector);
    return writer;
  }

  /** Of the data that creates a contract: the code is written. */
  public static AbiWriter of(AbiConstructor constructor, Bytes code) {
    AbiTuple inputs = constructor.types();
    AbiWriter writer = new AbiWriter(inputs, "constructor" + inputs, code.size(), null);
    code.copyTo(writer.out, 0);
    return writer;
  }

  private static AbiNumber[] integers(boolean signed) {
    AbiNumber[] types = new AbiNumber[WORD + 1];
    for (int bytes = 1; bytes <= WORD; bytes++) {
      types[bytes] = AbiNumber.integer(signed, bytes * 8);
    }
    return types;
  }

  private static AbiBytes[] fixedBytes() {
    AbiBytes[] types = new AbiBytes[WORD + 1];
    for (int size = 1; size <= WORD; size++) {
      types[size] = AbiBytes.fixed(size);
    }
    return types;
  }

  /** The type of so many bits. */
  static AbiNumber integer(boolean signed, int bits) {
    if (bits < 8 || bits > 256 || bits % 8 != 0) {
      throw new IllegalArgumentException("an integer has 8, 16, .. or 256 bits, not " + bits);
    }
    return (signed ? SIGNED : UNSIGNED)[bits / 8];
  }

  /** The type of so many bytes. */
  static AbiBytes fixedBytes(int size) {
    if (size < 1 || size > WORD) {
      throw new IllegalArgumentException("bytesN has 1 to 32 bytes, not " + size);
    }
    return FIXED_BYTES[size];
  }

  /** Of {@code uintN}. */
  public AbiWriter unsigned(BigInteger value, int bits) {
    return big(integer(false, bits), value);
  }

  /** Of {@code uintN}. */
  public AbiWriter unsigned(Wei value, int bits) {
    AbiNumber type = integer(false, bits);
    int at = next();
    try {
      type.putWei(present(value), out, at);
    } catch (Misfit misfit) {
      throw placed(misfit);
    }
    head += WORD;
    return this;
  }

  /** Of {@code uintN}. */
  public AbiWriter unsigned(long value, int bits) {
    return small(integer(false, bits), value);
  }

  /** Of {@code intN}. */
  public AbiWriter signed(BigInteger value, int bits) {
    return big(integer(true, bits), value);
  }

  /** Of {@code intN}. */
  public AbiWriter signed(long value, int bits) {
    return small(integer(true, bits), value);
  }

  private AbiWriter big(AbiNumber type, BigInteger value) {
    int at = next();
    try {
      type.putBig(present(value), out, at);
    } catch (Misfit misfit) {
      throw placed(misfit);
    }
    head += WORD;
    return this;
  }

  private AbiWriter small(AbiNumber type, long value) {
    int at = next();
    try {
      type.putLong(value, out, at);
    } catch (Misfit misfit) {
      throw placed(misfit);
    }
    head += WORD;
    return this;
  }

  /** Of {@code fixedMxN} and {@code ufixedMxN}. */
  public AbiWriter decimal(BigDecimal value, boolean signed, int bits, int decimals) {
    return word(AbiNumber.decimal(signed, bits, decimals), value);
  }

  /** Of {@code bool}. */
  public AbiWriter bool(boolean value) {
    Words.putWord(out, next(), value ? 1 : 0);
    head += WORD;
    return this;
  }

  /** Of {@code address}. */
  public AbiWriter address(Address value) {
    int at = next();
    try {
      present(value).putWord(out, at);
    } catch (Misfit misfit) {
      throw placed(misfit);
    }
    head += WORD;
    return this;
  }

  /** Of {@code bytesN}; {@code function} is {@code bytes24}. */
  public AbiWriter fixedBytes(Bytes value, int size) {
    return word(fixedBytes(size), value);
  }

  /** Of {@code bytes32}. */
  public AbiWriter hash(Hash value) {
    return word(fixedBytes(WORD), value);
  }

  private AbiWriter word(AbiType type, Object value) {
    int at = next();
    try {
      type.put(present(value), out, at);
    } catch (Misfit misfit) {
      throw placed(misfit);
    }
    head += WORD;
    return this;
  }

  /** Of {@code bytes}. */
  public AbiWriter bytes(Bytes value) {
    return tail(BYTES, value);
  }

  /** Of {@code string}. */
  public AbiWriter text(String value) {
    return tail(TEXT, value);
  }

  private AbiWriter tail(AbiType type, Object value) {
    int at = next();
    try {
      int length = type.measured(present(value));
      reserve(length);
      Words.putWord(out, at, end - base);
      type.put(value, out, end);
      end += length;
    } catch (Misfit misfit) {
      throw placed(misfit);
    }
    head += WORD;
    return this;
  }

  /**
   * Of a tuple with a dynamic member.
   *
   * @param headBytes bytes of all members' heads: 32 for a dynamic member
   * @param members writes the members
   */
  public <T> AbiWriter tuple(T value, int headBytes, BiConsumer<AbiWriter, T> members) {
    check(value);
    enter(-1, headBytes);
    members.accept(this, value);
    return leave();
  }

  /**
   * Of a tuple of static members, as {@link #tuple}.
   *
   * @param bytes all its bytes
   */
  public <T> AbiWriter staticTuple(T value, int bytes, BiConsumer<AbiWriter, T> members) {
    check(value);
    enterInPlace(bytes);
    members.accept(this, value);
    return leave();
  }

  /**
   * Of {@code T[]}.
   *
   * @param headBytes bytes of an element's head: 32 for a dynamic one, else all its bytes
   * @param element writes one element
   */
  public <T> AbiWriter array(List<T> values, int headBytes, BiConsumer<AbiWriter, T> element) {
    check(values);
    enter(values.size(), all(values.size(), headBytes));
    return elements(values, element);
  }

  /**
   * Of {@code T[k]} with dynamic elements.
   *
   * @param length the number of elements that the type has
   * @param element writes one element
   */
  public <T> AbiWriter fixedArray(List<T> values, int length, BiConsumer<AbiWriter, T> element) {
    check(values, length);
    enter(-1, all(length, WORD));
    return elements(values, element);
  }

  /**
   * Of {@code T[k]} with static elements.
   *
   * @param length the number of elements that the type has
   * @param elementBytes all bytes of an element
   * @param element writes one element
   */
  public <T> AbiWriter staticArray(
      List<T> values, int length, int elementBytes, BiConsumer<AbiWriter, T> element) {
    check(values, length);
    enterInPlace(all(length, elementBytes));
    return elements(values, element);
  }

  private <T> AbiWriter elements(List<T> values, BiConsumer<AbiWriter, T> element) {
    int count = values.size();
    for (int i = 0; i < count; i++) {
      T value = values.get(i);
      check(value);
      element.accept(this, value);
    }
    return leave();
  }

  private int all(int count, int bytes) {
    try {
      return Math.multiplyExact(count, bytes);
    } catch (ArithmeticException overflow) {
      throw tooLong(overflow);
    }
  }

  private static <T> T present(T value) {
    if (value == null) {
      throw new Misfit("null is no value");
    }
    return value;
  }

  private void check(Object value) {
    if (value == null) {
      throw placed(new Misfit("null is no value"));
    }
  }

  private void check(List<?> values, int length) {
    check((Object) values);
    if (values.size() != length) {
      throw placed(new Misfit(values.size() + " elements do not fit " + typeHere()));
    }
  }

  /** The place of the next value. */
  private int next() {
    if (head >= headsEnd) {
      throw new IllegalStateException("more values than " + name + " has");
    }
    return head;
  }

  /** Begins what stands behind the heads, with the number of its elements if not negative. */
  private void enter(int count, int headBytes) {
    int at = next();
    push();
    Words.putWord(out, at, end - base);
    if (count >= 0) {
      reserve(WORD);
      Words.putWord(out, end, count);
      end += WORD;
    }
    reserve(headBytes);
    base = end;
    head = end;
    end += headBytes;
    headsEnd = end;
  }

  /** Begins what stands among the heads. */
  private void enterInPlace(int bytes) {
    if (bytes > headsEnd - head) {
      throw new IllegalStateException("more values than " + name + " has");
    }
    push();
    base = head;
    headsEnd = head + bytes;
  }

  private void push() {
    if (depth * FRAME == frames.length) {
      frames = Arrays.copyOf(frames, frames.length + 4 * FRAME);
    }
    int at = depth++ * FRAME;
    frames[at] = base;
    frames[at + 1] = head;
    frames[at + 2] = headsEnd;
  }

  private AbiWriter leave() {
    if (head != headsEnd) {
      throw new IllegalStateException("fewer values than " + name + " has");
    }
    int at = --depth * FRAME;
    boolean inPlace = frames[at + 1] == base;
    head = inPlace ? head : frames[at + 1] + WORD;
    base = frames[at];
    headsEnd = frames[at + 2];
    return this;
  }

  private void reserve(int bytes) {
    if (bytes <= out.length - end) {
      return;
    }
    try {
      int least = Math.addExact(end, bytes);
      out = Arrays.copyOf(out, Math.max(least, (int) Math.min(2L * end, Integer.MAX_VALUE - 8)));
    } catch (ArithmeticException overflow) {
      throw tooLong(overflow);
    }
  }

  private static IllegalArgumentException tooLong(ArithmeticException overflow) {
    return new IllegalArgumentException("the values have more than 2^31 bytes", overflow);
  }

  /** With the place at which the writer is. */
  private Misfit placed(Misfit misfit) {
    StringBuilder path = new StringBuilder(name).append(' ');
    walk(path);
    return misfit.in(path.toString());
  }

  private AbiType typeHere() {
    return walk(new StringBuilder());
  }

  /** The type of the value at {@link #head}, and the way to it. */
  private AbiType walk(StringBuilder path) {
    AbiType type = types;
    for (int level = 0; level <= depth; level++) {
      int from = level == depth ? base : frames[level * FRAME];
      int to = level == depth ? head : frames[level * FRAME + 1];
      if (type instanceof AbiTuple tuple) {
        int index = tuple.memberAt(to - from);
        path.append(tuple.place(index));
        type = tuple.members().get(index).type();
      } else {
        type = type.element();
        path.append('[').append((to - from) / Math.max(1, type.headBytes())).append(']');
      }
    }
    return type;
  }

  /**
   * All that was written. The writer may hand out its array, and has to be begun anew.
   *
   * @throws IllegalStateException if values are missing
   */
  public Bytes toBytes() {
    finish();
    if (call != null && types.isDynamic()) {
      int needed = Math.min(end - start - types.headsBytes(), MOST_GUESSED);
      if (call.guess != needed) {
        call.guess = needed;
      }
    }
    byte[] all = end == out.length ? out : Arrays.copyOf(out, end);
    if (all == out) {
      out = NO_BYTES;
    }
    return Bytes.own(all);
  }

  /**
   * Copies all that was written to {@code into}, from {@code at} on.
   *
   * @return the number of bytes
   * @throws IllegalStateException if values are missing
   * @throws IndexOutOfBoundsException if it does not fit
   */
  public int copyTo(byte[] into, int at) {
    finish();
    System.arraycopy(out, 0, into, at, end);
    return end;
  }

  private void finish() {
    if (depth > 0 || head != headsEnd || out.length < end) {
      throw new IllegalStateException(
          out.length < end ? "the bytes were taken" : "fewer values than " + name + " has");
    }
  }

  /**
   * Forgets the values, for those of another call of the same function. The array is kept unless
   * {@link #toBytes} handed it out; then there is nothing to begin with.
   *
   * @throws IllegalStateException if the array was handed out
   */
  public AbiWriter again() {
    if (out == NO_BYTES) {
      throw new IllegalStateException("the bytes were taken");
    }
    begin();
    return this;
  }
}
