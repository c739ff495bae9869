package deponent.bench;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import deponent.eth.AbiEvent;
import deponent.eth.AbiFunction;
import deponent.eth.AbiType;
import deponent.eth.Address;
import deponent.eth.Bytes;
import deponent.sets.Sets;
import java.math.BigInteger;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.StringJoiner;
import org.junit.jupiter.api.Test;
import org.web3j.abi.EventEncoder;
import org.web3j.abi.FunctionEncoder;
import org.web3j.abi.FunctionReturnDecoder;
import org.web3j.abi.TypeReference;
import org.web3j.abi.datatypes.Function;
import org.web3j.abi.datatypes.Type;

/** The ABI beside web3j, at random. */
@SuppressWarnings({"rawtypes", "unchecked"})
class AbiBesideWeb3jTest {
  private static final String[] WORDS = {
    "address", "bool", "string", "bytes", "function", "bytes1", "bytes4", "bytes31", "bytes32",
    "uint8", "int8", "uint64", "int64", "uint72", "int128", "uint160", "uint256", "int256"
  };

  private static String randomType(Random random, int depth) {
    int kind = depth == 0 ? 0 : random.nextInt(4);
    return switch (kind) {
      case 0 -> WORDS[random.nextInt(WORDS.length)];
      case 1 -> randomType(random, depth - 1) + "[]";
      case 2 -> randomType(random, depth - 1) + "[" + random.nextInt(4) + "]";
      default -> {
        StringJoiner members = new StringJoiner(",", "(", ")");
        for (int i = random.nextInt(4); i >= 0; i--) {
          members.add(randomType(random, depth - 1));
        }
        yield members.toString();
      }
    };
  }

  private static Object random(AbiType type, Random random) {
    return switch (type.kind()) {
      case ADDRESS -> Address.of(bytes(random, 20).toBytes());
      case BOOLEAN -> random.nextBoolean();
      case STRING -> {
        String[] texts = {"", "a", "\u00e4\u20ac\ud83d\ude00", "x".repeat(31), "y".repeat(33)};
        yield texts[random.nextInt(texts.length)];
      }
      case BYTES -> bytes(random, random.nextInt(70));
      case FIXED_BYTES -> bytes(random, type.length());
      case INTEGER -> {
        int bits = type.isSigned() ? type.bits() - 1 : type.bits();
        BigInteger number = new BigInteger(random.nextInt(bits + 1), random);
        yield type.isSigned() && random.nextBoolean() ? number.not() : number;
      }
      case ARRAY -> {
        List<Object> elements = new ArrayList<>();
        for (int i = type.length() < 0 ? random.nextInt(4) : type.length(); i > 0; i--) {
          elements.add(random(type.element(), random));
        }
        yield elements;
      }
      case TUPLE -> type.members().stream().map(member -> random(member.type(), random)).toList();
      case DECIMAL -> throw new AssertionError("web3j has no " + type);
    };
  }

  private static Bytes bytes(Random random, int count) {
    byte[] bytes = new byte[count];
    random.nextBytes(bytes);
    return Bytes.of(bytes);
  }

  private static boolean isArray(AbiType type) {
    return type.kind() == AbiType.Kind.ARRAY;
  }

  private static boolean isTuple(AbiType type) {
    return type.kind() == AbiType.Kind.TUPLE;
  }

  /**
   * Whether web3j encodes it rightly: {@code T[k]} of dynamic T only where T is a tuple, and not
   * inside an array.
   */
  private static boolean web3jEncodes(AbiType type, boolean inArray) {
    if (isArray(type)) {
      AbiType element = type.element();
      boolean wrong = type.length() >= 0 && element.isDynamic() && (inArray || !isTuple(element));
      return !wrong && web3jEncodes(element, true);
    }
    return !isTuple(type)
        || type.members().stream().allMatch(member -> web3jEncodes(member.type(), inArray));
  }

  /**
   * Whether web3j decodes it by a reference that is made of its name: no tuples in arrays, {@code
   * T[k]} of elementary types and not in something else, no {@code T[0]}, and {@code T[][]} at
   * most.
   */
  private static boolean web3jDecodes(AbiType type, boolean inside) {
    if (isArray(type)) {
      AbiType element = type.element();
      if (type.length() >= 0) {
        return !inside && type.length() > 0 && !isArray(element) && !isTuple(element);
      }
      AbiType innermost = isArray(element) && element.length() < 0 ? element.element() : element;
      return !isTuple(innermost) && !isArray(innermost);
    }
    return !isTuple(type)
        || type.members().stream().allMatch(member -> web3jDecodes(member.type(), true));
  }

  @Test
  void valuesAreEncodedAlike() {
    Random random = Sets.random();
    int compared = 0;
    for (int i = 0; i < 6_000; i++) {
      AbiType type = AbiType.of(randomType(random, 3));
      Object value = random(type, random);
      if (web3jEncodes(type, false)) {
        String theirs = FunctionEncoder.encodeConstructor(List.of(Web3jAbi.valueOf(type, value)));
        assertEquals("0x" + theirs, alone(type).encode(List.of(value)).toString(), type.toString());
        compared++;
      }
    }
    System.out.println("encoded alike: " + compared + " of 6000");
  }

  /** As an argument of a function. */
  private static AbiType alone(AbiType type) {
    return AbiType.of("(" + type + ")");
  }

  @Test
  void valuesAreDecodedAlike() throws ClassNotFoundException {
    Random random = Sets.random();
    int compared = 0;
    for (int i = 0; i < 6_000; i++) {
      AbiType type = AbiType.of(randomType(random, 3));
      Object value = random(type, random);
      Bytes encoded = alone(type).encode(List.of(value));
      assertEquals(List.of(value), alone(type).decode(encoded.toBytes()), type.toString());
      if (web3jDecodes(type, false)) {
        List<TypeReference<Type>> reference = List.of(Web3jAbi.referenceOf(type));
        List<Type> theirs = FunctionReturnDecoder.decode(encoded.toString(), reference);
        assertEquals(value, Web3jAbi.ours(type, theirs.get(0)), type.toString());
        compared++;
      }
    }
    System.out.println("decoded alike: " + compared + " of 6000");
  }

  @Test
  void callsAndTopicsAreAlike() {
    Random random = Sets.random();
    for (int i = 0; i < 1_000; i++) {
      StringJoiner names = new StringJoiner(",", "doIt(", ")");
      List<Object> values = new ArrayList<>();
      List<Type> theirs = new ArrayList<>();
      for (int j = random.nextInt(6); j > 0; j--) {
        AbiType type = AbiType.of(elementaryOrArray(random));
        if (web3jEncodes(type, false)) {
          Object value = random(type, random);
          names.add(type.toString());
          values.add(value);
          theirs.add(Web3jAbi.valueOf(type, value));
        }
      }
      AbiFunction function = AbiFunction.of(names.toString());
      String data = FunctionEncoder.encode(new Function("doIt", theirs, List.of()));
      assertEquals(data, function.encodeHex(values.toArray()), names.toString());
      assertEquals(values, function.decodeArguments(Bytes.of(data)));
      AbiEvent event = AbiEvent.of(names.toString());
      String topic = EventEncoder.buildEventSignature(names.toString());
      assertEquals(topic, event.topic().toString());
    }
  }

  /** A type that web3j names rightly. It has no {@code function}. */
  private static String elementaryOrArray(Random random) {
    String word = WORDS[random.nextInt(WORDS.length)].replace("function", "bytes24");
    String[] suffixes = {"", "", "[]", "[3]"};
    return word + suffixes[random.nextInt(suffixes.length)];
  }

  @Test
  void packedValuesAreAlike() {
    Random random = Sets.random();
    for (int i = 0; i < 2_000; i++) {
      List<AbiType> types = new ArrayList<>();
      List<Object> values = new ArrayList<>();
      List<Type> theirs = new ArrayList<>();
      for (int j = random.nextInt(5); j > 0; j--) {
        AbiType type = AbiType.of(elementaryOrArray(random));
        if (!isArray(type) || !type.element().isDynamic()) {
          Object value = random(type, random);
          types.add(type);
          values.add(value);
          theirs.add(Web3jAbi.valueOf(type, value));
        }
      }
      String packed = "0x" + FunctionEncoder.encodeConstructorPacked(theirs);
      assertEquals(packed, AbiType.encodePacked(types, values.toArray()).toString());
    }
  }

  /** Where this fails web3j got better, and {@link #web3jEncodes} may be without an exception. */
  @Test
  void web3jEncodesNoStaticArraysOfBytesAndOfArrays() {
    encodedOtherwise("bytes[2]", List.of(Bytes.of("01"), Bytes.of("02")));
    encodedOtherwise("uint256[][2]", List.of(List.of(BigInteger.ONE), List.of(BigInteger.TWO)));
    encodedOtherwise("string[0]", List.of());
  }

  private static void encodedOtherwise(String name, Object value) {
    AbiType type = AbiType.of(name);
    String theirs = FunctionEncoder.encodeConstructor(List.of(Web3jAbi.valueOf(type, value)));
    assertNotEquals("0x" + theirs, alone(type).encode(List.of(value)).toString(), name);
  }

  /** As {@link #web3jEncodesNoStaticArraysOfBytesAndOfArrays}, of {@link #web3jDecodes}. */
  @Test
  void web3jDecodesNoArraysInStaticArraysAndNoTuplesInArrays() throws ClassNotFoundException {
    BigInteger one = BigInteger.ONE;
    decodedOtherwise("uint256[][][]", List.of(List.of(List.of(one))));
    decodedOtherwise("uint256[][2]", List.of(List.of(one), List.of(one, one)));
    decodedOtherwise("(uint256[2])", List.of(List.of(one, one)));
    decodedOtherwise("uint256[0]", List.of());
    AbiType tuples = AbiType.of("(uint256)[]");
    assertThrows(UnsupportedOperationException.class, () -> Web3jAbi.referenceOf(tuples));
  }

  private static void decodedOtherwise(String name, Object value) throws ClassNotFoundException {
    AbiType type = AbiType.of(name);
    String encoded = alone(type).encode(List.of(value)).toString();
    List<TypeReference<Type>> reference = List.of(Web3jAbi.referenceOf(type));
    Object theirs;
    try {
      theirs = Web3jAbi.ours(type, FunctionReturnDecoder.decode(encoded, reference).get(0));
    } catch (RuntimeException refused) {
      theirs = refused;
    }
    assertNotEquals(value, theirs, name);
  }
}
