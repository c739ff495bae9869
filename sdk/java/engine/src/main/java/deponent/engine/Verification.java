package deponent.engine;

import deponent.eth.Hash;
import deponent.eth.Keccak256;
import deponent.eth.MalformedException;
import deponent.eth.RlpReader;
import java.util.ArrayDeque;
import java.util.BitSet;
import java.util.Deque;

/** The checks of {@link Witness#verify}. Each node is read once, whatever refers to it. */
final class Verification {
  /** A node that a reference leads to, and where it stands. */
  private record Step(int place, int depth, boolean isStorage, boolean mustBeBranch) {}

  private final NodeIndex nodes;
  private final NodeIndex codes;
  private final BitSet reachedNodes = new BitSet();
  private final BitSet reachedCodes = new BitSet();
  private final Deque<Step> steps = new ArrayDeque<>();

  private Verification(NodeIndex nodes, NodeIndex codes) {
    this.nodes = nodes;
    this.codes = codes;
  }

  static void verify(Witness witness, Hash stateRoot) {
    checkHeaders(witness.headers(), stateRoot);
    Verification all = new Verification(witness.index(), new NodeIndex(witness.codes()));
    checkEachOnce(all.nodes);
    checkEachOnce(all.codes);
    all.walk(stateRoot);
    checkReached(all.reachedNodes, witness.nodes(), "is reached by no path from the root");
    checkReached(all.reachedCodes, witness.codes(), "is that of no account that is reached");
  }

  /** Headers by ascending number, each the parent of the next, up to the one with the root. */
  private static void checkHeaders(Items headers, Hash stateRoot) {
    if (headers.isEmpty()) {
      throw new MalformedException("headers: the parent's is missing");
    }
    Links before = null;
    for (int index = 0; index < headers.size(); index++) {
      byte[] rlp = new byte[headers.bytes(index)];
      headers.copyTo(index, rlp);
      Links links = Links.read(rlp, index);
      if (before != null
          && (!links.parentHash.equals(before.hash) || links.number != before.number + 1)) {
        throw wrong(headers, index, "does not follow the one before it");
      }
      before = links;
    }
    if (before == null || !before.stateRoot.equals(stateRoot)) {
      throw wrong(headers, headers.size() - 1, "does not have the state root " + stateRoot);
    }
  }

  /** What of a header chains it to its parent and its state; other fields may be anything. */
  private record Links(Hash hash, Hash parentHash, Hash stateRoot, long number) {
    static Links read(byte[] rlp, int index) {
      try {
        RlpReader outer = new RlpReader(rlp);
        outer.skip();
        outer.finish();
        RlpReader fields = new RlpReader(rlp).list();
        Hash parentHash = fields.hash();
        fields.bytes(); // ommers' hash
        fields.bytes(); // beneficiary
        Hash stateRoot = fields.hash();
        for (int field = 4; field < 8; field++) {
          fields.bytes(); // roots, bloom, difficulty
        }
        return new Links(Keccak256.hash(rlp), parentHash, stateRoot, fields.number());
      } catch (MalformedException no) {
        throw new MalformedException("headers: item " + index + ": " + no.getMessage(), no);
      }
    }
  }

  private static void checkEachOnce(NodeIndex index) {
    if (index.repeated() != NodeIndex.ABSENT) {
      throw wrong(index.items(), index.repeated(), "is there twice");
    }
  }

  private void walk(Hash stateRoot) {
    if (nodes.items().isEmpty() && codes.items().isEmpty()) {
      // A block that reads nothing, as an empty one of Paris.
      return;
    }
    if (!stateRoot.equals(TrieAccount.EMPTY_ROOT) && nodes.find(stateRoot) == NodeIndex.ABSENT) {
      throw new MalformedException("state: the root " + stateRoot + " is missing");
    }
    reach(stateRoot, 0, false, false);
    while (!steps.isEmpty()) {
      Step step = steps.pop();
      try {
        TrieNode node = TrieNode.read(nodes.read(step.place), step.depth);
        if (step.mustBeBranch && !TrieNode.isBranch(node)) {
          throw new MalformedException("no branch, below an extension");
        }
        follow(node, step.depth, step.isStorage);
      } catch (MalformedException no) {
        throw new MalformedException("state: item " + step.place + ": " + no.getMessage(), no);
      }
    }
  }

  /** Goes on to a node, if it is there and was not reached before. Empty tries have none. */
  private void reach(Hash hash, int depth, boolean isStorage, boolean mustBeBranch) {
    int place = hash.equals(TrieAccount.EMPTY_ROOT) ? NodeIndex.ABSENT : nodes.find(hash);
    if (place != NodeIndex.ABSENT && !reachedNodes.get(place)) {
      reachedNodes.set(place);
      steps.push(new Step(place, depth, isStorage, mustBeBranch));
    }
  }

  /** Embedded nodes are in 32 bytes, which bounds how deep this calls itself. */
  private void follow(TrieNode node, int depth, boolean isStorage) {
    switch (node) {
      case TrieNode.Leaf leaf when isStorage -> TrieAccount.checkSlot(leaf.value());
      case TrieNode.Leaf leaf -> {
        TrieAccount account = TrieAccount.read(leaf.value());
        reach(account.storageRoot(), 0, true, false);
        int code = codes.find(account.codeHash());
        if (code != NodeIndex.ABSENT) {
          reachedCodes.set(code);
        }
      }
      case TrieNode.Extension extension ->
          follow(extension.child(), depth + extension.path().length, isStorage, true);
      case TrieNode.Branch branch -> {
        for (TrieNode.Child child : branch.children()) {
          follow(child, depth + 1, isStorage, false);
        }
      }
    }
  }

  private void follow(TrieNode.Child child, int depth, boolean isStorage, boolean mustBeBranch) {
    switch (child) {
      case TrieNode.None none -> {}
      case TrieNode.Hashed hashed -> reach(hashed.hash(), depth, isStorage, mustBeBranch);
      case TrieNode.Embedded embedded -> follow(embedded.node(), depth, isStorage);
    }
  }

  private static void checkReached(BitSet reached, Items items, String otherwise) {
    int first = reached.nextClearBit(0);
    if (first < items.size()) {
      throw wrong(items, first, otherwise);
    }
  }

  private static MalformedException wrong(Items items, int place, String problem) {
    byte[] bytes = new byte[items.bytes(place)];
    items.copyTo(place, bytes);
    Hash hash = Keccak256.hash(bytes);
    return new MalformedException(items.field() + ": item " + place + " (" + hash + ") " + problem);
  }
}
