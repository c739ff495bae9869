package deponent.eth;

import deponent.eth.AbiFunction.Mutability;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** Reads the JSON that compilers write for a contract. */
final class AbiJson {
  private final Abi.Parts parts = new Abi.Parts();

  /** The list of entries, or the object of a compiler's artifact with the member {@code abi}. */
  static Abi.Parts read(JsonReader json) {
    AbiJson reader = new AbiJson();
    if (json.peek() == JsonReader.Kind.OBJECT) {
      boolean found = false;
      json.beginObject();
      while (json.hasNext()) {
        if (json.nextName().equals("abi")) {
          found = true;
          reader.entries(json);
        } else {
          json.skipValue();
        }
      }
      json.endObject();
      if (!found) {
        throw new MalformedException("a contract's JSON without the member abi");
      }
    } else {
      reader.entries(json);
    }
    json.finish();
    return reader.parts;
  }

  private void entries(JsonReader json) {
    json.beginArray();
    while (json.hasNext()) {
      Entry entry = new Entry();
      entry.read(json);
      entry.addTo(parts);
    }
    json.endArray();
  }

  /** The members of an entry. */
  private static final class Entry {
    private String type = "function";
    private String name = "";
    private @Nullable String mutability;
    private boolean constant;
    private boolean payable;
    private boolean anonymous;
    private List<AbiParameter> inputs = List.of();
    private List<AbiParameter> outputs = List.of();

    void read(JsonReader json) {
      json.beginObject();
      while (json.hasNext()) {
        switch (json.nextName()) {
          case "type" -> type = json.nextString();
          case "name" -> name = json.nextString();
          case "stateMutability" -> mutability = json.nextString();
          case "constant" -> constant = json.nextBoolean();
          case "payable" -> payable = json.nextBoolean();
          case "anonymous" -> anonymous = json.nextBoolean();
          case "inputs" -> inputs = parameters(json, 0);
          case "outputs" -> outputs = parameters(json, 0);
          default -> json.skipValue();
        }
      }
      json.endObject();
    }

    void addTo(Abi.Parts parts) {
      if (type.equals("function") || type.equals("event") || type.equals("error")) {
        checkName();
      }
      try {
        addIts(parts);
      } catch (IllegalArgumentException no) {
        throw new MalformedException(type + " " + Quote.of(name) + ": " + no.getMessage(), no);
      }
    }

    /** A name of another form would make another signature, and another source of Java. */
    private void checkName() {
      if (!AbiParser.isIdentifier(name)) {
        String what = name.isEmpty() ? "without a name" : "with the name " + Quote.of(name);
        throw new MalformedException("an entry of the type " + type + " " + what);
      }
    }

    private void addIts(Abi.Parts parts) {
      switch (type) {
        case "function" ->
            parts.functions.add(new AbiFunction(name, inputs, outputs, mutability()));
        case "event" -> parts.events.add(new AbiEvent(name, inputs, anonymous));
        case "error" -> parts.errors.add(new AbiError(name, inputs));
        case "constructor" ->
            parts.constructor = new AbiConstructor(inputs, mutability() == Mutability.PAYABLE);
        case "fallback", "receive" -> {}
        default -> throw new MalformedException("an entry of the type " + Quote.of(type));
      }
    }

    private Mutability mutability() {
      if (mutability == null) {
        return payable ? Mutability.PAYABLE : constant ? Mutability.VIEW : Mutability.NONPAYABLE;
      }
      return switch (mutability) {
        case "pure" -> Mutability.PURE;
        case "view" -> Mutability.VIEW;
        case "nonpayable" -> Mutability.NONPAYABLE;
        case "payable" -> Mutability.PAYABLE;
        default -> throw new MalformedException("a stateMutability of " + Quote.of(mutability));
      };
    }
  }

  private static List<AbiParameter> parameters(JsonReader json, int depth) {
    if (depth > AbiParser.DEEPEST) {
      throw new MalformedException("tuples nest deeper than " + AbiParser.DEEPEST);
    }
    List<AbiParameter> parameters = new ArrayList<>();
    json.beginArray();
    while (json.hasNext()) {
      parameters.add(parameter(json, depth));
    }
    json.endArray();
    return parameters;
  }

  private static AbiParameter parameter(JsonReader json, int depth) {
    String name = "";
    String type = "";
    boolean indexed = false;
    List<AbiParameter> components = List.of();
    json.beginObject();
    while (json.hasNext()) {
      switch (json.nextName()) {
        case "name" -> name = json.nextNull() ? "" : json.nextString();
        case "type" -> type = json.nextString();
        case "indexed" -> indexed = !json.nextNull() && json.nextBoolean();
        case "components" -> {
          if (!json.nextNull()) {
            components = parameters(json, depth + 1);
          }
        }
        default -> json.skipValue();
      }
    }
    json.endObject();
    return new AbiParameter(name, typeOf(type, components), indexed);
  }

  private static AbiType typeOf(String type, List<AbiParameter> components) {
    try {
      if (!type.startsWith("tuple")) {
        return AbiType.of(type);
      }
      AbiParser brackets = new AbiParser(type.substring("tuple".length()));
      AbiType found = brackets.brackets(AbiTuple.of(components));
      brackets.finish();
      return found;
    } catch (IllegalArgumentException no) {
      throw new MalformedException("no type of the ABI: " + Quote.of(type), no);
    }
  }
}
