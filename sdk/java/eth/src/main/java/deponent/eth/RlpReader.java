package deponent.eth;

import java.math.BigInteger;
import java.util.Arrays;
import java.util.Objects;

/**
 * Reads RLP in one pass. Only the shortest form of each item is taken, and numbers have no leading
 * zeros; all else is a {@link MalformedException} that says where.
 *
 * <pre>{@code
 * RlpReader rlp = new RlpReader(bytes);
 * rlp.list();
 * long nonce = rlp.number();
 * Address to = rlp.address();
 * rlp.end();
 * rlp.finish();
 * }</pre>
 */
public final class RlpReader {
  /** Lists in lists that are opened at most. */
  static final int DEEPEST = 1024;

  private final byte[] in;
  private final int begin;
  private int at;
  private int end;
  private int[] ends = new int[8];
  private int depth;

  // The item ahead, once it was looked at.
  private int payload;
  private int length;

  /** Reads all of {@code rlp}, which is not copied. */
  public RlpReader(byte[] rlp) {
    this(rlp, 0, rlp.length);
  }

  /** Reads all of {@code rlp}. */
  public RlpReader(Bytes rlp) {
    this(rlp.array);
  }

  /**
   * Reads {@code length} bytes from {@code at} on, which are not copied.
   *
   * @throws IndexOutOfBoundsException if they are not all there
   */
  public RlpReader(byte[] rlp, int at, int length) {
    Objects.checkFromIndexSize(at, length, rlp.length);
    this.in = rlp;
    this.begin = at;
    this.at = at;
    this.end = at + length;
  }

  /** Whether the open list, or outside of lists the input, has another item. */
  public boolean hasNext() {
    return at < end;
  }

  /** Whether the next item is a list. */
  public boolean nextIsList() {
    if (at >= end) {
      throw wrong("an item is missing");
    }
    return (in[at] & 0xff) >= 0xc0;
  }

  /** Opens the next item, which is a list. */
  public RlpReader list() {
    if (!nextIsList()) {
      throw wrong("a string, where a list is expected");
    }
    if (depth == DEEPEST) {
      throw wrong("lists nest deeper than " + DEEPEST);
    }
    look();
    if (depth == ends.length) {
      ends = Arrays.copyOf(ends, 2 * depth);
    }
    ends[depth++] = end;
    at = payload;
    end = payload + length;
    return this;
  }

  /** Closes the list that was opened last, which has to be read to its end. */
  public RlpReader end() {
    if (depth == 0) {
      throw new IllegalStateException("no list is open");
    }
    if (at != end) {
      throw wrong("a list with more items than expected");
    }
    end = ends[--depth];
    return this;
  }

  /** Checks that nothing is left. */
  public void finish() {
    if (depth != 0) {
      throw new IllegalStateException(depth + " lists are open");
    }
    if (at != end) {
      throw wrong("bytes are left behind the item");
    }
  }

  /** The next item, which is a string. */
  public Bytes bytes() {
    string();
    at = payload + length;
    return Bytes.of(in, payload, length);
  }

  /** The next item, which is a string of 20 bytes. */
  public Address address() {
    fixed(Address.SIZE, "an address");
    return Address.of(in, payload);
  }

  /** The next item, which is a string of 32 bytes. */
  public Hash hash() {
    fixed(Hash.SIZE, "a hash");
    return Hash.of(in, payload);
  }

  /** The next item, which is a number below 2^63. */
  public long number() {
    numeric();
    if (length == 8 && in[payload] < 0) {
      throw wrong("a number beyond 2^63-1");
    }
    return unsigned();
  }

  /** The next item, which is a number below 2^64, without a sign. */
  public long unsignedNumber() {
    numeric();
    return unsigned();
  }

  private long unsigned() {
    if (length > 8) {
      throw wrong("a number beyond 64 bits");
    }
    long number = 0;
    for (int i = payload; i < payload + length; i++) {
      number = number << 8 | in[i] & 0xff;
    }
    at = payload + length;
    return number;
  }

  /** The next item, which is a number of at most 256 bits. */
  public BigInteger integer() {
    numeric();
    if (length > 32) {
      throw wrong("a number of more than 256 bits");
    }
    at = payload + length;
    return new BigInteger(1, in, payload, length);
  }

  /** The next item, which is a number of wei. */
  public Wei wei() {
    return Wei.of(integer());
  }

  /** The next item as it is encoded, with its head; what is in a list is not looked at. */
  public Bytes encoded() {
    nextIsList();
    look();
    int from = at;
    at = payload + length;
    return Bytes.of(in, from, at - from);
  }

  /** Passes over the next item; what is in a list is not looked at. */
  public void skip() {
    nextIsList();
    look();
    at = payload + length;
  }

  private void fixed(int size, String what) {
    string();
    if (length != size) {
      throw wrong(what + " has " + size + " bytes, not " + length);
    }
    at = payload + length;
  }

  private void numeric() {
    string();
    if (length > 0 && in[payload] == 0) {
      throw wrong("a number with leading zeros");
    }
  }

  private void string() {
    if (nextIsList()) {
      throw wrong("a list, where a string is expected");
    }
    look();
  }

  /** Finds payload and length of the item at {@code at}, which is before the end. */
  private void look() {
    int first = in[at] & 0xff;
    if (first < 0x80) {
      payload = at;
      length = 1;
      return;
    }
    int base = first < 0xc0 ? 0x80 : 0xc0;
    int lengthBytes = Math.max(0, first - base - 55);
    payload = at + 1 + lengthBytes;
    if (lengthBytes == 0) {
      length = first - base;
    } else {
      length = longLength(lengthBytes);
    }
    if (length > end - payload) {
      throw wrong("an item of " + length + " bytes, of which " + (end - payload) + " are there");
    }
    if (first == 0x81 && in[payload] >= 0) {
      throw wrong("a byte below 128 with a head");
    }
  }

  private int longLength(int lengthBytes) {
    if (lengthBytes > end - at - 1) {
      throw wrong("the length of an item is cut off");
    }
    if (in[at + 1] == 0) {
      throw wrong("a length with leading zeros");
    }
    long found = 0;
    for (int i = 1; i <= lengthBytes; i++) {
      found = found << 8 | in[at + i] & 0xff;
      if (found > Integer.MAX_VALUE) {
        throw wrong("an item longer than the input");
      }
    }
    if (found <= 55) {
      throw wrong("a length of " + found + " in the long form");
    }
    return (int) found;
  }

  private MalformedException wrong(String what) {
    return new MalformedException("RLP at byte " + (at - begin) + ": " + what);
  }
}
