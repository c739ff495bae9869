package deponent.engine;

import deponent.engine.Items.Limits;
import deponent.eth.Bytes;
import deponent.eth.Hex;
import deponent.eth.JsonReader;
import deponent.eth.MalformedException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The answer of {@code debug_executionWitness} (execution-apis #847): three lists of hex. {@code
 * keys} and other members are never written, and ignored when read. Headers as objects, which geth
 * has, are read too.
 */
final class WitnessJson {
  private static final String EMPTY = "{\"state\":[],\"codes\":[],\"headers\":[]}";
  private static final JsonReader.Names NAMES = JsonReader.Names.of("state", "codes", "headers");
  private static final List<Limits> LIMITS = List.of(Witness.ITEMS, Witness.ITEMS, Witness.HEADERS);
  private static final List<String> FIELDS = List.of("state", "codes", "headers");

  /** As much as an array holds. */
  private static final int MOST = Integer.MAX_VALUE - 8;

  private byte[] content = new byte[1 << 12];
  private int filled;

  private WitnessJson() {}

  static Witness read(JsonReader json) {
    WitnessJson reader = new WitnessJson();
    Items.@Nullable Builder[] lists = new Items.Builder[FIELDS.size()];
    json.beginObject();
    while (json.hasNext()) {
      int field = json.nextName(NAMES);
      if (field < 0) {
        json.skipValue();
        continue;
      }
      if (lists[field] != null) {
        throw new MalformedException(FIELDS.get(field) + ": twice");
      }
      lists[field] = reader.list(field, json);
    }
    json.endObject();
    ByteBuffer memory = ByteBuffer.wrap(reader.content, 0, reader.filled);
    return new Witness(items(lists, 0, memory), items(lists, 1, memory), items(lists, 2, memory));
  }

  private static Items items(Items.@Nullable Builder[] lists, int field, ByteBuffer memory) {
    Items.Builder list = lists[field];
    if (list == null) {
      throw new MalformedException(FIELDS.get(field) + ": missing");
    }
    return list.of(memory);
  }

  private Items.Builder list(int field, JsonReader json) {
    Items.Builder items = new Items.Builder(FIELDS.get(field), LIMITS.get(field), 0);
    json.beginArray();
    while (json.hasNext()) {
      Bytes item =
          field == 2 && json.peek() == JsonReader.Kind.OBJECT
              ? HeaderJson.read(json)
              : json.nextBytes();
      items.checkBytes(item.size());
      room(item.size());
      item.copyTo(content, filled);
      items.add(filled, filled + item.size());
      filled += item.size();
    }
    json.endArray();
    return items;
  }

  private void room(int more) {
    long needed = (long) filled + more;
    if (needed > MOST) {
      throw new MalformedException("witness: more than 2^31 bytes");
    }
    if (needed > content.length) {
      long larger = Math.max(needed, content.length + (content.length >> 1));
      content = Arrays.copyOf(content, (int) Math.min(MOST, larger));
    }
  }

  static long bytes(Witness witness) {
    return EMPTY.length()
        + listBytes(witness.nodes())
        + listBytes(witness.codes())
        + listBytes(witness.headers());
  }

  /** Two digits a byte, and of each item quotes, {@code 0x}, and a comma before all but one. */
  private static long listBytes(Items items) {
    return 2 * items.contentBytes() + 5L * items.size() - (items.isEmpty() ? 0 : 1);
  }

  /** Adds the encoding to what {@code out} has; it fits. */
  static void write(Witness witness, ByteBuffer out) {
    put("{\"state\":[", out);
    putItems(witness.nodes(), out);
    put("],\"codes\":[", out);
    putItems(witness.codes(), out);
    put("],\"headers\":[", out);
    putItems(witness.headers(), out);
    put("]}", out);
  }

  private static void putItems(Items items, ByteBuffer out) {
    byte[] bytes = new byte[items.longest()];
    for (int index = 0; index < items.size(); index++) {
      put(index == 0 ? "\"0x" : ",\"0x", out);
      items.copyTo(index, bytes);
      int length = items.bytes(index);
      Hex.encodeTo(bytes, 0, length, out.array(), out.position());
      out.position(out.position() + 2 * length);
      out.put((byte) '"');
    }
  }

  private static void put(String text, ByteBuffer out) {
    out.put(text.getBytes(StandardCharsets.US_ASCII));
  }
}
