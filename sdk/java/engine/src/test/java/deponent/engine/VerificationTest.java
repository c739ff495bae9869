package deponent.engine;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import deponent.engine.Samples.Placed;
import deponent.engine.Samples.SlowTrie;
import deponent.eth.Address;
import deponent.eth.Bytes;
import deponent.eth.Hash;
import deponent.eth.JsonWriter;
import deponent.eth.Keccak256;
import deponent.eth.MalformedException;
import deponent.eth.RlpReader;
import deponent.eth.RlpWriter;
import deponent.sets.Sets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import org.junit.jupiter.api.Test;

class VerificationTest {
  /** A state at random, whole, with the nodes on each path. */
  private static final class State {
    final Map<Address, SlowTrie> storages = new HashMap<>();
    final Map<Address, List<Hash>> slots = new HashMap<>();
    final Set<Bytes> codes = new HashSet<>();
    final SlowTrie accounts;
    final List<Bytes> nodes;
    final List<Bytes> headers = new ArrayList<>();

    State(Random random, int most) {
      Map<Hash, Bytes> leaves = new HashMap<>();
      for (int left = 1 + random.nextInt(most); left > 0; left--) {
        Address address = Address.of(randomBytes(random, 20));
        Map<Hash, Bytes> values = new HashMap<>();
        List<Hash> keys = new ArrayList<>();
        for (int slot = random.nextInt(4) == 0 ? random.nextInt(40) : 0; slot > 0; slot--) {
          Hash key = Hash.of(randomBytes(random, 32));
          keys.add(key);
          byte[] value = new RlpWriter().add(1 + random.nextInt(1 << 20)).toBytes();
          values.put(Keccak256.hash(key.toBytes()), Bytes.of(value));
        }
        slots.put(address, keys);
        SlowTrie storage = new SlowTrie(values);
        storages.put(address, storage);
        Bytes code = random.nextBoolean() ? Bytes.EMPTY : Bytes.of(randomBytes(random, 50));
        if (!code.isEmpty()) {
          codes.add(code);
        }
        RlpWriter account = new RlpWriter().list().add(random.nextInt(1000)).add(7L);
        account.add(storage.root).add(Keccak256.hash(code)).end();
        leaves.put(Keccak256.hash(address.toBytes()), Bytes.of(account.toBytes()));
      }
      accounts = new SlowTrie(leaves);
      Set<Bytes> all = new HashSet<>();
      accounts.nodes.forEach(node -> all.add(node.rlp()));
      storages.values().forEach(trie -> trie.nodes.forEach(node -> all.add(node.rlp())));
      nodes = all.stream().sorted().toList();
      Hash parent = Hash.of(randomBytes(random, 32));
      for (int left = random.nextInt(3), number = 100; left >= 0; left--, number++) {
        Hash root = left == 0 ? accounts.root : Hash.of(randomBytes(random, 32));
        headers.add(header(parent, root, number));
        parent = Keccak256.hash(headers.getLast());
      }
    }

    Witness witness() {
      return Witness.of(nodes, codes.stream().sorted().toList(), headers);
    }
  }

  private static byte[] randomBytes(Random random, int length) {
    byte[] bytes = new byte[length];
    random.nextBytes(bytes);
    return bytes;
  }

  private static Bytes header(Hash parent, Hash stateRoot, long number) {
    RlpWriter rlp = new RlpWriter().list().add(parent).add(Hash.ZERO).add(Address.ZERO);
    rlp.add(stateRoot).add(Hash.ZERO).add(Hash.ZERO).add(new byte[256]).add(0).add(number);
    return Bytes.of(rlp.add(1).end().toBytes());
  }

  private static void refused(String expected, Witness witness, Hash root) {
    MalformedException refused = assertThrows(MalformedException.class, () -> witness.verify(root));
    assertTrue(refused.getMessage().contains(expected), refused.getMessage());
  }

  private static <T> List<T> with(List<T> items, T more) {
    List<T> all = new ArrayList<>(items);
    all.add(more);
    return all;
  }

  private static <T> List<T> without(List<T> items, T one) {
    List<T> all = new ArrayList<>(items);
    all.remove(one);
    return all;
  }

  @Test
  void aWholeStateVerifiesInAnyOrder() {
    Random random = Sets.random();
    for (int round = 0; round < 60; round++) {
      State state = new State(random, 60);
      state.witness().verify(state.accounts.root);
      List<Bytes> shuffled = new ArrayList<>(state.nodes);
      Collections.shuffle(shuffled, random);
      List<Bytes> codes = state.codes.stream().sorted().toList();
      Witness.of(shuffled, codes, state.headers).verify(state.accounts.root);
      Witness read = Witness.ofSsz(state.witness().toSsz());
      read.verify(state.accounts.root);
      for (Address address : state.slots.keySet()) {
        Hash[] slots = state.slots.get(address).toArray(Hash[]::new);
        assertTrue(read.covers(state.accounts.root, address, slots));
        assertTrue(read.covers(state.accounts.root, address, Hash.ZERO));
      }
      Address absent = Address.of(randomBytes(random, 20));
      assertTrue(read.covers(state.accounts.root, absent, Hash.ZERO));
    }
  }

  @Test
  void whatIsTooMuchIsNamed() {
    Random random = Sets.random();
    for (int round = 0; round < 60; round++) {
      State state = new State(random, 20);
      Hash root = state.accounts.root;
      List<Bytes> nodes = state.nodes;
      List<Bytes> codes = state.codes.stream().sorted().toList();
      Bytes foreign = new State(random, 3).accounts.nodes.getFirst().rlp();
      int at = nodes.size();
      refused("item " + at, Witness.of(with(nodes, foreign), codes, state.headers), root);
      refused("by no path", Witness.of(with(nodes, foreign), codes, state.headers), root);
      refused("twice", Witness.of(with(nodes, nodes.getFirst()), codes, state.headers), root);
      Witness more = Witness.of(nodes, with(codes, Bytes.of("6001")), state.headers);
      refused("codes: item " + codes.size(), more, root);
      Bytes top = Bytes.EMPTY;
      for (Placed node : state.accounts.nodes) {
        top = node.path().isEmpty() ? node.rlp() : top;
      }
      if (nodes.size() > 1 || !codes.isEmpty()) {
        refused("is missing", Witness.of(without(nodes, top), codes, state.headers), root);
      }
    }
  }

  @Test
  void headersAreAChainUpToTheRoot() {
    State state = new State(Sets.random(), 10);
    Hash root = state.accounts.root;
    List<Bytes> nodes = state.nodes;
    List<Bytes> codes = state.codes.stream().sorted().toList();
    refused("parent's is missing", Witness.of(nodes, codes, List.of()), root);
    Witness.of(List.of(), List.of(), state.headers).verify(root); // a block that reads nothing
    refused("does not have the state root", state.witness(), Hash.ZERO);
    Bytes last = state.headers.getLast();
    Hash hash = Keccak256.hash(last);
    for (Bytes next : List.of(header(hash, root, 7), header(Hash.ZERO, root, 101), last)) {
      Witness witness = Witness.of(nodes, codes, with(state.headers, next));
      refused("does not follow", witness, root);
    }
    for (String no : List.of("0x", "0x80", "0xc0", "0xc2a000")) {
      Witness witness = Witness.of(nodes, codes, List.of(Bytes.of(no)));
      refused("headers: item 0", witness, root);
    }
  }

  /** Against the paths that the slow trie knows of each node. */
  @Test
  void coverageIsAllNodesOfThePath() {
    Random random = Sets.random();
    for (int round = 0; round < 200; round++) {
      State state = new State(random, 60);
      Hash root = state.accounts.root;
      Bytes gone = state.nodes.get(random.nextInt(state.nodes.size()));
      Witness witness = Witness.of(without(state.nodes, gone), List.of(), state.headers);
      for (Address address : state.slots.keySet()) {
        boolean account = !isOn(state.accounts, gone, address.toBytes());
        assertEquals(account, witness.covers(root, address));
        for (Hash slot : state.slots.get(address)) {
          boolean both = account && !isOn(state.storages.get(address), gone, slot.toBytes());
          assertEquals(both, witness.covers(root, address, slot));
        }
      }
      Address absent = Address.of(randomBytes(random, 20));
      boolean proven = !isOn(state.accounts, gone, absent.toBytes());
      assertEquals(proven, witness.covers(root, absent, Hash.ZERO));
    }
  }

  private static boolean isOn(SlowTrie trie, Bytes node, byte[] key) {
    String path = Keccak256.hash(key).toString().substring(2);
    return trie.nodes.stream()
        .anyMatch(placed -> placed.rlp().equals(node) && path.startsWith(placed.path()));
  }

  @Test
  void malformedNodesAreNamed() {
    String hash = "a0" + "11".repeat(32);
    String none = "80".repeat(14);
    for (String node :
        List.of(
            "c0",
            "81ff",
            "c3808080",
            "c28080", // no flag
            "c24080", // another flag
            "c20180", // padded with something
            "c22080", // ends too early
            "e200" + hash, // an extension of no nibbles
            "e211" + "80", // an extension to nothing
            "d1" + "80".repeat(17), // no children
            "f83180" + hash + "80".repeat(15), // one child
            "f851" + hash + hash + none + "05", // a value
            "d2" + "8111" + "80".repeat(16))) {
      Bytes root = Bytes.of(node);
      Hash stateRoot = Keccak256.hash(root);
      Bytes header = header(Hash.ZERO, stateRoot, 1);
      Witness witness = Witness.of(List.of(root), List.of(), List.of(header));
      refused("state: item 0: ", witness, stateRoot);
      assertThrows(MalformedException.class, () -> witness.covers(stateRoot, Address.ZERO), node);
    }
  }

  @Test
  void publishedWitnessesVerifyAndAreWrittenAsTheyWere() {
    int verified = 0;
    int refused = 0;
    for (Map.Entry<String, Map<String, Object>> test :
        Sets.fixtures("blockchain_tests_zkevm", ".").entrySet()) {
      for (Map<String, Object> block : Samples.objects(test.getValue().get("blocks"))) {
        Witness witness = Samples.witness(Samples.object(block.get("executionWitness")));
        assertEquals(witness, Witness.ofSsz(witness.toSsz()), test.getKey());
        assertEquals(witness, Witness.ofJson(witness.toJson()), test.getKey());
        if (block == Samples.objects(test.getValue().get("blocks")).getLast()
            && ALTERED.stream().anyMatch(test.getKey()::contains)) {
          boolean isHeader = !test.getKey().contains("malformed");
          refused("", witness, isHeader ? rootAfterParent(witness) : Hash.ZERO);
          refused++;
          continue;
        }
        assertEquals(witness, Witness.ofRlp(witness.toRlp()), test.getKey());
        Hash root = rootAfterParent(witness);
        witness.verify(root);
        verified++;
        for (Map<String, Object> one : Samples.objects(block.get("transactions"))) {
          assertTrue(witness.covers(root, Address.of((String) one.get("sender"))), test.getKey());
        }
      }
    }
    assertTrue(verified == 0 || verified == 193 && refused == 5, verified + ", " + refused);
  }

  /** Tests whose last witness has something that no path leads to, or headers that are no chain. */
  private static final List<String> ALTERED =
      List.of(
          "extra_unused_bytecode",
          "extra_unused_trie_node",
          "malformed_rlp_header",
          "non_contiguous_chain",
          "missing_parent_header");

  private static Hash rootAfterParent(Witness witness) {
    RlpReader header = new RlpReader(Samples.bytes(witness.headers().getLast())).list();
    for (int field = 0; field < 3; field++) {
      header.skip();
    }
    return header.hash();
  }

  /** How many items other tools' witnesses of real blocks have too much: created codes, 0x80. */
  private static final Map<String, Integer> TOO_MUCH =
      Map.of(
          "hoodi-1265656.json", 1,
          "mainnet-21429063.json", 8,
          "mainnet-24341035.json", 1,
          "mainnet-24628607.json", 1,
          "mainnet-24628608.json", 1,
          "mainnet-24647140.json", 3,
          "sepolia-10100112.json", 5);

  @Test
  void realWitnessesVerifyWithoutWhatTheyHaveTooMuch() {
    for (Map.Entry<String, Object> file : Sets.files("blocks").entrySet()) {
      Map<String, Object> lists = Samples.object(Samples.object(file.getValue()).get("witness"));
      JsonWriter json = new JsonWriter();
      Samples.write(lists, json);
      Witness witness = Witness.ofJson(json.toBytes());
      assertEquals(Samples.witness(lists), witness);
      assertEquals(witness, Witness.ofSsz(witness.toSsz()));
      assertEquals(witness, Witness.ofRlp(witness.toRlp()));
      Hash root = rootAfterParent(witness);
      for (int left = TOO_MUCH.getOrDefault(file.getKey(), 0); left > 0; left--) {
        Witness more = witness;
        witness =
            withoutNamed(
                witness,
                assertThrows(MalformedException.class, () -> more.verify(root)).getMessage());
      }
      witness.verify(root);
    }
  }

  /** Without the item that a message of {@link Witness#verify} names. */
  private static Witness withoutNamed(Witness witness, String message) {
    String[] words = message.split(" ");
    int at = Integer.parseInt(words[2]);
    List<Bytes> nodes = copies(witness.nodes());
    List<Bytes> codes = copies(witness.codes());
    (words[0].equals("state:") ? nodes : codes).remove(at);
    return Witness.of(nodes, codes, copies(witness.headers()));
  }

  private static List<Bytes> copies(Items items) {
    List<Bytes> copies = new ArrayList<>();
    items.forEach(item -> copies.add(Samples.bytes(item)));
    return copies;
  }

  /** Nodes that are changed have another hash; the root is then that of the changed one. */
  @Test
  void changedNodesAreRefusedOrProveSomethingElse() {
    Random random = Sets.random();
    for (int round = 0; round < 3_000; round++) {
      State state = new State(random, 3);
      Bytes changed =
          Bytes.of(Samples.changed(random, state.accounts.nodes.getLast().rlp().toBytes()));
      Hash root = Keccak256.hash(changed);
      List<Bytes> nodes = without(state.nodes, state.accounts.nodes.getLast().rlp());
      Witness witness =
          Witness.of(with(nodes, changed), List.of(), List.of(header(Hash.ZERO, root, 1)));
      for (Runnable check :
          List.<Runnable>of(
              () -> witness.verify(root),
              () -> witness.covers(root, state.slots.keySet().iterator().next(), Hash.ZERO))) {
        try {
          check.run();
        } catch (MalformedException refused) {
          assertTrue(refused.getMessage().length() < 1_000);
        }
      }
    }
  }
}
