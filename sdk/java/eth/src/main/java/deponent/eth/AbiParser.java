package deponent.eth;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** Reads types and human-readable signatures, as Solidity and ethers write them. */
final class AbiParser {
  /** Tuples and arrays in each other at most. */
  static final int DEEPEST = 32;

  private static final Set<String> LOCATIONS = Set.of("memory", "calldata", "storage");

  private final String text;
  private final Map<String, AbiTuple> structs;
  private int at;
  private int depth;

  AbiParser(String text) {
    this(text, Map.of());
  }

  AbiParser(String text, Map<String, AbiTuple> structs) {
    this.text = text;
    this.structs = structs;
  }

  /** Structs by name; one may name those of others, in any order. */
  static Map<String, AbiTuple> structs(List<String> declarations) {
    Map<String, AbiTuple> known = new HashMap<>();
    List<String> open = new ArrayList<>(declarations);
    while (!open.isEmpty()) {
      IllegalArgumentException unknown = null;
      List<String> left = new ArrayList<>();
      for (String declaration : open) {
        AbiParser parser = new AbiParser(declaration, known);
        try {
          parser.struct(known);
        } catch (UnknownType type) {
          unknown = type;
          left.add(declaration);
        }
      }
      if (left.size() == open.size() && unknown != null) {
        throw unknown;
      }
      open = left;
    }
    return known;
  }

  private static final class UnknownType extends IllegalArgumentException {
    private static final long serialVersionUID = 1;

    UnknownType(String message) {
      super(message);
    }
  }

  private void struct(Map<String, AbiTuple> known) {
    expectWord("struct");
    String name = identifier("a struct's name");
    expect('{');
    List<AbiParameter> members = new ArrayList<>();
    while (!take('}')) {
      AbiType type = type();
      members.add(new AbiParameter(identifier("a member's name"), type, false));
      expect(';');
    }
    take(';');
    finish();
    if (known.putIfAbsent(name, AbiTuple.of(members)) != null) {
      throw wrong("there are two structs " + name);
    }
  }

  /** A type with its brackets. */
  AbiType type() {
    if (++depth > DEEPEST) {
      throw wrong("tuples and arrays nest deeper than " + DEEPEST);
    }
    AbiType type;
    blanks();
    if (at < text.length() && text.charAt(at) == '(') {
      type = AbiTuple.of(parameters(false));
    } else {
      String word = identifier("a type");
      if (word.equals("tuple")) {
        type = AbiTuple.of(parameters(false));
      } else {
        AbiTuple struct = structs.get(word);
        type = struct != null ? struct : elementary(word);
      }
    }
    depth--;
    return brackets(type);
  }

  /** The arrays of {@code type} that follow. */
  AbiType brackets(AbiType type) {
    int arrays = 0;
    while (take('[')) {
      if (++arrays + depth > DEEPEST) {
        throw wrong("tuples and arrays nest deeper than " + DEEPEST);
      }
      int from = at;
      while (at < text.length() && text.charAt(at) >= '0' && text.charAt(at) <= '9') {
        at++;
      }
      String length = text.substring(from, at);
      expect(']');
      type = length.isEmpty() ? AbiArray.any(type) : AbiArray.fixed(type, number(length));
    }
    return type;
  }

  private AbiType elementary(String word) {
    switch (word) {
      case "address":
        return AbiNumber.address();
      case "bool":
        return AbiNumber.bool();
      case "string":
        return new AbiText();
      case "bytes":
        return AbiBytes.any();
      case "function":
        return AbiBytes.function();
      case "uint", "int":
        return AbiNumber.integer(word.equals("int"), 256);
      case "ufixed", "fixed":
        return AbiNumber.decimal(word.equals("fixed"), 128, 18);
      default:
    }
    if (word.matches("u?int[1-9][0-9]{0,2}")) {
      return AbiNumber.integer(word.startsWith("i"), bits(word.substring(word.indexOf('t') + 1)));
    }
    if (word.matches("bytes[1-9][0-9]?") && number(word.substring(5)) <= 32) {
      return AbiBytes.fixed(number(word.substring(5)));
    }
    if (word.matches("u?fixed[1-9][0-9]{0,2}x[0-9]{1,2}")
        && word.charAt(word.length() - 1) != 'x') {
      String[] parts = word.substring(word.indexOf('d') + 1).split("x");
      if (number(parts[1]) <= 80) {
        return AbiNumber.decimal(word.startsWith("f"), bits(parts[0]), number(parts[1]));
      }
    }
    throw new UnknownType("no type of the ABI: " + Quote.of(word) + " in " + Quote.of(text));
  }

  private int bits(String digits) {
    int bits = number(digits);
    if (bits > 256 || bits % 8 != 0) {
      throw wrong("a number has 8, 16, .. or 256 bits, not " + bits);
    }
    return bits;
  }

  private int number(String digits) {
    if (digits.length() > 9 || digits.length() > 1 && digits.startsWith("0")) {
      throw wrong("a number is too large or begins with 0: " + Quote.of(digits));
    }
    return Integer.parseInt(digits);
  }

  /** Parameters in parentheses. */
  List<AbiParameter> parameters(boolean mayBeIndexed) {
    expect('(');
    List<AbiParameter> parameters = new ArrayList<>();
    if (take(')')) {
      return parameters;
    }
    do {
      AbiType type = type();
      boolean indexed = false;
      String name = "";
      for (String word = word(); !word.isEmpty(); word = word()) {
        if (word.equals("indexed") && mayBeIndexed && name.isEmpty()) {
          indexed = true;
        } else if (name.isEmpty() && !LOCATIONS.contains(word) && !word.equals("payable")) {
          name = word;
        } else if (!name.isEmpty()) {
          throw wrong("a comma is expected before " + Quote.of(word));
        }
      }
      parameters.add(new AbiParameter(name, type, indexed));
    } while (take(','));
    expect(')');
    return parameters;
  }

  /** The next word, or "" where none is next. */
  String word() {
    blanks();
    int from = at;
    while (at < text.length() && isPartOfWord(text.charAt(at))) {
      at++;
    }
    return text.substring(from, at);
  }

  private static boolean isPartOfWord(char one) {
    return one >= 'a' && one <= 'z'
        || one >= 'A' && one <= 'Z'
        || one >= '0' && one <= '9'
        || one == '_'
        || one == '$';
  }

  /** Whether a name is one of Solidity: letters, digits, underscores and dollars of ASCII. */
  static boolean isIdentifier(String name) {
    return !name.isEmpty()
        && !Character.isDigit(name.charAt(0))
        && name.chars().allMatch(one -> isPartOfWord((char) one));
  }

  String identifier(String what) {
    String word = word();
    if (word.isEmpty() || Character.isDigit(word.charAt(0))) {
      throw wrong(what + " is expected");
    }
    return word;
  }

  void expectWord(String wanted) {
    if (!word().equals(wanted)) {
      throw wrong(Quote.of(wanted) + " is expected");
    }
  }

  /** Takes {@code wanted} if it is the next word. */
  boolean takeWord(String wanted) {
    int before = at;
    if (word().equals(wanted)) {
      return true;
    }
    at = before;
    return false;
  }

  private boolean take(char wanted) {
    blanks();
    if (at < text.length() && text.charAt(at) == wanted) {
      at++;
      return true;
    }
    return false;
  }

  private void expect(char wanted) {
    if (!take(wanted)) {
      throw wrong("'" + wanted + "' is expected");
    }
  }

  private void blanks() {
    while (at < text.length() && text.charAt(at) <= ' ') {
      at++;
    }
  }

  /** Checks that nothing but a semicolon is left. */
  void finish() {
    take(';');
    blanks();
    if (at < text.length()) {
      throw wrong("something is left over");
    }
  }

  IllegalArgumentException wrong(String what) {
    return new IllegalArgumentException(what + ", at " + at + " of " + Quote.of(text));
  }
}
