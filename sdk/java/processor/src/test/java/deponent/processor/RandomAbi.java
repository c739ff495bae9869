package deponent.processor;

import deponent.eth.AbiType;
import deponent.eth.Address;
import deponent.eth.Bytes;
import deponent.eth.Hash;
import java.lang.reflect.ParameterizedType;
import java.lang.reflect.RecordComponent;
import java.lang.reflect.Type;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;

/** Functions and values by chance, and what values of the dynamic codec are in generated code. */
final class RandomAbi {
  private static final List<String> WORDS =
      List.of(
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
          "uint24",
          "int32",
          "uint32",
          "uint56",
          "int64",
          "uint64",
          "int128",
          "uint256",
          "int256",
          "fixed128x18",
          "ufixed16x2");

  private final Random random;

  RandomAbi(Random random) {
    this.random = random;
  }

  /** A function of a JSON ABI that returns what it takes. */
  String function(String name) {
    List<String> parameters = new ArrayList<>();
    for (int i = random.nextInt(4); i >= 0; i--) {
      parameters.add(parameter(random.nextInt(5) == 0 ? "" : "_p" + i, 3));
    }
    String list = "[" + String.join(",", parameters) + "]";
    return "{\"type\":\"function\",\"name\":\"%s\",\"stateMutability\":\"view\",\"inputs\":%s,"
            .formatted(name, list)
        + "\"outputs\":"
        + list
        + "}";
  }

  private String parameter(String name, int depth) {
    String brackets = "";
    while (depth > 0 && random.nextInt(3) == 0) {
      brackets += random.nextBoolean() ? "[]" : "[" + random.nextInt(4) + "]";
      depth--;
    }
    if (depth == 0 || random.nextInt(3) > 0) {
      String word = WORDS.get(random.nextInt(WORDS.size()));
      return "{\"name\":\"" + name + "\",\"type\":\"" + word + brackets + "\"}";
    }
    List<String> members = new ArrayList<>();
    for (int i = random.nextInt(4); i >= 0; i--) {
      members.add(parameter(random.nextInt(5) == 0 ? "" : "m" + i, depth - 1));
    }
    String type =
        random.nextBoolean() ? ",\"internalType\":\"struct Lib.Struct" + brackets + "\"" : "";
    return "{\"name\":\"%s\",\"type\":\"tuple%s\"%s,\"components\":[%s]}"
        .formatted(name, brackets, type, String.join(",", members));
  }

  /** A value of the dynamic codec. */
  Object value(AbiType type) {
    return switch (type.kind()) {
      case ARRAY -> {
        List<Object> values = new ArrayList<>();
        int count = type.length() < 0 ? random.nextInt(4) : type.length();
        for (int i = 0; i < count; i++) {
          values.add(value(type.element()));
        }
        yield values;
      }
      case TUPLE -> type.members().stream().map(member -> value(member.type())).toList();
      case INTEGER -> integer(type);
      case DECIMAL -> new BigDecimal(integer(type), type.decimals());
      case BOOLEAN -> random.nextBoolean();
      case ADDRESS -> Address.of(bytes(20));
      case STRING ->
          List.of("", "a", "\u00e4\u20ac\ud83d\ude00", "y".repeat(33)).get(random.nextInt(4));
      case BYTES -> Bytes.of(bytes(random.nextInt(70)));
      case FIXED_BYTES -> Bytes.of(bytes(type.length()));
    };
  }

  private BigInteger integer(AbiType type) {
    int bits = type.isSigned() ? type.bits() - 1 : type.bits();
    BigInteger number = new BigInteger(random.nextInt(bits + 1), random);
    return type.isSigned() && random.nextBoolean() ? number.not() : number;
  }

  private byte[] bytes(int count) {
    byte[] bytes = new byte[count];
    random.nextBytes(bytes);
    return bytes;
  }

  /** A value of the dynamic codec as generated code has it. */
  static Object java(Object value, Type type) throws ReflectiveOperationException {
    if (type instanceof ParameterizedType list) {
      List<Object> values = new ArrayList<>();
      for (Object each : (List<?>) value) {
        values.add(java(each, list.getActualTypeArguments()[0]));
      }
      return values;
    }
    Class<?> wanted = (Class<?>) type;
    if (wanted.isRecord()) {
      return record((List<?>) value, wanted);
    }
    if (wanted == int.class || wanted == Integer.class) {
      return ((BigInteger) value).intValueExact();
    }
    if (wanted == long.class || wanted == Long.class) {
      return ((BigInteger) value).longValueExact();
    }
    return wanted == Hash.class ? Hash.of(((Bytes) value).toBytes()) : value;
  }

  /** A record with these values. */
  static Object record(List<?> values, Class<?> type) throws ReflectiveOperationException {
    RecordComponent[] components = type.getRecordComponents();
    Class<?>[] types = new Class<?>[components.length];
    Object[] java = new Object[components.length];
    for (int i = 0; i < components.length; i++) {
      types[i] = components[i].getType();
      java[i] = java(values.get(i), components[i].getGenericType());
    }
    return type.getDeclaredConstructor(types).newInstance(java);
  }
}
