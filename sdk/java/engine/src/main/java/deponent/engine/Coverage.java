package deponent.engine;

import deponent.eth.Address;
import deponent.eth.Bytes;
import deponent.eth.Hash;
import deponent.eth.Keccak256;
import deponent.eth.MalformedException;
import org.jspecify.annotations.Nullable;

/** Paths through the tries of a witness. */
final class Coverage {
  /** How a path ends. */
  private sealed interface End {}

  /** At a value. */
  private record Found(Bytes value) implements End {}

  /** Where it is proven that there is none. */
  private record Absent() implements End {}

  /** At a node that the witness lacks. */
  private record Missing() implements End {}

  private Coverage() {}

  static boolean covers(NodeIndex nodes, Hash stateRoot, Address account, Hash... slots) {
    End end = walk(nodes, stateRoot, Keccak256.hash(account.toBytes()));
    if (!(end instanceof Found found)) {
      return end instanceof Absent;
    }
    Hash storageRoot = TrieAccount.read(found.value).storageRoot();
    for (Hash slot : slots) {
      if (walk(nodes, storageRoot, Keccak256.hash(slot.toBytes())) instanceof Missing) {
        return false;
      }
    }
    return true;
  }

  private static End walk(NodeIndex nodes, Hash root, Hash key) {
    if (root.equals(TrieAccount.EMPTY_ROOT)) {
      return new Absent();
    }
    byte[] path = key.toBytes();
    TrieNode node = read(nodes, root, 0);
    int depth = 0;
    while (node != null) {
      TrieNode.Child next;
      switch (node) {
        case TrieNode.Leaf leaf -> {
          return matches(leaf.path(), path, depth) ? new Found(leaf.value()) : new Absent();
        }
        case TrieNode.Extension extension -> {
          if (!matches(extension.path(), path, depth)) {
            return new Absent();
          }
          depth += extension.path().length;
          next = extension.child();
        }
        case TrieNode.Branch branch -> {
          next = branch.children().get(TrieNode.nibble(path[depth / 2], depth));
          depth++;
        }
      }
      switch (next) {
        case TrieNode.None none -> {
          return new Absent();
        }
        case TrieNode.Hashed hashed -> node = read(nodes, hashed.hash(), depth);
        case TrieNode.Embedded embedded -> node = embedded.node();
      }
    }
    return new Missing();
  }

  private static @Nullable TrieNode read(NodeIndex nodes, Hash hash, int depth) {
    int place = nodes.find(hash);
    if (place == NodeIndex.ABSENT) {
      return null;
    }
    try {
      return TrieNode.read(nodes.read(place), depth);
    } catch (MalformedException no) {
      throw new MalformedException("state: item " + place + ": " + no.getMessage(), no);
    }
  }

  private static boolean matches(byte[] nibbles, byte[] path, int depth) {
    for (int i = 0; i < nibbles.length; i++) {
      if (nibbles[i] != TrieNode.nibble(path[(depth + i) / 2], depth + i)) {
        return false;
      }
    }
    return true;
  }
}
