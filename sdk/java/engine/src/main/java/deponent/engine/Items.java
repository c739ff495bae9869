package deponent.engine;

import deponent.eth.MalformedException;
import java.nio.ByteBuffer;
import java.util.AbstractList;
import java.util.Arrays;
import java.util.Objects;
import java.util.RandomAccess;
import org.jspecify.annotations.Nullable;

/**
 * A list of byte strings of a {@link Witness}. Each is a view of the memory that the witness was
 * read into: nothing is copied, and a view reads alone.
 */
public final class Items extends AbstractList<ByteBuffer> implements RandomAccess {
  /** Bounds on a list that is read, each with its reason where it is used. */
  record Limits(int items, int itemBytes) {}

  private final String field;

  /** What the items are in, or null when it was given back. */
  private volatile @Nullable Memory memory;

  /** Start and end of each item, 32 bits without a sign. */
  private final int[] bounds;

  private final long contentBytes;

  private Items(String field, Memory memory, int[] bounds) {
    this.field = field;
    this.memory = memory;
    this.bounds = bounds;
    long sum = 0;
    for (int at = 0; at < bounds.length; at += 2) {
      sum += bounds[at + 1] - bounds[at];
    }
    contentBytes = sum;
  }

  @Override
  public int size() {
    return bounds.length / 2;
  }

  /**
   * A view of an item.
   *
   * @throws IndexOutOfBoundsException if there is none at {@code index}
   * @throws IllegalStateException if the witness is closed
   */
  @Override
  public ByteBuffer get(int index) {
    return memory().view(start(index), bytes(index));
  }

  /** The bytes of all items together, without any encoding. */
  public long contentBytes() {
    return contentBytes;
  }

  /** The bytes of an item. */
  int bytes(int index) {
    Objects.checkIndex(index, size());
    return bounds[2 * index + 1] - bounds[2 * index];
  }

  /** Copies an item to the beginning of {@code into}. */
  void copyTo(int index, byte[] into) {
    memory().copyTo(start(index), into, bytes(index));
  }

  /** Adds an item to what {@code out} has. */
  void putInto(int index, ByteBuffer out) {
    memory().putInto(start(index), out, bytes(index));
  }

  /** The bytes of the longest item. */
  int longest() {
    int longest = 0;
    for (int index = 0; index < size(); index++) {
      longest = Math.max(longest, bytes(index));
    }
    return longest;
  }

  /** What the list is called in messages. */
  String field() {
    return field;
  }

  /** The same in another order, without those that it lacks. */
  Items ordered(int[] order) {
    int[] moved = new int[2 * order.length];
    for (int index = 0; index < order.length; index++) {
      moved[2 * index] = bounds[2 * order[index]];
      moved[2 * index + 1] = bounds[2 * order[index] + 1];
    }
    return new Items(field, memory(), moved);
  }

  void close() {
    memory = null;
  }

  private long start(int index) {
    Objects.checkIndex(index, size());
    return Integer.toUnsignedLong(bounds[2 * index]);
  }

  private Memory memory() {
    Memory open = memory;
    if (open == null) {
      throw new IllegalStateException("the witness is closed");
    }
    return open;
  }

  /** Collects items of one memory, in order, within limits. */
  static final class Builder {
    private final String field;
    private final Limits limits;
    private int[] bounds;
    private int filled;

    Builder(String field, Limits limits, int expected) {
      this.field = field;
      this.limits = limits;
      checkCount(expected);
      bounds = new int[2 * expected];
    }

    void add(long start, long end) {
      checkCount(filled / 2 + 1);
      checkBytes(end - start);
      if (filled == bounds.length) {
        bounds = Arrays.copyOf(bounds, Math.max(16, 2 * filled));
      }
      bounds[filled++] = (int) start;
      bounds[filled++] = (int) end;
    }

    void checkBytes(long bytes) {
      if (bytes > limits.itemBytes) {
        throw new MalformedException(
            field + ": an item of " + bytes + " bytes, over the limit of " + limits.itemBytes);
      }
    }

    private void checkCount(int count) {
      if (count > limits.items) {
        throw new MalformedException(
            field + ": " + count + " items, over the limit of " + limits.items);
      }
    }

    Items of(ByteBuffer memory) {
      return of(Memory.of(memory));
    }

    Items of(Memory memory) {
      return new Items(field, memory, Arrays.copyOf(bounds, filled));
    }
  }
}
