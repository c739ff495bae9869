package deponent.processor;

import deponent.eth.Abi;
import deponent.eth.JsonReader;
import deponent.eth.MalformedException;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * A compiler's JSON of a contract: a list of entries, or an artifact of solc, Foundry or Hardhat.
 * Beside the ABI it has the names of structs and the code.
 *
 * @param abi the ABI
 * @param functions what names the ABI lacks, by place among the functions
 * @param events the same of the events
 * @param errors the same of the errors
 * @param constructor the same of the constructor's parameters, where there is one
 * @param code the hex digits of the code that creates the contract, which may have gaps for
 *     libraries
 */
record AbiFile(
    Abi abi,
    List<Entry> functions,
    List<Entry> events,
    List<Entry> errors,
    Optional<List<Named>> constructor,
    Optional<String> code) {
  /** A parameter: Solidity's type, or "", and the members of a tuple. */
  record Named(String solidityType, List<Named> members) {}

  /** The parameters of a function, an event or an error. */
  record Entry(List<Named> inputs, List<Named> outputs) {}

  /** What is collected. */
  private static final class Parts {
    final List<Entry> functions = new ArrayList<>();
    final List<Entry> events = new ArrayList<>();
    final List<Entry> errors = new ArrayList<>();
    @Nullable List<Named> constructor;
    @Nullable String code;
  }

  /**
   * Reads a file's text.
   *
   * @throws MalformedException if it is no such JSON
   */
  static AbiFile of(String text) {
    Abi abi = Abi.ofJson(text);
    Parts parts = new Parts();
    JsonReader json = new JsonReader(text);
    if (json.peek() == JsonReader.Kind.OBJECT) {
      json.beginObject();
      while (json.hasNext()) {
        switch (json.nextName()) {
          case "abi" -> entries(json, parts);
          case "bytecode" -> parts.code = code(json, parts.code);
          case "evm" -> evm(json, parts);
          default -> json.skipValue();
        }
      }
      json.endObject();
    } else {
      entries(json, parts);
    }
    Optional<String> code = Optional.ofNullable(parts.code).filter(digits -> !digits.isEmpty());
    return new AbiFile(
        abi,
        parts.functions,
        parts.events,
        parts.errors,
        Optional.ofNullable(parts.constructor),
        code);
  }

  private static void evm(JsonReader json, Parts parts) {
    json.beginObject();
    while (json.hasNext()) {
      if (json.nextName().equals("bytecode")) {
        parts.code = code(json, parts.code);
      } else {
        json.skipValue();
      }
    }
    json.endObject();
  }

  /** Hex, or an object with the member {@code object}. */
  private static @Nullable String code(JsonReader json, @Nullable String before) {
    if (json.peek() == JsonReader.Kind.STRING) {
      return json.nextString().replaceFirst("^0x", "");
    }
    if (json.peek() != JsonReader.Kind.OBJECT) {
      json.skipValue();
      return before;
    }
    String code = before;
    json.beginObject();
    while (json.hasNext()) {
      if (json.nextName().equals("object") && json.peek() == JsonReader.Kind.STRING) {
        code = json.nextString().replaceFirst("^0x", "");
      } else {
        json.skipValue();
      }
    }
    json.endObject();
    return code;
  }

  private static void entries(JsonReader json, Parts parts) {
    json.beginArray();
    while (json.hasNext()) {
      String type = "function";
      List<Named> inputs = List.of();
      List<Named> outputs = List.of();
      json.beginObject();
      while (json.hasNext()) {
        switch (json.nextName()) {
          case "type" -> type = json.nextString();
          case "inputs" -> inputs = parameters(json);
          case "outputs" -> outputs = parameters(json);
          default -> json.skipValue();
        }
      }
      json.endObject();
      Entry entry = new Entry(inputs, outputs);
      switch (type) {
        case "function" -> parts.functions.add(entry);
        case "event" -> parts.events.add(entry);
        case "error" -> parts.errors.add(entry);
        case "constructor" -> parts.constructor = inputs;
        default -> {}
      }
    }
    json.endArray();
  }

  /** How deep they nest, the ABI was asked before. */
  private static List<Named> parameters(JsonReader json) {
    List<Named> parameters = new ArrayList<>();
    json.beginArray();
    while (json.hasNext()) {
      String type = "";
      List<Named> members = List.of();
      json.beginObject();
      while (json.hasNext()) {
        switch (json.nextName()) {
          case "internalType" -> type = json.nextNull() ? "" : json.nextString();
          case "components" -> members = json.nextNull() ? List.of() : parameters(json);
          default -> json.skipValue();
        }
      }
      json.endObject();
      parameters.add(new Named(type, members));
    }
    json.endArray();
    return parameters;
  }

  /** The name of a struct in Solidity, such as {@code Point} of {@code struct Map.Point[2]}. */
  static Optional<String> structOf(Named parameter) {
    String type = parameter.solidityType().replaceFirst("\\[.*", "");
    if (!type.startsWith("struct ")) {
      return Optional.empty();
    }
    String name = type.substring(type.lastIndexOf(type.indexOf('.') < 0 ? ' ' : '.') + 1);
    return Optional.of(name).filter(Names::isIdentifier);
  }
}
