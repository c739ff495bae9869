package deponent.eth;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import deponent.sets.Sets;
import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** The published sets of the ABI, of which every case counts. */
class AbiSetsTest {
  private static Object parsed(Object text) {
    return Sets.tree(new JsonReader((String) text));
  }

  private static void check(Map<String, Object> test) {
    String name = (String) test.get("name");
    AbiFunction function = Abi.ofJson((String) test.get("interface")).function("test");
    Object trees = parsed(test.getOrDefault("normalizedValues", test.get("values")));
    List<?> types = (List<?>) parsed(test.get("types"));
    Bytes encoded = Bytes.of((String) test.get("result"));
    List<Object> values = new ArrayList<>();
    for (int i = 0; i < types.size(); i++) {
      AbiType type = AbiType.of((String) types.get(i));
      assertEquals(type, function.outputs().get(i).type(), name);
      values.add(AbiValuesOf.ofTree(type, ((List<?>) trees).get(i)));
    }
    assertEquals(encoded, function.encodeResult(values.toArray()), name);
    assertEquals(values, function.decodeResult(encoded), name);
  }

  @Test
  void valuesAreEncodedAndDecoded() {
    List<Map<String, Object>> set = Sets.ethers("contract-interface");
    Sets.counted(set, 2_045);
    set.forEach(AbiSetsTest::check);
  }

  @Test
  void tuplesAreEncodedAndDecoded() {
    List<Map<String, Object>> set = Sets.ethers("contract-interface-abi2");
    Sets.counted(set, 1_880);
    set.forEach(AbiSetsTest::check);
  }

  @Test
  void selectorsAreThoseOfSolidity() {
    List<Map<String, Object>> set = Sets.ethers("contract-signatures");
    Sets.counted(set, 1_880);
    for (Map<String, Object> test : set) {
      String signature = (String) test.get("signature");
      AbiFunction function = Abi.ofJson((String) test.get("abi")).function("testSig");
      assertEquals(signature, function.signature());
      assertEquals(test.get("sigHash"), function.selector().toString(), signature);
      AbiFunction readable = AbiFunction.of(function.toString());
      assertEquals(function.inputs(), readable.inputs());
      assertEquals(function.outputs(), readable.outputs());
      assertEquals(function.selector(), AbiFunction.of(signature).selector());
    }
  }

  @Test
  void logsAreDecodedInDeclaredOrderAndTheirTopicsFound() {
    List<Map<String, Object>> set = Sets.ethers("contract-events");
    Sets.counted(set, 2_016);
    for (Map<String, Object> test : set) {
      String name = (String) test.get("name");
      AbiEvent event = Abi.ofJson((String) test.get("interface")).event("testEvent");
      List<Hash> topics =
          ((List<?>) test.get("topics")).stream().map(topic -> Hash.of((String) topic)).toList();
      AbiValues decoded = event.decode(topics, Bytes.of((String) test.get("data")));
      List<Object> indexed = new ArrayList<>();
      for (int i = 0; i < decoded.size(); i++) {
        AbiParameter field = event.inputs().get(i);
        boolean hashed = Boolean.TRUE.equals(((List<?>) test.get("hashed")).get(i));
        Object tree = ((List<?>) test.get("normalizedValues")).get(i);
        if (hashed) {
          assertEquals(tree, decoded.hash(i).toString(), name);
          tree = ((List<?>) test.get("values")).get(i);
        }
        Object value = AbiValuesOf.ofTree(field.type(), tree);
        if (!hashed) {
          assertEquals(value, decoded.get(i), name);
        }
        if (field.indexed()) {
          indexed.add(value);
        }
      }
      assertEquals(topics, event.topics(indexed.toArray()), name);
      assertEquals(event.signature(), AbiEvent.of(event.toString()).signature());
    }
  }

  @Test
  void packedValuesHashAsInSolidity() {
    List<Map<String, Object>> set = Sets.ethers("solidity-hashes");
    Sets.counted(set, 2_016);
    for (Map<String, Object> test : set) {
      List<AbiType> types = new ArrayList<>();
      List<Object> values = new ArrayList<>();
      for (Object type : (List<?>) test.get("types")) {
        Object tree = ((List<?>) test.get("values")).get(types.size());
        types.add(AbiType.of((String) type));
        values.add(AbiValuesOf.ofTree(types.get(types.size() - 1), tree));
      }
      Bytes packed = AbiType.encodePacked(types, values.toArray());
      assertEquals(test.get("keccak256"), Keccak256.hash(packed).toString(), test.toString());
    }
  }

  @Test
  void thePublishedTestsOfEthereumAreEncodedAndDecoded() {
    Map<String, Map<String, Object>> set = Sets.fixture("ABITests/basic_abi_tests.json");
    Sets.counted(set.keySet(), 3);
    set.forEach(
        (name, test) -> {
          List<AbiParameter> types = new ArrayList<>();
          List<Object> values = new ArrayList<>();
          for (Object type : (List<?>) test.get("types")) {
            Object tree = ((List<?>) test.get("args")).get(types.size());
            AbiType parsed = AbiType.of((String) type);
            types.add(new AbiParameter("", parsed, false));
            values.add(ofArgument(parsed, tree));
          }
          Bytes encoded = Bytes.of((String) test.get("result"));
          AbiTuple all = AbiTuple.of(types);
          assertEquals(encoded, all.encode(values), name);
          assertEquals(values, all.decode(encoded.toBytes()), name);
        });
  }

  /** Bytes are texts there. */
  private static Object ofArgument(AbiType type, Object tree) {
    if (type instanceof AbiBytes && tree instanceof String text) {
      return Bytes.of(text.getBytes(StandardCharsets.UTF_8));
    }
    assertTrue(tree instanceof String || tree instanceof List || tree instanceof BigDecimal);
    return AbiValuesOf.ofTree(type, tree);
  }
}
