package deponent.engine;

import deponent.engine.Items.Limits;
import deponent.eth.Address;
import deponent.eth.Bytes;
import deponent.eth.Hash;
import deponent.eth.JsonReader;
import deponent.eth.MalformedException;
import deponent.eth.RlpReader;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/**
 * What a stateless verifier needs to run one block again: nodes of the state before the block,
 * codes, and headers of ancestors, the last of them the parent's.
 *
 * <pre>{@code
 * try (Witness witness = Witness.ofSsz(bytes)) {
 *   witness.verify(parentStateRoot);
 *   for (ByteBuffer node : witness.nodes()) {
 *     prover.add(node);
 *   }
 * }
 * }</pre>
 *
 * <p>A witness is the bytes that it was read from and a table of where its items are, which were
 * checked once. There are at most 2^20 nodes and codes, 256 headers, and 2^20 bytes an item (the
 * bounds of execution-apis #885). Two are equal where their items are.
 */
public final class Witness implements AutoCloseable {
  /** Nodes and codes, and bytes of each: the bounds of execution-apis #885. */
  static final Limits ITEMS = new Limits(1 << 20, 1 << 20);

  /** Headers, the reach of BLOCKHASH, and bytes of each. */
  static final Limits HEADERS = new Limits(256, 1 << 20);

  private final Items nodes;
  private final Items codes;
  private final Items headers;

  /** Gives the memory back that the items are in, once; null where that is the collector's. */
  private final AtomicReference<@Nullable Runnable> release = new AtomicReference<>();

  /** The nodes by their hash, once that was needed. */
  private volatile @Nullable NodeIndex index;

  Witness(Items nodes, Items codes, Items headers) {
    this.nodes = nodes;
    this.codes = codes;
    this.headers = headers;
  }

  /**
   * Of these items, which are copied.
   *
   * @throws IllegalArgumentException if they are too many or too long
   */
  public static Witness of(List<Bytes> nodes, List<Bytes> codes, List<Bytes> headers) {
    try {
      return new Witness(
          copied("state", nodes, ITEMS),
          copied("codes", codes, ITEMS),
          copied("headers", headers, HEADERS));
    } catch (MalformedException limit) {
      throw new IllegalArgumentException(limit.getMessage(), limit);
    }
  }

  private static Items copied(String field, List<Bytes> items, Limits limits) {
    Items.Builder list = new Items.Builder(field, limits, items.size());
    int at = 0;
    for (Bytes item : items) {
      if (item.size() > Integer.MAX_VALUE - 8 - at) {
        throw new MalformedException(field + ": more than 2^31 bytes");
      }
      list.add(at, at + item.size());
      at += item.size();
    }
    return list.of(Bytes.concat(items.toArray(Bytes[]::new)).asBuffer());
  }

  /**
   * Reads SSZ: the answer of {@code GET /engine/v1/witnesses/{blockHash}}. The bytes are not copied
   * and must not change.
   *
   * @throws MalformedException if that is no witness
   */
  public static Witness ofSsz(byte[] ssz) {
    return ofSsz(ByteBuffer.wrap(ssz));
  }

  /**
   * Reads what {@code ssz} has left, as {@link #ofSsz(byte[])}; its memory may be outside of the
   * heap, or a file's. Its position stays.
   *
   * @throws MalformedException if that is no witness
   */
  public static Witness ofSsz(ByteBuffer ssz) {
    return ofSsz(Memory.of(ssz));
  }

  static Witness ofSsz(Memory ssz) {
    return WitnessSsz.read(ssz, ITEMS, ITEMS, HEADERS);
  }

  /**
   * Reads RLP: the blob of {@code engine_newPayloadWithWitness}. The bytes are not copied and must
   * not change.
   *
   * @throws MalformedException if that is no witness
   */
  public static Witness ofRlp(byte[] rlp) {
    return ofRlp(ByteBuffer.wrap(rlp));
  }

  /**
   * Reads what {@code rlp} has left, as {@link #ofRlp(byte[])}. Its position stays.
   *
   * @throws MalformedException if that is no witness
   */
  public static Witness ofRlp(ByteBuffer rlp) {
    return WitnessRlp.read(rlp);
  }

  /**
   * Reads JSON: the answer of {@code debug_executionWitness}.
   *
   * @throws MalformedException if that is no witness, or something follows it
   */
  public static Witness ofJson(byte[] json) {
    JsonReader reader = new JsonReader(json);
    Witness witness = ofJson(reader);
    reader.finish();
    return witness;
  }

  /**
   * Reads the value that is next, as {@link #ofJson(byte[])}; items are decoded while they arrive.
   *
   * @throws MalformedException if that is no witness
   */
  public static Witness ofJson(JsonReader json) {
    return WitnessJson.read(json);
  }

  /** RLP of trie nodes of the state before the block, of all tries in one list. */
  public Items nodes() {
    return nodes;
  }

  /** Contract codes of the state before the block. */
  public Items codes() {
    return codes;
  }

  /** RLP of ancestors' headers, by ascending number; the last is the parent's. */
  public Items headers() {
    return headers;
  }

  /** The bytes of all items together, without any encoding. */
  public long contentBytes() {
    return nodes.contentBytes() + codes.contentBytes() + headers.contentBytes();
  }

  /**
   * The encoding in SSZ.
   *
   * @throws IllegalStateException if it is longer than an array may be, or the witness is closed
   */
  public byte[] toSsz() {
    ByteBuffer out = buffer(WitnessSsz.bytes(this)).order(ByteOrder.LITTLE_ENDIAN);
    WitnessSsz.write(this, out);
    return out.array();
  }

  /**
   * The encoding in RLP, with the fourth list, of keys, empty.
   *
   * @throws IllegalStateException if a header is no list of RLP, the encoding is longer than an
   *     array may be, or the witness is closed
   */
  public byte[] toRlp() {
    ByteBuffer out = buffer(WitnessRlp.bytes(this));
    WitnessRlp.write(this, out);
    return out.array();
  }

  /**
   * The encoding in JSON.
   *
   * @throws IllegalStateException if it is longer than an array may be, or the witness is closed
   */
  public byte[] toJson() {
    ByteBuffer out = buffer(WitnessJson.bytes(this));
    WitnessJson.write(this, out);
    return out.array();
  }

  static ByteBuffer buffer(long bytes) {
    if (bytes > Integer.MAX_VALUE - 8) {
      throw new IllegalStateException("an encoding of " + bytes + " bytes fits no array");
    }
    return ByteBuffer.allocate((int) bytes);
  }

  /**
   * Checks all that can be without running the block: headers follow each other, and the last names
   * {@code stateRoot}; each node is well formed and reached from that root, each code is one of a
   * reached account, and none is there twice. Whether a node is missing that the block needs is for
   * {@link #covers}, or for who runs it.
   *
   * <p>Witnesses of other clients can have more than the block needs, and fail here for it: geth's
   * have the codes that the block creates, reth's an empty node.
   *
   * @throws MalformedException if one of that is not so; the message names the item
   * @throws IllegalStateException if the witness is closed
   */
  public void verify(Hash stateRoot) {
    Verification.verify(this, stateRoot);
  }

  /**
   * Whether the witness proves {@code account} and these of its slots: all nodes on their paths
   * from {@code stateRoot} are here, down to the value or to where it is proven that there is none.
   *
   * @param stateRoot the root of the state before the block
   * @throws MalformedException if a node on the way is malformed
   * @throws IllegalStateException if the witness is closed
   */
  public boolean covers(Hash stateRoot, Address account, Hash... slots) {
    return Coverage.covers(index(), stateRoot, account, slots);
  }

  /**
   * The same with its headers by ascending number, each once: geth has the newest first. Headers
   * that do not decode stay as they are.
   */
  Witness sorted() {
    List<long[]> numbers = new ArrayList<>();
    try {
      for (int index = 0; index < headers.size(); index++) {
        byte[] rlp = new byte[headers.bytes(index)];
        headers.copyTo(index, rlp);
        RlpReader header = new RlpReader(rlp).list();
        for (int before = 0; before < 8; before++) {
          header.skip();
        }
        numbers.add(new long[] {header.number(), index});
      }
    } catch (MalformedException undecodable) {
      return this;
    }
    numbers.sort(Comparator.comparingLong(pair -> pair[0]));
    IntStream.Builder order = IntStream.builder();
    for (int place = 0; place < numbers.size(); place++) {
      int index = (int) numbers.get(place)[1];
      if (place == 0 || !headers.get(index).equals(headers.get((int) numbers.get(place - 1)[1]))) {
        order.add(index);
      }
    }
    return new Witness(nodes, codes, headers.ordered(order.build().toArray()));
  }

  NodeIndex index() {
    NodeIndex known = index;
    if (known == null) {
      known = new NodeIndex(nodes);
      index = known;
    }
    return known;
  }

  /** The same, whose memory is given back by {@code action} when it is closed. */
  Witness releasedBy(Runnable action) {
    release.set(action);
    return this;
  }

  /**
   * Gives the memory back: with the module {@code deponent-descriptor} at once, else as soon as no
   * view of it is left. Items are not read after that: it is an {@link IllegalStateException}, of
   * views too where the memory was given back.
   */
  @Override
  public void close() {
    Runnable action = release.getAndSet(null);
    if (action != null) {
      action.run();
    }
    nodes.close();
    codes.close();
    headers.close();
    index = null;
  }

  /** Whether {@code other} is a witness with the same items in the same order. */
  @Override
  public boolean equals(@Nullable Object other) {
    return other instanceof Witness witness
        && nodes.equals(witness.nodes)
        && codes.equals(witness.codes)
        && headers.equals(witness.headers);
  }

  @Override
  public int hashCode() {
    return 31 * (31 * nodes.hashCode() + codes.hashCode()) + headers.hashCode();
  }

  /** How many items there are, and their bytes. */
  @Override
  public String toString() {
    return "Witness[%d nodes, %d codes, %d headers, %d bytes]"
        .formatted(nodes.size(), codes.size(), headers.size(), contentBytes());
  }
}
