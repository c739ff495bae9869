package deponent.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import deponent.eth.Bytes;
import deponent.eth.Hash;
import deponent.eth.JsonReader;
import deponent.eth.JsonWriter;
import deponent.eth.MalformedException;
import deponent.eth.Wei;
import deponent.rpc.Request;
import deponent.sets.Sets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.BiConsumer;
import org.junit.jupiter.api.Test;

/** The requests and answers of execution-apis' tests. */
class ExecutionApisTest {
  /** A request and its answer. */
  private record Exchange(String file, String method, List<?> params, Map<?, ?> answer) {}

  private static List<Exchange> exchanges() {
    List<Exchange> all = new ArrayList<>();
    Sets.texts("execution-apis", "tests", ".io")
        .forEach(
            (file, text) -> {
              Map<?, ?> asked = null;
              for (String line : text.lines().toList()) {
                if (line.startsWith(">> ")) {
                  asked = (Map<?, ?>) Sets.tree(new JsonReader(line.substring(3)));
                } else if (line.startsWith("<< ")) {
                  String method = (String) asked.get("method");
                  List<?> params =
                      asked.get("params") == null ? List.of() : (List<?>) asked.get("params");
                  Map<?, ?> answer = (Map<?, ?>) Sets.tree(new JsonReader(line.substring(3)));
                  all.add(new Exchange(file, method, params, answer));
                }
              }
            });
    return all;
  }

  private static void each(BiConsumer<Exchange, Request<?>> check) {
    for (Exchange one : exchanges()) {
      Request<?> ours = Asked.of(one.method(), one.params());
      if (ours != null) {
        check.accept(one, ours);
      }
    }
  }

  private static Object read(Request<?> request, Object result) {
    JsonReader json = new JsonReader(json(result));
    Object value = request.result().read(json);
    json.finish();
    return value;
  }

  /** A tree as JSON. */
  static byte[] json(Object tree) {
    JsonWriter json = new JsonWriter();
    write(tree, json);
    return json.toBytes();
  }

  private static void write(Object tree, JsonWriter json) {
    switch (tree) {
      case null -> json.nullValue();
      case Map<?, ?> map -> {
        json.beginObject();
        map.forEach((name, value) -> write(value, json.name((String) name)));
        json.endObject();
      }
      case List<?> list -> {
        json.beginArray();
        list.forEach(one -> write(one, json));
        json.endArray();
      }
      case String text -> json.value(text);
      case Boolean value -> json.value(value);
      default -> json.raw(tree.toString());
    }
  }

  @Test
  void requestsAreThose() {
    each(
        (one, ours) -> {
          assertEquals(one.method(), ours.method(), one.file());
          assertTrue(ours.isRepeatable(), one.file());
          List<?> params = Asked.params(ours);
          // We name the latest block where they leave it away, and options that are none.
          List<?> theirs = one.params();
          boolean more = params.size() == theirs.size() + 1;
          if (more && ("latest".equals(params.getLast()) || Map.of().equals(params.getLast()))) {
            params = params.subList(0, theirs.size());
          }
          if (one.file().endsWith("get-account-proof-with-storage.io")) {
            // Theirs has no leading zeros.
            assertEquals("0x00", ((List<?>) theirs.get(1)).getFirst());
            assertEquals(List.of("0x" + "00".repeat(32)), params.get(1));
          } else {
            assertEquals(plain(theirs), plain(params), one.file());
          }
        });
  }

  /** With one form where there are several. */
  private static Object plain(Object tree) {
    return switch (tree) {
      case null -> "null";
      case Map<?, ?> map when map.keySet().equals(Set.of("blockHash")) -> map.get("blockHash");
      case Map<?, ?> map -> {
        Map<Object, Object> plain = new HashMap<>();
        map.forEach(
            (name, value) -> {
              boolean none = value == null || value.equals("0x") || value.equals(false);
              if (!none && !List.of().equals(value) && !Map.of().equals(value)) {
                plain.put(name.equals("data") ? "input" : name, plain(value));
              }
            });
        plain.remove("type");
        plain.remove("maxPriorityFeePerGas", "0x0");
        yield plain;
      }
      case List<?> list -> {
        List<Object> plain = new ArrayList<>(list.stream().map(ExecutionApisTest::plain).toList());
        while (!plain.isEmpty() && plain.getLast().equals("null")) {
          plain.removeLast();
        }
        boolean single = plain.size() == 1 && plain.getFirst() instanceof String;
        yield plain.isEmpty() ? "null" : single ? plain.getFirst() : plain;
      }
      case java.math.BigDecimal number -> number.stripTrailingZeros();
      default -> tree.toString().toLowerCase(java.util.Locale.ROOT);
    };
  }

  @Test
  void answersAreReadMemberByMember() {
    Map<String, Integer> counts = new HashMap<>();
    each(
        (one, ours) -> {
          if (one.answer().containsKey("result")) {
            Object result = one.answer().get("result");
            Walk.equal(one.file(), result, read(ours, result));
            counts.merge(one.method(), 1, Integer::sum);
          }
        });
    System.out.println(new TreeMap<>(counts));
  }

  @Test
  void blocksAndTransactionsHaveTheirHashes() {
    int[] counts = new int[2];
    each(
        (one, ours) -> {
          if (!one.answer().containsKey("result")) {
            return;
          }
          Object value = read(ours, one.answer().get("result"));
          for (BlockHeader header : Walk.within(value, BlockHeader.class)) {
            counts[0]++;
            assertEquals(header.hash(), header.computeHash(), one.file());
          }
          for (ChainTransaction transaction : Walk.within(value, ChainTransaction.class)) {
            counts[1]++;
            assertEquals(transaction.hash(), transaction.signed().orElseThrow().hash(), one.file());
          }
        });
    System.out.println(counts[0] + " headers and " + counts[1] + " transactions");
  }

  @Test
  void allMethodsAreKnown() {
    TreeSet<String> unknown = new TreeSet<>();
    for (Exchange one : exchanges()) {
      if (one.answer().containsKey("result") && Asked.of(one.method(), one.params()) == null) {
        unknown.add(one.file());
      }
    }
    if (!exchanges().isEmpty()) {
      // A nonce of 2^64-1 is not ours.
      String overflow = "tests/eth_simulateV1/ethSimulate-overflow-nonce.io";
      unknown.removeIf(file -> file.contains("/testing_"));
      assertEquals(Set.of(overflow), unknown);
    }
  }

  @Test
  void proofsHoldInOneStateAndNoOther() {
    Set<Hash> roots = new HashSet<>();
    List<Proof> proofs = new ArrayList<>();
    each(
        (one, ours) -> {
          if (one.answer().containsKey("result")) {
            Object value = read(ours, one.answer().get("result"));
            Walk.within(value, BlockHeader.class).forEach(header -> roots.add(header.stateRoot()));
            proofs.addAll(Walk.within(value, Proof.class));
          }
        });
    Random random = Sets.random();
    for (Proof proof : proofs) {
      assertEquals(1, roots.stream().filter(root -> faultOf(proof, root) == null).count());
      Hash root = roots.stream().filter(one -> faultOf(proof, one) == null).findAny().orElseThrow();
      List<Bytes> nodes = proof.accountProof();
      for (int i = 0; i < 200; i++) {
        byte[] changed = nodes.get(random.nextInt(nodes.size())).toBytes();
        int place = nodes.indexOf(Bytes.of(changed));
        changed[random.nextInt(changed.length)] ^= (byte) (1 + random.nextInt(255));
        List<Bytes> others = new ArrayList<>(nodes);
        others.set(place, Bytes.of(changed));
        assertNotNull(faultOf(with(proof, proof.balance(), others), root));
      }
      Wei more = proof.balance().plus(Wei.of(1));
      assertEquals("balance is another in the trie", faultOf(with(proof, more, nodes), root));
      List<Bytes> less = nodes.subList(0, nodes.size() - 1);
      assertTrue(faultOf(with(proof, proof.balance(), less), root).endsWith("is missing"));
      List<Bytes> twice = new ArrayList<>(nodes);
      twice.add(nodes.getFirst());
      assertTrue(faultOf(with(proof, proof.balance(), twice), root).endsWith("not on the way"));
    }
  }

  private static Proof with(Proof proof, Wei balance, List<Bytes> nodes) {
    return new Proof(
        proof.address(),
        balance,
        proof.nonce(),
        proof.codeHash(),
        proof.storageHash(),
        nodes,
        proof.storageProof());
  }

  private static String faultOf(Proof proof, Hash root) {
    try {
      proof.verify(root);
      return null;
    } catch (MalformedException fault) {
      return fault.getMessage();
    }
  }
}
