package deponent.client;

import deponent.eth.Bytes;
import deponent.eth.Hash;
import deponent.eth.Keccak256;
import deponent.eth.MalformedException;
import deponent.eth.Rlp;
import java.util.List;
import java.util.Optional;

/** A way through a Merkle Patricia trie, from its root to a value or to where it is missing. */
final class TrieProof {
  /** The root of a trie with nothing in it. */
  static final Hash EMPTY_ROOT =
      Hash.of("0x56e81f171bcc55a6ff8345e692c0f86e5b48e01b996cadc001622fb5e363b421");

  private static final int BRANCH = 17;
  private static final int SHORT = 2;

  private final byte[] path;
  private final List<Bytes> nodes;

  /** Nodes that were passed. */
  private int used;

  /** Digits of the path that were passed. */
  private int at;

  private TrieProof(byte[] path, List<Bytes> nodes) {
    this.path = path;
    this.nodes = nodes;
  }

  /**
   * The value of a key, which the trie has by its hash; none where it has none.
   *
   * @throws MalformedException if the nodes do not prove the one or the other
   */
  static Optional<Bytes> value(Hash root, byte[] key, List<Bytes> nodes) {
    byte[] hash = Keccak256.hash(key).toBytes();
    byte[] path = new byte[2 * hash.length];
    for (int i = 0; i < path.length; i++) {
      path[i] = (byte) (i % 2 == 0 ? hash[i / 2] >> 4 & 15 : hash[i / 2] & 15);
    }
    if (root.equals(EMPTY_ROOT) && nodes.isEmpty()) {
      return Optional.empty();
    }
    TrieProof proof = new TrieProof(path, nodes);
    Optional<Bytes> value = proof.from(root);
    if (proof.used != nodes.size()) {
      throw new MalformedException("node " + proof.used + " is not on the way");
    }
    return value;
  }

  private Optional<Bytes> from(Hash root) {
    Rlp node = named(root);
    while (true) {
      if (node instanceof Rlp.Data(Bytes none) && none.isEmpty()) {
        return Optional.empty();
      }
      if (!(node instanceof Rlp.Items(List<Rlp> items))) {
        throw wrong("no list");
      }
      Rlp child;
      if (items.size() == BRANCH) {
        if (at == path.length) {
          throw wrong("a branch behind the end of the key");
        }
        child = items.get(path[at++]);
      } else if (items.size() == SHORT) {
        byte[] digits = data(items.getFirst()).toBytes();
        boolean leaf = isLeaf(digits);
        if (!follows(digits)) {
          return Optional.empty();
        }
        if (leaf) {
          if (at != path.length) {
            throw wrong("a leaf before the end of the key");
          }
          return Optional.of(data(items.getLast()));
        }
        child = items.getLast();
      } else {
        throw wrong(items.size() + " items");
      }
      node = child instanceof Rlp.Data(Bytes hash) && hash.size() == 32 ? named(hash) : child;
    }
  }

  private Rlp named(Bytes hash) {
    return named(Hash.of(hash.toBytes()));
  }

  /** The next node, which has this hash. */
  private Rlp named(Hash hash) {
    if (used == nodes.size()) {
      throw new MalformedException("the node " + hash + " is missing");
    }
    Bytes node = nodes.get(used);
    if (!Keccak256.hash(node).equals(hash)) {
      throw wrong("not the one of hash " + hash);
    }
    used++;
    return Rlp.decode(node.toBytes());
  }

  /** Whether the digits of a short node (hex prefix) are a leaf's. */
  private boolean isLeaf(byte[] digits) {
    int flags = digits.length == 0 ? 4 : digits[0] >> 4 & 15;
    boolean odd = (flags & 1) != 0;
    boolean nothing = digits.length == 1 && !odd && (flags & 2) == 0;
    if (flags > 3 || !odd && (digits[0] & 15) != 0 || nothing) {
      throw wrong("digits that are not encoded so");
    }
    return (flags & 2) != 0;
  }

  /** Goes on by the digits of a short node; false where the key has others. */
  private boolean follows(byte[] digits) {
    int first = (digits[0] & 0x10) != 0 ? 1 : 2;
    for (int i = first; i < 2 * digits.length; i++) {
      int digit = i % 2 == 0 ? digits[i / 2] >> 4 & 15 : digits[i / 2] & 15;
      if (at == path.length || path[at] != digit) {
        return false;
      }
      at++;
    }
    return true;
  }

  private Bytes data(Rlp item) {
    if (item instanceof Rlp.Data(Bytes value)) {
      return value;
    }
    throw wrong("a list in the place of bytes");
  }

  private MalformedException wrong(String what) {
    return new MalformedException("node " + Math.min(used, nodes.size()) + ": " + what);
  }
}
