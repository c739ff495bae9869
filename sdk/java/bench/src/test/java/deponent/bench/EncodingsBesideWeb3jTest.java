package deponent.bench;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;

import deponent.eth.Address;
import deponent.eth.Bytes;
import deponent.eth.Hash;
import deponent.eth.Rlp;
import deponent.eth.TypedData;
import deponent.sets.Sets;
import java.math.BigInteger;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.web3j.crypto.StructuredDataEncoder;
import org.web3j.rlp.RlpDecoder;
import org.web3j.rlp.RlpEncoder;
import org.web3j.rlp.RlpList;
import org.web3j.rlp.RlpString;
import org.web3j.rlp.RlpType;

/** RLP and typed data beside web3j, at random. */
class EncodingsBesideWeb3jTest {
  private final Random random = Sets.random();

  private Bytes bytes(int count) {
    byte[] bytes = new byte[count];
    random.nextBytes(bytes);
    return Bytes.of(bytes);
  }

  private Rlp tree(int depth) {
    if (depth > 0 && random.nextBoolean()) {
      List<Rlp> items = new ArrayList<>();
      for (int i = random.nextInt(6); i > 0; i--) {
        items.add(tree(depth - 1));
      }
      return new Rlp.Items(items);
    }
    int[] sizes = {0, 1, 1, 2, 20, 32, 55, 56, 255, 256, 1_000};
    Bytes data = bytes(sizes[random.nextInt(sizes.length)]);
    return new Rlp.Data(random.nextInt(8) == 0 ? Bytes.of(new byte[1]) : data);
  }

  private static RlpType theirs(Rlp rlp) {
    return switch (rlp) {
      case Rlp.Data(Bytes value) -> RlpString.create(value.toBytes());
      case Rlp.Items(List<Rlp> values) ->
          new RlpList(values.stream().map(EncodingsBesideWeb3jTest::theirs).toList());
    };
  }

  private static Rlp ours(RlpType rlp) {
    return switch (rlp) {
      case RlpString data -> new Rlp.Data(Bytes.of(data.getBytes()));
      case RlpList list ->
          new Rlp.Items(list.getValues().stream().map(EncodingsBesideWeb3jTest::ours).toList());
      default -> throw new AssertionError(rlp);
    };
  }

  @Test
  void rlpIsAlike() {
    for (int i = 0; i < 3_000; i++) {
      Rlp rlp = tree(4);
      byte[] encoded = rlp.encode();
      assertEquals(Bytes.of(RlpEncoder.encode(theirs(rlp))), Bytes.of(encoded));
      assertEquals(rlp, Rlp.decode(encoded));
      assertEquals(rlp, ours(RlpDecoder.decode(encoded).getValues().get(0)));
    }
  }

  private static final String[] WORDS = {
    "address", "bool", "string", "bytes", "bytes1", "bytes32", "uint8", "uint64", "int64",
    "uint256", "int256"
  };

  /** What web3j hashes wrongly in arrays: what is less than a word, and no number. */
  private static final Set<String> WRONG_IN_ARRAYS = Set.of("bool", "bytes1");

  private Object value(String type, Map<String, List<TypedData.Field>> types) {
    if (type.endsWith("[]")) {
      List<Object> elements = new ArrayList<>();
      // web3j finds no dimensions in an empty array.
      for (int i = 1 + random.nextInt(3); i > 0; i--) {
        elements.add(value(type.substring(0, type.length() - 2), types));
      }
      return elements;
    }
    if (types.containsKey(type)) {
      Map<String, Object> members = new LinkedHashMap<>();
      types.get(type).forEach(field -> members.put(field.name(), value(field.type(), types)));
      return members;
    }
    return switch (type) {
      case "address" -> Address.of(bytes(20).toBytes());
      case "bool" -> random.nextBoolean();
      case "string" -> new String[] {"", "a", "\u00e4\u20ac", "x".repeat(40)}[random.nextInt(4)];
      case "bytes" -> bytes(1 + random.nextInt(70));
      case "bytes1" -> bytes(1);
      case "bytes32" -> bytes(32);
      case "int64" -> BigInteger.valueOf(random.nextLong());
      case "int256" -> new BigInteger(255, random).negate();
      default -> new BigInteger(Integer.parseInt(type.substring(4)), random);
    };
  }

  /** Structs, of which each may have members of those behind it. */
  private Map<String, List<TypedData.Field>> structs() {
    List<String> names = List.of("Order", "Person", "Asset");
    Map<String, List<TypedData.Field>> structs = new LinkedHashMap<>();
    for (int i = 0; i < names.size(); i++) {
      List<TypedData.Field> fields = new ArrayList<>();
      for (int j = random.nextInt(5); j >= 0; j--) {
        int other = i + 1 + random.nextInt(3);
        String word = WORDS[random.nextInt(WORDS.length)];
        String type = other < names.size() && random.nextBoolean() ? names.get(other) : word;
        boolean array = random.nextInt(4) == 0 && !WRONG_IN_ARRAYS.contains(type);
        fields.add(new TypedData.Field("m" + j, type + (array ? "[]" : "")));
      }
      structs.put(names.get(i), fields);
    }
    return structs;
  }

  @Test
  @SuppressWarnings("unchecked")
  void typedDataIsHashedAlike() throws Exception {
    for (int i = 0; i < 300; i++) {
      Map<String, List<TypedData.Field>> structs = structs();
      Map<String, Object> domain =
          TypedData.domain(
              "App" + i, "1", random.nextInt(1 << 30), Address.of(bytes(20).toBytes()));
      Map<String, Object> message = (Map<String, Object>) value("Order", structs);
      TypedData ours = TypedData.of(domain, "Order", structs, message);
      byte[] theirs = new StructuredDataEncoder(ours.toJson()).hashStructuredData();
      assertEquals(Hash.of(theirs), ours.hash(), ours.toJson());
      assertEquals(ours.hash(), TypedData.ofJson(ours.toJson()).hash());
    }
  }

  /** Where this fails web3j got better, and {@link #WRONG_IN_ARRAYS} may go. */
  @Test
  void web3jHashesArraysOfShortBytesWrongly() throws Exception {
    Map<String, Object> domain = TypedData.domain("App", "1", 1, Address.ZERO);
    Map<String, List<TypedData.Field>> types = TypedData.types("Order(bytes1[] m)");
    Map<String, Object> message = Map.of("m", List.of(Bytes.of("01")));
    TypedData ours = TypedData.of(domain, "Order", types, message);
    byte[] theirs = new StructuredDataEncoder(ours.toJson()).hashStructuredData();
    assertNotEquals(Hash.of(theirs), ours.hash());
  }
}
