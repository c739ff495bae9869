package deponent.eth;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;

/** Values of types: out of the trees of sets, by chance, and encoded in the slow, obvious way. */
final class AbiValuesOf {
  private AbiValuesOf() {}

  /** The members of an array or tuple. */
  static List<AbiType> partsOf(AbiType type, int count) {
    List<AbiType> parts = new ArrayList<>();
    if (type instanceof AbiTuple tuple) {
      tuple.members().forEach(member -> parts.add(member.type()));
    } else {
      String name = type.toString();
      AbiType element = AbiType.of(name.substring(0, name.lastIndexOf('[')));
      for (int i = 0; i < count; i++) {
        parts.add(element);
      }
    }
    return parts;
  }

  /** A value out of the tree of a set, of which some say what they are. */
  static Object ofTree(AbiType type, Object tree) {
    if (tree instanceof Map<?, ?> typed) {
      return ofTree(type, typed.get("value"));
    }
    if (tree instanceof List<?> list && (type instanceof AbiTuple || type instanceof AbiArray)) {
      List<AbiType> parts = partsOf(type, list.size());
      List<Object> values = new ArrayList<>();
      for (int i = 0; i < list.size(); i++) {
        values.add(ofTree(parts.get(i), list.get(i)));
      }
      return values;
    }
    String name = type.toString();
    if (name.equals("address")) {
      return Address.of((String) tree);
    }
    if (name.equals("bool")) {
      return tree instanceof Boolean flag ? flag : !tree.equals("0x00") && !tree.equals("0");
    }
    if (type instanceof AbiText) {
      return tree;
    }
    if (type instanceof AbiBytes) {
      String text = (String) tree;
      boolean hex = text.startsWith("0x");
      return hex ? Bytes.of(text) : Bytes.of(text.getBytes(StandardCharsets.UTF_8));
    }
    if (tree instanceof BigDecimal number) {
      return number.toBigIntegerExact();
    }
    String text = (String) tree;
    if (text.startsWith("0x") || text.startsWith("-0x")) {
      return new BigInteger(text.replaceFirst("0x", ""), 16);
    }
    return new BigInteger(text);
  }

  static AbiType randomType(Random random, int depth) {
    String[] words = {
      "address",
      "bool",
      "string",
      "bytes",
      "function",
      "bytes1",
      "bytes31",
      "bytes32",
      "uint8",
      "int8",
      "uint64",
      "int64",
      "uint72",
      "int128",
      "uint256",
      "int256",
      "fixed128x18",
      "ufixed16x2"
    };
    int kind = depth == 0 ? 0 : random.nextInt(4);
    if (kind == 1) {
      return AbiArray.any(randomType(random, depth - 1));
    }
    if (kind == 2) {
      return AbiArray.fixed(randomType(random, depth - 1), random.nextInt(4));
    }
    if (kind == 3) {
      List<AbiParameter> members = new ArrayList<>();
      for (int i = random.nextInt(5); i > 0; i--) {
        members.add(new AbiParameter("m" + i, randomType(random, depth - 1), false));
      }
      return AbiTuple.of(members);
    }
    return AbiType.of(words[random.nextInt(words.length)]);
  }

  static Object random(AbiType type, Random random) {
    String name = type.toString();
    if (type instanceof AbiTuple || type instanceof AbiArray) {
      int count = random.nextInt(4);
      if (name.matches(".*\\[[0-9]+]")) {
        count = Integer.parseInt(name.substring(name.lastIndexOf('[') + 1, name.length() - 1));
      }
      return partsOf(type, count).stream().map(part -> random(part, random)).toList();
    }
    if (name.equals("address")) {
      return Address.of(bytes(random, 20));
    }
    if (name.equals("bool")) {
      return random.nextBoolean();
    }
    if (name.equals("string")) {
      String[] texts = {"", "a", "\u00e4\u20ac\ud83d\ude00", "x".repeat(31), "y".repeat(33)};
      return texts[random.nextInt(texts.length)];
    }
    if (name.equals("bytes")) {
      return Bytes.of(bytes(random, random.nextInt(70)));
    }
    if (name.equals("function")) {
      return Bytes.of(bytes(random, 24));
    }
    if (name.startsWith("bytes")) {
      return Bytes.of(bytes(random, Integer.parseInt(name.substring(5))));
    }
    String[] sizes = name.replaceFirst("u?(int|fixed)", "").split("x");
    int bits = Integer.parseInt(sizes[0]);
    boolean signed = !name.startsWith("u");
    BigInteger number = new BigInteger(random.nextInt(signed ? bits : bits + 1), random);
    number = signed && random.nextBoolean() ? number.not() : number;
    return sizes.length == 1 ? number : new BigDecimal(number, Integer.parseInt(sizes[1]));
  }

  private static byte[] bytes(Random random, int count) {
    byte[] bytes = new byte[count];
    random.nextBytes(bytes);
    return bytes;
  }

  /** The encoding by the words of the specification: {@code enc(X)}. */
  static Bytes slow(AbiType type, Object value) {
    String name = type.toString();
    if (type instanceof AbiTuple || type instanceof AbiArray) {
      List<?> values = (List<?>) value;
      Bytes parts = slowParts(partsOf(type, values.size()), values);
      return name.endsWith("[]") ? Bytes.concat(word(values.size()), parts) : parts;
    }
    return switch (value) {
      case Address address -> Bytes.concat(zeros(12), Bytes.of(address.toBytes()));
      case Boolean flag -> word(flag ? 1 : 0);
      case BigInteger number -> word(number);
      case BigDecimal number -> word(number.unscaledValue());
      case String text -> slowBytes(Bytes.of(text.getBytes(StandardCharsets.UTF_8)));
      case Bytes bytes when name.equals("bytes") -> slowBytes(bytes);
      case Bytes bytes -> Bytes.concat(bytes, zeros(32 - bytes.size()));
      default -> throw new AssertionError(value);
    };
  }

  private static Bytes slowParts(List<AbiType> types, List<?> values) {
    int headBytes = 0;
    for (AbiType type : types) {
      headBytes += slowIsDynamic(type) ? 32 : staticBytes(type);
    }
    Bytes heads = Bytes.EMPTY;
    Bytes tails = Bytes.EMPTY;
    for (int i = 0; i < types.size(); i++) {
      Bytes encoded = slow(types.get(i), values.get(i));
      if (slowIsDynamic(types.get(i))) {
        heads = Bytes.concat(heads, word(headBytes + tails.size()));
        tails = Bytes.concat(tails, encoded);
      } else {
        heads = Bytes.concat(heads, encoded);
      }
    }
    return Bytes.concat(heads, tails);
  }

  private static boolean slowIsDynamic(AbiType type) {
    String name = type.toString();
    if (name.endsWith("[0]")) {
      return slowIsDynamic(AbiType.of(name.substring(0, name.length() - 3)));
    }
    return name.endsWith("[]")
        || name.equals("bytes")
        || name.equals("string")
        || (type instanceof AbiTuple || type instanceof AbiArray)
            && partsOf(type, 1).stream().anyMatch(AbiValuesOf::slowIsDynamic);
  }

  private static int staticBytes(AbiType type) {
    if (type instanceof AbiTuple) {
      return partsOf(type, 0).stream().mapToInt(AbiValuesOf::staticBytes).sum();
    }
    if (type instanceof AbiArray) {
      String name = type.toString();
      int count = Integer.parseInt(name.substring(name.lastIndexOf('[') + 1, name.length() - 1));
      return count * staticBytes(partsOf(type, 1).get(0));
    }
    return 32;
  }

  private static Bytes slowBytes(Bytes bytes) {
    return Bytes.concat(word(bytes.size()), bytes, zeros((32 - bytes.size() % 32) % 32));
  }

  static Bytes word(long number) {
    return word(BigInteger.valueOf(number));
  }

  static Bytes word(BigInteger number) {
    byte[] bytes = number.toByteArray();
    if (bytes.length > 32) {
      return Bytes.of(bytes, 1, 32);
    }
    byte[] word = new byte[32];
    java.util.Arrays.fill(word, (byte) (number.signum() < 0 ? -1 : 0));
    System.arraycopy(bytes, 0, word, 32 - bytes.length, bytes.length);
    return Bytes.of(word);
  }

  private static Bytes zeros(int count) {
    return Bytes.of(new byte[count]);
  }
}
