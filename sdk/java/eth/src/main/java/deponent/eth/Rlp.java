package deponent.eth;

import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.Deque;
import java.util.Iterator;
import java.util.List;

/**
 * RLP as a tree, where its shape is not known. {@link RlpReader} and {@link RlpWriter} need none.
 *
 * <pre>{@code
 * Rlp.decode(bytes) instanceof Rlp.Items items && items.values().size() == 2
 * }</pre>
 */
public sealed interface Rlp permits Rlp.Data, Rlp.Items {
  /** A string of bytes. */
  record Data(Bytes value) implements Rlp {}

  /** A list. */
  record Items(List<Rlp> values) implements Rlp {
    /** With a copy of {@code values}. */
    public Items {
      values = List.copyOf(values);
    }
  }

  /**
   * The one item of {@code rlp}, read strictly. Lists nest 1,024 deep at most.
   *
   * @throws MalformedException if it is not the shortest form of an item, or more than one
   */
  static Rlp decode(byte[] rlp) {
    RlpReader reader = new RlpReader(rlp);
    // The items of all open lists, and where each list begins.
    Rlp[] items = new Rlp[16];
    int count = 0;
    int[] starts = new int[8];
    int depth = 0;
    while (true) {
      Rlp item;
      if (depth > 0 && !reader.hasNext()) {
        reader.end();
        int start = starts[--depth];
        item = new Items(List.of(Arrays.copyOfRange(items, start, count)));
        count = start;
      } else if (reader.nextIsList()) {
        reader.list();
        if (depth == starts.length) {
          starts = Arrays.copyOf(starts, 2 * depth);
        }
        starts[depth++] = count;
        continue;
      } else {
        item = new Data(reader.bytes());
      }
      if (depth == 0) {
        reader.finish();
        return item;
      }
      if (count == items.length) {
        items = Arrays.copyOf(items, 2 * count);
      }
      items[count++] = item;
    }
  }

  /** The encoding. */
  default byte[] encode() {
    RlpWriter writer = new RlpWriter(1_024);
    Deque<Iterator<Rlp>> open = new ArrayDeque<>();
    Iterator<Rlp> items = List.of(this).iterator();
    while (true) {
      if (!items.hasNext()) {
        if (open.isEmpty()) {
          return writer.toBytes();
        }
        writer.end();
        items = open.pop();
        continue;
      }
      Rlp next = items.next();
      if (next instanceof Data data) {
        writer.add(data.value);
      } else {
        writer.list();
        open.push(items);
        items = ((Items) next).values.iterator();
      }
    }
  }
}
