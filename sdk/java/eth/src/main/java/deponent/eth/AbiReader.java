package deponent.eth;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.function.Function;

/**
 * Decodes values one after the other, each by the method of its type. It is what code that was
 * generated for a contract calls: nothing is boxed, and nothing is looked up. {@link
 * AbiFunction#decodeResult} and its like give the same values as objects, and refuse the same.
 *
 * <pre>{@code
 * AbiFunction balanceOf = AbiFunction.of("balanceOf(address) view returns (uint256)");
 * BigInteger balance = AbiReader.ofResult(balanceOf, result).unsigned(256);
 * }</pre>
 *
 * <p>What does not decode is a {@link MalformedException}, also a number that does not fit the
 * {@code long} or {@code int} that is asked for. The reader does not know which type is next: that
 * the methods are those of the signature is the caller's part. It belongs to one thread.
 */
public final class AbiReader {
  private static final int WORD = 32;

  private final AbiDecoder in;

  // The tuple or array that is being read: where offsets count from, and the next value.
  private int base;
  private int head;

  private AbiReader(AbiDecoder in, AbiTuple types) {
    this.in = in;
    base = in.begin(types);
    head = base;
  }

  /**
   * Of what a call returned.
   *
   * @throws MalformedException if it is shorter than what the function returns
   */
  public static AbiReader ofResult(AbiFunction function, Bytes result) {
    function.checkResult(result);
    return new AbiReader(new AbiDecoder(result.array, 0, result.size()), function.outputs);
  }

  /**
   * Of the values of an error.
   *
   * @throws MalformedException if {@code data} begins with another selector, or is too short
   */
  public static AbiReader of(AbiError error, Bytes data) {
    return new AbiReader(error.call.values(data.array), error.call.inputs);
  }

  /**
   * Of the indexed fields of a log: an integer, a boolean, an address and {@code bytesN} by its
   * method, all others by {@link #hash}.
   *
   * @throws MalformedException if the log is of another event
   */
  public static AbiReader ofTopics(AbiEvent event, List<Hash> topics) {
    event.check(topics);
    int skipped = event.isAnonymous() ? 0 : 1;
    byte[] words = new byte[(topics.size() - skipped) * WORD];
    for (int i = skipped; i < topics.size(); i++) {
      topics.get(i).copyTo(words, (i - skipped) * WORD);
    }
    return new AbiReader(new AbiDecoder(words, 0, words.length), AbiTuple.of(List.of()));
  }

  /**
   * Of the fields of a log that are not indexed.
   *
   * @throws MalformedException if it is shorter than they are
   */
  public static AbiReader ofData(AbiEvent event, Bytes data) {
    return new AbiReader(new AbiDecoder(data.array, 0, data.size()), event.plain);
  }

  /** Of {@code uintN}. */
  public BigInteger unsigned(int bits) {
    return (BigInteger) word(AbiWriter.integer(false, bits));
  }

  /** Of {@code uintN}. */
  public Wei wei(int bits) {
    AbiNumber type = AbiWriter.integer(false, bits);
    Wei amount = Wei.of(in.word(head, type), head);
    if (amount.bitLength() > bits) {
      throw in.wrong(head, amount + " does not fit " + type);
    }
    head += WORD;
    return amount;
  }

  /** Of {@code uintN} below 2^63. */
  public long unsignedLong(int bits) {
    return small(AbiWriter.integer(false, bits), Long.SIZE);
  }

  /** Of {@code uintN} below 2^31. */
  public int unsignedInt(int bits) {
    return (int) small(AbiWriter.integer(false, bits), Integer.SIZE);
  }

  /** Of {@code intN}. */
  public BigInteger signed(int bits) {
    return (BigInteger) word(AbiWriter.integer(true, bits));
  }

  /** Of {@code intN} from -2^63 to below 2^63. */
  public long signedLong(int bits) {
    return small(AbiWriter.integer(true, bits), Long.SIZE);
  }

  /** Of {@code intN} from -2^31 to below 2^31. */
  public int signedInt(int bits) {
    return (int) small(AbiWriter.integer(true, bits), Integer.SIZE);
  }

  private long small(AbiNumber type, int javaBits) {
    long value = type.getLong(in, head, javaBits);
    head += WORD;
    return value;
  }

  /** Of {@code fixedMxN} and {@code ufixedMxN}. */
  public BigDecimal decimal(boolean signed, int bits, int decimals) {
    return (BigDecimal) word(AbiNumber.decimal(signed, bits, decimals));
  }

  /** Of {@code bool}. */
  public boolean bool() {
    return (boolean) word(AbiWriter.BOOL);
  }

  /** Of {@code address}. */
  public Address address() {
    return (Address) word(AbiWriter.ADDRESS);
  }

  /** Of {@code bytesN}; {@code function} is {@code bytes24}. */
  public Bytes fixedBytes(int size) {
    return (Bytes) word(AbiWriter.fixedBytes(size));
  }

  /** Of {@code bytes32}, and of an indexed field that is a string, bytes, an array or a tuple. */
  public Hash hash() {
    Hash hash = Hash.of(in.word(head, AbiWriter.fixedBytes(WORD)), head);
    head += WORD;
    return hash;
  }

  private Object word(AbiType type) {
    Object value = type.get(in, head);
    head += WORD;
    return value;
  }

  /** Of {@code bytes}. */
  public Bytes bytes() {
    return (Bytes) tail(AbiWriter.BYTES);
  }

  /** Of {@code string}. */
  public String text() {
    return (String) tail(AbiWriter.TEXT);
  }

  private Object tail(AbiType type) {
    Object value = type.get(in, in.offset(head, base));
    head += WORD;
    return value;
  }

  /**
   * Of a tuple with a dynamic member.
   *
   * @param headBytes bytes of all members' heads: 32 for a dynamic member
   * @param members reads the members
   */
  public <T> T tuple(int headBytes, Function<AbiReader, T> members) {
    int from = in.offset(head, base);
    in.heads(from, 1, headBytes, "a tuple");
    int outerBase = base;
    int outerHead = head;
    base = from;
    head = from;
    T value = members.apply(this);
    base = outerBase;
    head = outerHead + WORD;
    return value;
  }

  /**
   * Of a tuple of static members, as {@link #tuple}.
   *
   * @param bytes all its bytes
   */
  public <T> T staticTuple(int bytes, Function<AbiReader, T> members) {
    int next = head + bytes;
    T value = members.apply(this);
    head = next;
    return value;
  }

  /**
   * Of {@code T[]}.
   *
   * @param headBytes bytes of an element's head: 32 for a dynamic one, else all its bytes
   * @param element reads one element
   */
  public <T> List<T> array(int headBytes, Function<AbiReader, T> element) {
    int from = in.offset(head, base);
    return elements(from + WORD, in.length(from, "an array"), headBytes, element);
  }

  /**
   * Of {@code T[k]} with dynamic elements.
   *
   * @param length the number of elements that the type has
   * @param element reads one element
   */
  public <T> List<T> fixedArray(int length, Function<AbiReader, T> element) {
    return elements(in.offset(head, base), length, WORD, element);
  }

  private <T> List<T> elements(int from, int count, int headBytes, Function<AbiReader, T> element) {
    in.heads(from, count, headBytes, "an array");
    int outerBase = base;
    int outerHead = head;
    base = from;
    List<T> values = new ArrayList<>(count);
    for (int i = 0; i < count; i++) {
      head = from + i * headBytes;
      values.add(element.apply(this));
    }
    base = outerBase;
    head = outerHead + WORD;
    return Collections.unmodifiableList(values);
  }

  /**
   * Of {@code T[k]} with static elements.
   *
   * @param length the number of elements that the type has
   * @param elementBytes all bytes of an element
   * @param element reads one element
   */
  public <T> List<T> staticArray(int length, int elementBytes, Function<AbiReader, T> element) {
    if (length * elementBytes == 0) {
      in.heads(head, length, 0, "an array");
    }
    int from = head;
    List<T> values = new ArrayList<>(length);
    for (int i = 0; i < length; i++) {
      head = from + i * elementBytes;
      values.add(element.apply(this));
    }
    head = from + length * elementBytes;
    return Collections.unmodifiableList(values);
  }
}
