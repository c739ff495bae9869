package deponent.engine;

import deponent.engine.Items.Limits;
import deponent.eth.MalformedException;
import java.nio.ByteBuffer;

/**
 * {@code [headers, codes, state, keys]}, the blob of {@code engine_newPayloadWithWitness}. Four
 * items are written, keys empty; three or four are read, as some clients leave keys out. Headers
 * are lists, and not strings that hold one.
 */
final class WitnessRlp {
  private static final int SHORT = 55;

  private final ByteBuffer in;
  private final String field;
  private int at;
  private final int end;

  // The item ahead.
  private int payload;
  private int after;

  private WitnessRlp(String field, ByteBuffer in, int at, int end) {
    this.field = field;
    this.in = in;
    this.at = at;
    this.end = end;
  }

  static Witness read(ByteBuffer input) {
    ByteBuffer in = input.slice();
    WitnessRlp outer = new WitnessRlp("witness", in, 0, in.limit());
    outer.look(true);
    if (outer.after != outer.end) {
      throw outer.wrong((outer.end - outer.after) + " bytes after the end");
    }
    WitnessRlp lists = new WitnessRlp("witness", in, outer.payload, outer.after);
    Items headers = lists.items("headers", Witness.HEADERS, true);
    Items codes = lists.items("codes", Witness.ITEMS, false);
    Items state = lists.items("state", Witness.ITEMS, false);
    if (lists.at < lists.end) {
      lists.items("keys", Witness.ITEMS, false);
    }
    if (lists.at < lists.end) {
      throw lists.wrong("more than four items");
    }
    return new Witness(state, codes, headers);
  }

  private Items items(String name, Limits limits, boolean areLists) {
    look(true);
    WitnessRlp list = new WitnessRlp(name, in, payload, after);
    at = after;
    Items.Builder items = new Items.Builder(name, limits, 0);
    while (list.at < list.end) {
      list.look(areLists);
      items.add(areLists ? list.at : list.payload, list.after);
      list.at = list.after;
    }
    return items.of(in);
  }

  /** Finds payload and end of the item at {@code at}. */
  private void look(boolean isList) {
    if (at >= end) {
      throw wrong("an item is missing");
    }
    int first = in.get(at) & 0xff;
    if (first >= 0xc0 != isList) {
      throw wrong(isList ? "a string, where a list is due" : "a list, where a string is due");
    }
    if (first < 0x80) {
      payload = at;
      after = at + 1;
      return;
    }
    int base = isList ? 0xc0 : 0x80;
    int lengthBytes = Math.max(0, first - base - SHORT);
    long length = lengthBytes == 0 ? first - base : longLength(lengthBytes);
    payload = at + 1 + lengthBytes;
    if (length > end - payload) {
      throw wrong("an item of " + length + " bytes, of which " + (end - payload) + " are there");
    }
    after = payload + (int) length;
    if (first == 0x81 && in.get(payload) >= 0) {
      throw wrong("a byte below 128 with a head");
    }
  }

  private long longLength(int lengthBytes) {
    if (lengthBytes > end - at - 1) {
      throw wrong("the length of an item is cut off");
    }
    long length = 0;
    for (int i = 1; i <= lengthBytes; i++) {
      length = length << 8 | in.get(at + i) & 0xff;
    }
    if (in.get(at + 1) == 0 || length >= 0 && length <= SHORT) {
      throw wrong("a length in more bytes than it needs");
    }
    if (length < 0) {
      throw wrong("an item of 2^63 bytes or more");
    }
    return length;
  }

  private MalformedException wrong(String problem) {
    return new MalformedException(field + ": " + problem + ", at byte " + at);
  }

  static long bytes(Witness witness) {
    long payload = payloadBytes(witness);
    return headBytes(payload) + payload;
  }

  private static long payloadBytes(Witness witness) {
    long headers = witness.headers().contentBytes();
    long codes = stringsBytes(witness.codes());
    long state = stringsBytes(witness.nodes());
    return headBytes(headers) + headers + headBytes(codes) + codes + headBytes(state) + state + 1;
  }

  /** Adds the encoding to what {@code out} has; it fits. */
  static void write(Witness witness, ByteBuffer out) {
    checkHeaders(witness.headers());
    putHead(0xc0, payloadBytes(witness), out);
    putHead(0xc0, witness.headers().contentBytes(), out);
    for (int index = 0; index < witness.headers().size(); index++) {
      witness.headers().putInto(index, out);
    }
    putStrings(witness.codes(), out);
    putStrings(witness.nodes(), out);
    putHead(0xc0, 0, out);
  }

  private static void checkHeaders(Items headers) {
    for (int index = 0; index < headers.size(); index++) {
      ByteBuffer header = headers.get(index);
      try {
        WitnessRlp list = new WitnessRlp("headers", header, 0, header.limit());
        list.look(true);
        if (list.after == list.end) {
          continue;
        }
      } catch (MalformedException no) {
        throw new IllegalStateException("header " + index + " is no list of RLP", no);
      }
      throw new IllegalStateException("header " + index + " is more than a list of RLP");
    }
  }

  private static void putStrings(Items items, ByteBuffer out) {
    putHead(0xc0, stringsBytes(items), out);
    for (int index = 0; index < items.size(); index++) {
      if (!isByte(items, index)) {
        putHead(0x80, items.bytes(index), out);
      }
      items.putInto(index, out);
    }
  }

  private static long stringsBytes(Items items) {
    long bytes = items.contentBytes();
    for (int index = 0; index < items.size(); index++) {
      bytes += isByte(items, index) ? 0 : headBytes(items.bytes(index));
    }
    return bytes;
  }

  /** Whether an item is one byte that stands for itself. */
  private static boolean isByte(Items items, int index) {
    return items.bytes(index) == 1 && items.get(index).get(0) >= 0;
  }

  private static int headBytes(long length) {
    return length <= SHORT ? 1 : 1 + lengthBytes(length);
  }

  private static int lengthBytes(long length) {
    return (71 - Long.numberOfLeadingZeros(length)) / 8;
  }

  private static void putHead(int base, long length, ByteBuffer out) {
    if (length <= SHORT) {
      out.put((byte) (base + length));
      return;
    }
    int lengthBytes = lengthBytes(length);
    out.put((byte) (base + SHORT + lengthBytes));
    for (int shift = 8 * (lengthBytes - 1); shift >= 0; shift -= 8) {
      out.put((byte) (length >>> shift));
    }
  }
}
