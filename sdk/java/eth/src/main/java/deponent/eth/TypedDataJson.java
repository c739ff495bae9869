package deponent.eth;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** Typed data as JSON, whose values are what their types say. */
final class TypedDataJson {
  private TypedDataJson() {}

  static TypedData read(JsonReader json) {
    String primaryType = null;
    Map<String, List<TypedData.Field>> types = null;
    Object domain = null;
    Object message = null;
    json.beginObject();
    while (json.hasNext()) {
      switch (json.nextName()) {
        case "types" -> types = types(json);
        case "primaryType" -> primaryType = json.nextString();
        case "domain" -> domain = tree(json);
        case "message" -> message = tree(json);
        default -> json.skipValue();
      }
    }
    json.endObject();
    json.finish();
    if (types == null || primaryType == null) {
      throw new MalformedException("typed data has types and primaryType");
    }
    return of(types, primaryType, domain, message);
  }

  /** Of trees of maps, lists, texts, numbers and booleans. */
  static TypedData of(
      Map<String, List<TypedData.Field>> types,
      String primaryType,
      @Nullable Object domain,
      @Nullable Object message) {
    if (!(domain instanceof Map<?, ?> domainTree) || !(message instanceof Map<?, ?> messageTree)) {
      throw new MalformedException("typed data has the objects domain and message");
    }
    try {
      Map<String, List<TypedData.Field>> domainTypes =
          TypedData.types(
              "EIP712Domain(string name,string version,uint256 chainId,address verifyingContract,"
                  + "bytes32 salt)");
      Map<String, List<TypedData.Field>> given = new LinkedHashMap<>(domainTypes);
      given.putAll(types);
      Map<String, Object> domainValues = struct(given, "EIP712Domain", domainTree, 0);
      Map<String, Object> values = struct(given, primaryType, messageTree, 0);
      return TypedData.of(domainValues, primaryType, types, values);
    } catch (IllegalArgumentException no) {
      throw new MalformedException("typed data: " + no.getMessage(), no);
    }
  }

  private static Map<String, List<TypedData.Field>> types(JsonReader json) {
    Map<String, List<TypedData.Field>> types = new LinkedHashMap<>();
    json.beginObject();
    while (json.hasNext()) {
      String struct = json.nextName();
      List<TypedData.Field> fields = new ArrayList<>();
      json.beginArray();
      while (json.hasNext()) {
        String name = "";
        String type = "";
        json.beginObject();
        while (json.hasNext()) {
          switch (json.nextName()) {
            case "name" -> name = json.nextString();
            case "type" -> type = json.nextString();
            default -> json.skipValue();
          }
        }
        json.endObject();
        fields.add(new TypedData.Field(name, type));
      }
      json.endArray();
      types.put(struct, fields);
    }
    json.endObject();
    return types;
  }

  private static @Nullable Object tree(JsonReader json) {
    switch (json.peek()) {
      case OBJECT -> {
        Map<String, @Nullable Object> members = new LinkedHashMap<>();
        json.beginObject();
        while (json.hasNext()) {
          String name = json.nextName();
          members.put(name, tree(json));
        }
        json.endObject();
        return members;
      }
      case ARRAY -> {
        List<@Nullable Object> elements = new ArrayList<>();
        json.beginArray();
        while (json.hasNext()) {
          elements.add(tree(json));
        }
        json.endArray();
        return elements;
      }
      case STRING -> {
        return json.nextString();
      }
      case NUMBER -> {
        return new BigDecimal(json.nextJson());
      }
      case BOOLEAN -> {
        return json.nextBoolean();
      }
      default -> {
        json.nextNull();
        return null;
      }
    }
  }

  private static Map<String, Object> struct(
      Map<String, List<TypedData.Field>> types, String struct, Map<?, ?> tree, int depth) {
    List<TypedData.Field> fields = types.get(struct);
    if (fields == null) {
      throw new IllegalArgumentException("there is no type " + Quote.of(struct));
    }
    Map<String, Object> values = new LinkedHashMap<>();
    for (TypedData.Field field : fields) {
      Object value = tree.get(field.name());
      if (value != null) {
        values.put(field.name(), value(types, field.type(), value, depth + 1));
      }
    }
    return values;
  }

  private static Object value(
      Map<String, List<TypedData.Field>> types, String type, Object tree, int depth) {
    if (depth > 1_024) {
      throw new IllegalArgumentException("structs and arrays nest too deep");
    }
    if (type.endsWith("]") && tree instanceof List<?> list) {
      String element = type.substring(0, Math.max(0, type.lastIndexOf('[')));
      List<@Nullable Object> values = new ArrayList<>();
      for (Object one : list) {
        values.add(one == null ? null : value(types, element, one, depth + 1));
      }
      return values;
    }
    if (types.containsKey(type) && tree instanceof Map<?, ?> members) {
      return struct(types, type, members, depth + 1);
    }
    if (types.containsKey(type) || type.endsWith("]")) {
      throw new IllegalArgumentException("no value of " + Quote.of(type) + ": " + shown(tree));
    }
    return atom(AbiType.of(type), tree);
  }

  private static Object atom(AbiType type, Object tree) {
    switch (type.kind()) {
      case INTEGER -> {
        return integer(tree);
      }
      case BOOLEAN -> {
        if (tree instanceof Boolean) {
          return tree;
        }
      }
      case ADDRESS -> {
        if (tree instanceof String text) {
          return Address.of(text);
        }
      }
      case STRING -> {
        if (tree instanceof String) {
          return tree;
        }
      }
      case BYTES, FIXED_BYTES -> {
        if (tree instanceof String text && text.startsWith("0x")) {
          return Bytes.of(text);
        }
      }
      default -> {}
    }
    throw new IllegalArgumentException("no value of " + type + ": " + shown(tree));
  }

  private static BigInteger integer(Object tree) {
    if (tree instanceof BigDecimal number && number.scale() <= 0 && number.scale() > -80) {
      return number.toBigIntegerExact();
    }
    if (tree instanceof String text && text.matches("-?[0-9]{1,80}")) {
      return new BigInteger(text);
    }
    if (tree instanceof String text && text.matches("0x[0-9a-fA-F]{1,64}")) {
      return new BigInteger(text.substring(2), 16);
    }
    throw new IllegalArgumentException("no whole number: " + shown(tree));
  }

  private static String shown(Object tree) {
    return Quote.of(tree.toString());
  }

  static String write(TypedData data) {
    JsonWriter json = new JsonWriter();
    json.beginObject().name("types").beginObject();
    data.types()
        .forEach(
            (struct, fields) -> {
              json.name(struct).beginArray();
              for (TypedData.Field field : fields) {
                json.beginObject().name("name").value(field.name());
                json.name("type").value(field.type()).endObject();
              }
              json.endArray();
            });
    json.endObject().name("primaryType").value(data.primaryType());
    json.name("domain");
    write(data.types(), "EIP712Domain", data.domain(), json);
    json.name("message");
    write(data.types(), data.primaryType(), data.message(), json);
    json.endObject();
    return new String(json.toBytes(), java.nio.charset.StandardCharsets.UTF_8);
  }

  private static void write(
      Map<String, List<TypedData.Field>> types,
      String type,
      @Nullable Object value,
      JsonWriter json) {
    List<TypedData.Field> fields = types.get(type);
    switch (value) {
      case null -> json.nullValue();
      case Object struct when fields != null -> {
        json.beginObject();
        for (int i = 0; i < fields.size(); i++) {
          TypedData.Field field = fields.get(i);
          boolean map = struct instanceof Map<?, ?>;
          Object member = map ? ((Map<?, ?>) struct).get(field.name()) : ((List<?>) struct).get(i);
          json.name(field.name());
          write(types, field.type(), member, json);
        }
        json.endObject();
      }
      case List<?> list -> {
        json.beginArray();
        for (Object element : list) {
          write(types, type.substring(0, type.lastIndexOf('[')), element, json);
        }
        json.endArray();
      }
      case Boolean flag -> json.value(flag);
      case byte[] bytes -> json.hex(bytes);
      case Address address -> json.value(address.toString());
      default -> json.value(value.toString());
    }
  }
}
