package deponent.eth;

import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;

/**
 * Structured data that is signed (EIP-712).
 *
 * <pre>{@code
 * TypedData mail =
 *     TypedData.of(
 *         TypedData.domain("App", "1", 1, verifier),
 *         "Mail",
 *         TypedData.types("Mail(Person from,string text)", "Person(string name,address wallet)"),
 *         Map.of("from", Map.of("name", "Ann", "wallet", ann), "text", "Hello"));
 * Hash signed = mail.hash();
 * }</pre>
 *
 * <p>Values are those of {@link AbiType}, structs are maps of names, or lists in the order of the
 * fields. A struct that is {@code null} or left out has a hash of zero, as wallets do it.
 */
public final class TypedData {
  /** The name that the domain's struct has. */
  private static final String DOMAIN = "EIP712Domain";

  /** Structs and arrays in each other at most. */
  private static final int DEEPEST = 64;

  private static final Bytes PREFIX = Bytes.of("0x1901");

  /**
   * A field of a struct.
   *
   * @param name its name
   * @param type its type, which may be a struct's name, with brackets of arrays
   */
  public record Field(String name, String type) {}

  private final String primaryType;
  private final Map<String, List<Field>> types;
  private final Map<String, List<Member>> structs = new LinkedHashMap<>();
  private final Map<String, Hash> typeHashes = new LinkedHashMap<>();
  private final Map<String, ?> domain;
  private final Map<String, ?> message;

  /** A field whose type was looked up: elements of an array, a struct, or a type of the ABI. */
  private record Member(String name, Type type) {}

  private sealed interface Type {
    record Atom(AbiType type) implements Type {}

    record Struct(String name) implements Type {}

    record Array(Type element, int length) implements Type {}
  }

  TypedData(
      Map<String, ?> domain,
      String primaryType,
      Map<String, List<Field>> types,
      Map<String, ?> message) {
    this.domain = Collections.unmodifiableMap(new LinkedHashMap<>(domain));
    this.primaryType = primaryType;
    this.types = Collections.unmodifiableMap(types);
    this.message = Collections.unmodifiableMap(new LinkedHashMap<>(message));
    if (!types.containsKey(primaryType)) {
      throw new IllegalArgumentException("there is no type " + Quote.of(primaryType));
    }
    types.forEach(
        (name, fields) -> {
          List<Member> members = new ArrayList<>();
          for (Field field : fields) {
            members.add(new Member(field.name(), typeOf(field.type())));
          }
          structs.put(name, members);
        });
    for (String name : types.keySet()) {
      byte[] text = typeText(name).getBytes(StandardCharsets.UTF_8);
      typeHashes.put(name, Keccak256.hash(text));
    }
  }

  /**
   * With all parts.
   *
   * @throws IllegalArgumentException if a type is not known, or a value does not fit its type
   */
  public static TypedData of(
      Map<String, ?> domain,
      String primaryType,
      Map<String, List<Field>> types,
      Map<String, ?> message) {
    Map<String, List<Field>> all = new LinkedHashMap<>(types);
    all.putIfAbsent(DOMAIN, domainFields(domain));
    TypedData data = new TypedData(domain, primaryType, all, message);
    data.hash();
    return data;
  }

  /**
   * Of the JSON that {@code eth_signTypedData_v4} takes.
   *
   * @throws MalformedException if it is no such JSON, a type is not known, or a value does not fit
   */
  public static TypedData ofJson(String json) {
    return TypedDataJson.read(new JsonReader(json));
  }

  /** A domain with the usual members. */
  public static Map<String, Object> domain(
      String name, String version, long chainId, Address verifyingContract) {
    Map<String, Object> domain = new LinkedHashMap<>();
    domain.put("name", name);
    domain.put("version", version);
    domain.put("chainId", chainId);
    domain.put("verifyingContract", verifyingContract);
    return domain;
  }

  /**
   * Structs of their texts, such as {@code Person(string name,address wallet)}.
   *
   * @throws IllegalArgumentException if one is no such text
   */
  public static Map<String, List<Field>> types(String... structs) {
    Map<String, List<Field>> types = new LinkedHashMap<>();
    for (String struct : structs) {
      if (!struct.matches("\\s*[A-Za-z_$][\\w$]*\\s*\\(.*\\)\\s*")) {
        throw new IllegalArgumentException("no struct: " + Quote.of(struct));
      }
      int open = struct.indexOf('(');
      List<Field> fields = new ArrayList<>();
      String inside = struct.substring(open + 1, struct.lastIndexOf(')'));
      for (String field : inside.isBlank() ? new String[0] : inside.split(",", -1)) {
        String[] parts = field.strip().split("\\s+");
        if (parts.length != 2) {
          throw new IllegalArgumentException("no type and name: " + Quote.of(field));
        }
        fields.add(new Field(parts[1], parts[0]));
      }
      types.put(struct.substring(0, open).strip(), fields);
    }
    return types;
  }

  private static List<Field> domainFields(Map<String, ?> domain) {
    List<Field> known =
        List.of(
            new Field("name", "string"),
            new Field("version", "string"),
            new Field("chainId", "uint256"),
            new Field("verifyingContract", "address"),
            new Field("salt", "bytes32"));
    List<Field> present = known.stream().filter(field -> domain.get(field.name()) != null).toList();
    for (String name : domain.keySet()) {
      if (known.stream().noneMatch(field -> field.name().equals(name))) {
        throw new IllegalArgumentException("a domain has no member " + Quote.of(name));
      }
    }
    return present;
  }

  private Type typeOf(String text) {
    if (text.endsWith("]")) {
      int open = text.lastIndexOf('[');
      String length = open < 0 ? "x" : text.substring(open + 1, text.length() - 1);
      if (!length.matches("[0-9]{0,9}") || text.length() > 200) {
        throw new IllegalArgumentException("no type: " + Quote.of(text));
      }
      int count = length.isEmpty() ? -1 : Integer.parseInt(length);
      return new Type.Array(typeOf(text.substring(0, open)), count);
    }
    if (types.containsKey(text)) {
      return new Type.Struct(text);
    }
    AbiType type = AbiType.of(text);
    if (type.kind() == AbiType.Kind.TUPLE) {
      throw new IllegalArgumentException("no type: " + Quote.of(text));
    }
    return new Type.Atom(type);
  }

  /** The type of the message. */
  public String primaryType() {
    return primaryType;
  }

  /** All structs, that of the domain among them. */
  public Map<String, List<Field>> types() {
    return types;
  }

  /** The members of the domain. */
  public Map<String, ?> domain() {
    return domain;
  }

  /** The message. */
  public Map<String, ?> message() {
    return message;
  }

  /** The hash that is signed. */
  public Hash hash() {
    byte[] preimage = new byte[PREFIX.size() + 2 * Hash.SIZE];
    PREFIX.copyTo(preimage, 0);
    domainSeparator().copyTo(preimage, PREFIX.size());
    messageHash().copyTo(preimage, PREFIX.size() + Hash.SIZE);
    return Keccak256.hash(preimage);
  }

  /** The hash of the domain. */
  public Hash domainSeparator() {
    return hashOf(DOMAIN, domain, "domain");
  }

  /** The hash of the message. */
  public Hash messageHash() {
    return hashOf(primaryType, message, "message");
  }

  private Hash hashOf(String struct, Object value, String what) {
    try {
      return Keccak256.hash(encode(struct, value, 0));
    } catch (Misfit misfit) {
      throw misfit.in(what);
    }
  }

  /** The message's encoding, of which its hash is made. */
  Bytes encoded() {
    return Bytes.of(encode(primaryType, message, 0));
  }

  /**
   * The text of a struct, which is hashed with its values: its fields, and behind it the structs
   * that it names, sorted.
   *
   * @throws IllegalArgumentException if there is no such struct
   */
  public String typeText(String struct) {
    if (!types.containsKey(struct)) {
      throw new IllegalArgumentException("there is no type " + Quote.of(struct));
    }
    TreeSet<String> named = new TreeSet<>();
    List<String> open = new ArrayList<>(List.of(struct));
    while (!open.isEmpty()) {
      String next = open.remove(open.size() - 1);
      if (named.add(next)) {
        for (Member member : structs.get(next)) {
          Type type = member.type();
          while (type instanceof Type.Array array) {
            type = array.element();
          }
          if (type instanceof Type.Struct other) {
            open.add(other.name());
          }
        }
      }
    }
    named.remove(struct);
    StringBuilder text = new StringBuilder();
    append(struct, text);
    named.forEach(name -> append(name, text));
    return text.toString();
  }

  private void append(String struct, StringBuilder text) {
    text.append(struct).append('(');
    String comma = "";
    for (Field field : types.get(struct)) {
      text.append(comma).append(canonical(field.type())).append(' ').append(field.name());
      comma = ",";
    }
    text.append(')');
  }

  /** A type as it is hashed: {@code uint} is {@code uint256}. */
  private static String canonical(String type) {
    int bracket = type.indexOf('[');
    String base = bracket < 0 ? type : type.substring(0, bracket);
    return (base.equals("uint") || base.equals("int") ? base + "256" : base)
        + (bracket < 0 ? "" : type.substring(bracket));
  }

  private byte[] encode(String struct, Object value, int depth) {
    if (depth > DEEPEST) {
      throw new Misfit("structs and arrays nest deeper than " + DEEPEST);
    }
    List<Member> members = structs.get(struct);
    boolean fits = value instanceof List<?> list && list.size() == members.size();
    if (!fits && !(value instanceof Map<?, ?>)) {
      throw new Misfit(
          value.getClass().getSimpleName() + " is no value of " + struct + ": a Map is taken");
    }
    byte[] encoded = new byte[Hash.SIZE * (1 + members.size())];
    typeHashes.get(struct).copyTo(encoded, 0);
    for (int i = 0; i < members.size(); i++) {
      Member member = members.get(i);
      try {
        put(member.type(), valueOf(member, value, i), encoded, Hash.SIZE * (1 + i), depth + 1);
      } catch (Misfit misfit) {
        throw misfit.in("." + member.name());
      }
    }
    return encoded;
  }

  private static @Nullable Object valueOf(Member member, Object struct, int index) {
    return struct instanceof Map<?, ?> map ? map.get(member.name()) : ((List<?>) struct).get(index);
  }

  private void put(Type type, @Nullable Object value, byte[] out, int at, int depth) {
    if (value == null) {
      if (!(type instanceof Type.Struct)) {
        throw new Misfit("there is no value");
      }
      return;
    }
    switch (type) {
      case Type.Struct(String name) -> Keccak256.hash(encode(name, value, depth)).copyTo(out, at);
      case Type.Array array -> hashOf(array, value, depth).copyTo(out, at);
      case Type.Atom(AbiType atom) -> put(atom, value, out, at);
    }
  }

  private static void put(AbiType type, Object value, byte[] out, int at) {
    if (!type.isDynamic()) {
      type.put(value, out, at);
      return;
    }
    byte[] encoded = new byte[type.measured(value)];
    type.put(value, encoded, 0);
    int length = Words.getInt(encoded, 28);
    Keccak256.hash(encoded, 32, length).copyTo(out, at);
  }

  private Hash hashOf(Type.Array array, Object value, int depth) {
    if (!(value instanceof List<?> elements)) {
      throw new Misfit(value.getClass().getSimpleName() + " is no array: a List is taken");
    }
    if (array.length() >= 0 && array.length() != elements.size()) {
      throw new Misfit(elements.size() + " elements, not " + array.length());
    }
    if (depth > DEEPEST) {
      throw new Misfit("structs and arrays nest deeper than " + DEEPEST);
    }
    byte[] encoded = new byte[Math.multiplyExact(Hash.SIZE, elements.size())];
    for (int i = 0; i < elements.size(); i++) {
      try {
        put(array.element(), elements.get(i), encoded, Hash.SIZE * i, depth + 1);
      } catch (Misfit misfit) {
        throw misfit.in("[" + i + "]");
      }
    }
    return Keccak256.hash(encoded);
  }

  /** The JSON that {@code eth_signTypedData_v4} takes; integers are decimal texts. */
  public String toJson() {
    return TypedDataJson.write(this);
  }

  /** The chain's id in the domain, or none. */
  public @Nullable BigInteger chainId() {
    Object chainId = domain.get("chainId");
    return chainId == null ? null : new BigInteger(chainId.toString());
  }
}
