package deponent.engine;

import deponent.engine.Items.Limits;
import deponent.eth.Address;
import deponent.eth.Bytes;
import deponent.eth.Hash;
import deponent.eth.MalformedException;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;

/**
 * A container of SSZ, read strictly: no gaps between its parts, no bytes left over. Rules of
 * consensus-specs {@code ssz/simple-serialize.md}.
 */
final class Ssz {
  static final int OFFSET_BYTES = 4;

  /** The fields whose offsets stand in the part of fixed size, and where. */
  record Layout(String name, int fixedBytes, List<Field> fields) {
    static Layout of(String name, int fixedBytes, Field... fields) {
      return new Layout(name, fixedBytes, List.of(fields));
    }
  }

  record Field(String name, int place) {}

  private final Memory in;
  private final Layout layout;
  private int at;

  /** Checks the container's offsets. */
  Ssz(Layout layout, Memory input) {
    this.layout = layout;
    in = input;
    if (in.bytes() < layout.fixedBytes) {
      throw wrong(layout.name, in.bytes() + " bytes where " + layout.fixedBytes + " are due");
    }
    for (int index = 0; index < layout.fields.size(); index++) {
      long start = start(index);
      if (index == 0 && start != layout.fixedBytes) {
        throw wrong(layout.name, "the first offset is " + start + ", not " + layout.fixedBytes);
      }
      checkPart(layout.fields.get(index).name, start, start(index + 1), in.bytes());
    }
  }

  private long start(int index) {
    return index == layout.fields.size() ? in.bytes() : offset(in, layout.fields.get(index).place);
  }

  /** A field of variable size; empty where the layout has none of this number. */
  Memory part(int index) {
    return index >= layout.fields.size()
        ? in.part(in.bytes(), in.bytes())
        : in.part(start(index), start(index + 1));
  }

  /** Passes over an offset. */
  void offset() {
    at += OFFSET_BYTES;
  }

  byte[] bytes(int size) {
    byte[] bytes = new byte[size];
    in.copyTo(at, bytes, size);
    at += size;
    return bytes;
  }

  Hash hash() {
    return Hash.of(bytes(Hash.SIZE));
  }

  Address address() {
    return Address.of(bytes(Address.SIZE));
  }

  long uint64() {
    at += Long.BYTES;
    return in.getLong(at - Long.BYTES);
  }

  BigInteger uint256() {
    byte[] little = bytes(32);
    byte[] big = new byte[32];
    for (int i = 0; i < 32; i++) {
      big[i] = little[31 - i];
    }
    return new BigInteger(1, big);
  }

  /** A list of byte lists, as views of it. */
  static Items byteLists(String field, Memory in, Limits limits) {
    long end = in.bytes();
    if (end == 0) {
      return new Items.Builder(field, limits, 0).of(in);
    }
    long first = end < OFFSET_BYTES ? 0 : offset(in, 0);
    if (first == 0 || first % OFFSET_BYTES != 0 || first > end) {
      throw wrong(field, first + " bytes of offsets in a list of " + end + " bytes");
    }
    int count = (int) first / OFFSET_BYTES;
    Items.Builder items = new Items.Builder(field, limits, count);
    long start = first;
    for (int index = 1; index <= count; index++) {
      long next = index < count ? offset(in, (long) index * OFFSET_BYTES) : end;
      checkPart(field, start, next, end);
      items.add(start, next);
      start = next;
    }
    return items.of(in);
  }

  /** A list of byte lists, as copies. */
  static List<Bytes> copiedByteLists(String field, Memory list, Limits limits) {
    Items items = byteLists(field, list, limits);
    List<Bytes> copies = new ArrayList<>(items.size());
    for (ByteBuffer item : items) {
      copies.add(copied(item));
    }
    return List.copyOf(copies);
  }

  static Bytes copied(Memory part) {
    if (part.bytes() > Integer.MAX_VALUE - 8) {
      throw new MalformedException(part.bytes() + " bytes in one value");
    }
    byte[] copy = new byte[(int) part.bytes()];
    part.copyTo(0, copy, copy.length);
    return Bytes.of(copy);
  }

  private static Bytes copied(ByteBuffer view) {
    byte[] copy = new byte[view.remaining()];
    view.get(view.position(), copy);
    return Bytes.of(copy);
  }

  /** The number of items of {@code itemBytes} in a list. */
  static int count(String field, Memory list, int itemBytes, int most) {
    long count = list.bytes() / itemBytes;
    if (list.bytes() % itemBytes != 0) {
      throw wrong(field, list.bytes() + " bytes are not a multiple of " + itemBytes);
    }
    if (count > most) {
      throw wrong(field, count + " items, over the limit of " + most);
    }
    return (int) count;
  }

  static void checkBytes(String field, long bytes, int most) {
    if (bytes > most) {
      throw wrong(field, bytes + " bytes, over the limit of " + most);
    }
  }

  private static void checkPart(String field, long start, long end, long whole) {
    if (start > end || end > whole) {
      throw wrong(field, "from " + start + " to " + end + " in " + whole + " bytes");
    }
  }

  private static long offset(Memory in, long place) {
    return Integer.toUnsignedLong(in.getInt(place));
  }

  static MalformedException wrong(String field, String problem) {
    return new MalformedException(field + ": " + problem);
  }
}
