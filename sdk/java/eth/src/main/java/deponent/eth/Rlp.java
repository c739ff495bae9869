package deponent.eth;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
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
    Deque<List<Rlp>> open = new ArrayDeque<>();
    while (true) {
      Rlp item;
      if (!open.isEmpty() && !reader.hasNext()) {
        reader.end();
        item = new Items(open.pop());
      } else if (reader.nextIsList()) {
        reader.list();
        open.push(new ArrayList<>());
        continue;
      } else {
        item = new Data(reader.bytes());
      }
      if (open.isEmpty()) {
        reader.finish();
        return item;
      }
      open.peek().add(item);
    }
  }

  /** The encoding. */
  default byte[] encode() {
    RlpWriter writer = new RlpWriter();
    Deque<java.util.Iterator<Rlp>> open = new ArrayDeque<>();
    open.push(List.of(this).iterator());
    while (!open.isEmpty()) {
      if (!open.peek().hasNext()) {
        open.pop();
        if (!open.isEmpty()) {
          writer.end();
        }
        continue;
      }
      switch (open.peek().next()) {
        case Data(Bytes value) -> writer.add(value);
        case Items(List<Rlp> values) -> {
          writer.list();
          open.push(values.iterator());
        }
      }
    }
    return writer.toBytes();
  }
}
