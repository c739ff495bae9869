package deponent.engine;

import deponent.eth.Bytes;
import deponent.eth.Hash;
import deponent.eth.MalformedException;
import deponent.eth.RlpReader;
import java.util.ArrayList;
import java.util.List;

/**
 * A node of a Merkle-Patricia trie whose keys have 32 bytes, with the nodes that are embedded in
 * it. A node that no trie of a state has is refused.
 */
sealed interface TrieNode {
  /** Nibbles of a key. */
  int KEY_NIBBLES = 64;

  /** Bytes of RLP from which on a node is referred to by its hash. */
  int HASHED_BYTES = 32;

  /** The end of a path. */
  record Leaf(byte[] path, Bytes value) implements TrieNode {}

  /** A piece of a path that all keys below share. */
  record Extension(byte[] path, Child child) implements TrieNode {}

  /** Sixteen ways on. */
  record Branch(List<Child> children) implements TrieNode {}

  /** What a node refers to. */
  sealed interface Child {}

  /** Nothing. */
  record None() implements Child {}

  /** A node of its own. */
  record Hashed(Hash hash) implements Child {}

  /** A node inside of this one. */
  record Embedded(TrieNode node) implements Child {}

  /**
   * Reads a node.
   *
   * @param depth nibbles of the path above it
   */
  static TrieNode read(byte[] rlp, int depth) {
    RlpReader reader = new RlpReader(rlp);
    TrieNode node = read(reader, items(new RlpReader(rlp)), depth);
    reader.finish();
    return node;
  }

  private static int items(RlpReader reader) {
    reader.list();
    int items = 0;
    for (; reader.hasNext(); items++) {
      reader.skip();
    }
    return items;
  }

  private static TrieNode read(RlpReader reader, int items, int depth) {
    return switch (items) {
      case 2 -> withPath(reader.list(), depth);
      case 17 -> branch(reader.list(), depth);
      default -> throw new MalformedException("a list of " + items + " items");
    };
  }

  private static TrieNode withPath(RlpReader reader, int depth) {
    Bytes packed = reader.bytes();
    int flag = packed.isEmpty() ? -1 : packed.at(0) >> 4;
    boolean isOdd = (flag & 1) != 0;
    if (flag < 0 || flag > 3 || !isOdd && (packed.at(0) & 0x0f) != 0) {
      throw new MalformedException("a path that begins with no flag");
    }
    int skipped = isOdd ? 1 : 2;
    byte[] path = new byte[2 * packed.size() - skipped];
    for (int i = 0; i < path.length; i++) {
      path[i] = nibble(packed.at((i + skipped) / 2), i + skipped);
    }
    boolean isLeaf = flag >= 2;
    int end = depth + path.length;
    if (isLeaf ? end != KEY_NIBBLES : path.length == 0 || end >= KEY_NIBBLES) {
      throw new MalformedException("a path that ends after " + end + " nibbles");
    }
    if (isLeaf) {
      Bytes value = reader.bytes();
      reader.end();
      return new Leaf(path, value);
    }
    Child child = child(reader, end);
    reader.end();
    if (child instanceof None || child instanceof Embedded(TrieNode node) && !isBranch(node)) {
      throw new MalformedException("an extension to no branch");
    }
    return new Extension(path, child);
  }

  static boolean isBranch(TrieNode node) {
    return node instanceof Branch;
  }

  private static TrieNode branch(RlpReader reader, int depth) {
    if (depth >= KEY_NIBBLES) {
      throw new MalformedException("a branch behind the end of keys");
    }
    List<Child> children = new ArrayList<>(16);
    int there = 0;
    for (int i = 0; i < 16; i++) {
      Child child = child(reader, depth + 1);
      there += child instanceof None ? 0 : 1;
      children.add(child);
    }
    if (!reader.bytes().isEmpty()) {
      throw new MalformedException("a branch with a value");
    }
    reader.end();
    if (there < 2) {
      throw new MalformedException("a branch with " + there + " children");
    }
    return new Branch(children);
  }

  private static Child child(RlpReader reader, int depth) {
    if (reader.nextIsList()) {
      Bytes rlp = reader.encoded();
      if (rlp.size() >= HASHED_BYTES) {
        throw new MalformedException("an embedded node of " + rlp.size() + " bytes");
      }
      return new Embedded(read(rlp.toBytes(), depth));
    }
    Bytes reference = reader.bytes();
    if (reference.isEmpty()) {
      return new None();
    }
    if (reference.size() != Hash.SIZE) {
      throw new MalformedException("a reference of " + reference.size() + " bytes");
    }
    return new Hashed(Hash.of(reference.toBytes()));
  }

  /** The nibble at {@code index} of a key, in the byte that holds it. */
  static byte nibble(byte pair, int index) {
    return (byte) (index % 2 == 0 ? pair >> 4 & 0x0f : pair & 0x0f);
  }
}
