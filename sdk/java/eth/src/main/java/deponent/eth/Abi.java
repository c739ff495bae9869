package deponent.eth;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * The ABI of a contract: its functions, events and errors.
 *
 * <pre>{@code
 * Abi abi = Abi.of(
 *     "struct Point { uint256 x; uint256 y; }",
 *     "function move(Point[] path) returns (bool)",
 *     "event Moved(address indexed who, Point to)",
 *     "error TooFar(uint256 distance)");
 * Bytes data = abi.function("move").encode(List.of(List.of(1, 2)));
 * }</pre>
 */
public final class Abi {
  /** What is collected while reading. */
  static final class Parts {
    final List<AbiFunction> functions = new ArrayList<>();
    final List<AbiEvent> events = new ArrayList<>();
    final List<AbiError> errors = new ArrayList<>();
    @Nullable AbiConstructor constructor;
  }

  private final List<AbiFunction> functions;
  private final List<AbiEvent> events;
  private final List<AbiError> errors;
  private final AbiConstructor constructor;

  private Abi(Parts parts) {
    functions = List.copyOf(parts.functions);
    events = List.copyOf(parts.events);
    errors = List.copyOf(parts.errors);
    AbiConstructor given = parts.constructor;
    constructor = given == null ? new AbiConstructor(List.of(), false) : given;
  }

  /**
   * Of a compiler's JSON: the list of entries, or an object with the member {@code abi}.
   *
   * @throws MalformedException if it is no such JSON
   */
  public static Abi ofJson(String json) {
    return ofJson(new JsonReader(json));
  }

  /**
   * Of a compiler's JSON: the list of entries, or an object with the member {@code abi}.
   *
   * @throws MalformedException if it is no such JSON
   */
  public static Abi ofJson(JsonReader json) {
    return new Abi(AbiJson.read(json));
  }

  /**
   * Of human-readable declarations, which begin with {@code function}, {@code event}, {@code
   * error}, {@code constructor} or {@code struct}; {@code fallback()} and {@code receive()} are
   * passed over.
   *
   * @throws IllegalArgumentException if one is no declaration
   */
  public static Abi of(String... declarations) {
    List<String> structs = new ArrayList<>();
    for (String declaration : declarations) {
      if (declaration.strip().startsWith("struct ")) {
        structs.add(declaration);
      }
    }
    Map<String, AbiTuple> known = AbiParser.structs(structs);
    Parts parts = new Parts();
    for (String declaration : declarations) {
      AbiParser parser = new AbiParser(declaration, known);
      switch (new AbiParser(declaration).word()) {
        case "function" -> parts.functions.add(AbiSignatures.function(parser));
        case "event" -> parts.events.add(AbiSignatures.event(parser));
        case "error" -> parts.errors.add(AbiSignatures.error(parser));
        case "constructor" -> parts.constructor = AbiSignatures.constructor(parser);
        case "struct", "fallback", "receive" -> {}
        default ->
            throw new IllegalArgumentException(
                "a declaration begins with function, event, error, constructor or struct: "
                    + Quote.of(declaration));
      }
    }
    return new Abi(parts);
  }

  /** All functions. */
  public List<AbiFunction> functions() {
    return functions;
  }

  /** All events. */
  public List<AbiEvent> events() {
    return events;
  }

  /** All errors, without those that Solidity has in any contract. */
  public List<AbiError> errors() {
    return errors;
  }

  /** The constructor; where none is declared one without parameters. */
  public AbiConstructor constructor() {
    return constructor;
  }

  /**
   * The function of this name or signature.
   *
   * @throws IllegalArgumentException if there is none, or several have the name: then name one by
   *     its signature, such as {@code transfer(address,uint256)}
   */
  public AbiFunction function(String nameOrSignature) {
    return one(functions, "function", nameOrSignature, AbiFunction::name, AbiFunction::signature);
  }

  /**
   * The event of this name or signature.
   *
   * @throws IllegalArgumentException if there is none, or several have the name
   */
  public AbiEvent event(String nameOrSignature) {
    return one(events, "event", nameOrSignature, AbiEvent::name, AbiEvent::signature);
  }

  /**
   * The error of this name or signature.
   *
   * @throws IllegalArgumentException if there is none, or several have the name
   */
  public AbiError error(String nameOrSignature) {
    return one(errors, "error", nameOrSignature, AbiError::name, AbiError::signature);
  }

  private static <T> T one(
      List<T> all,
      String what,
      String wanted,
      Function<T, String> name,
      Function<T, String> signature) {
    Function<T, String> key = wanted.indexOf('(') >= 0 ? signature : name;
    List<T> found = all.stream().filter(one -> key.apply(one).equals(wanted)).toList();
    if (found.size() == 1) {
      return found.get(0);
    }
    List<String> signatures = (found.isEmpty() ? all : found).stream().map(signature).toList();
    throw new IllegalArgumentException(
        found.isEmpty()
            ? "there is no " + what + " " + Quote.of(wanted) + " among " + signatures
            : "several have the name, say which by its signature: " + signatures);
  }

  /** The function that {@code data} calls, by its selector. */
  public Optional<AbiFunction> functionOf(Bytes data) {
    return functions.stream().filter(function -> function.isCalledBy(data)).findFirst();
  }

  /** The error in the data of a revert, one of these or Solidity's own, by its selector. */
  public Optional<AbiError> errorOf(Bytes data) {
    List<AbiError> all = new ArrayList<>(errors);
    all.add(AbiError.REASON);
    all.add(AbiError.PANIC);
    return all.stream().filter(error -> error.isIn(data)).findFirst();
  }

  /** The event of a log, by its first topic and the number of topics; no anonymous one. */
  public Optional<AbiEvent> eventOf(List<Hash> topics) {
    return events.stream().filter(event -> !event.isAnonymous() && event.isIn(topics)).findFirst();
  }
}
