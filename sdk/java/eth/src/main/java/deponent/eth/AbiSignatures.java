package deponent.eth;

import deponent.eth.AbiFunction.Mutability;
import java.util.List;
import java.util.stream.Collectors;

/** Human-readable signatures of functions, events, errors and constructors. */
final class AbiSignatures {
  private AbiSignatures() {}

  static AbiFunction function(AbiParser parser) {
    parser.takeWord("function");
    String name = parser.identifier("a function's name");
    List<AbiParameter> inputs = parser.parameters(false);
    List<AbiParameter> outputs = List.of();
    Mutability mutability = Mutability.NONPAYABLE;
    for (String word = parser.word(); !word.isEmpty(); word = parser.word()) {
      switch (word) {
        case "pure" -> mutability = Mutability.PURE;
        case "view", "constant" -> mutability = Mutability.VIEW;
        case "payable" -> mutability = Mutability.PAYABLE;
        case "external", "public", "nonpayable", "virtual", "override" -> {}
        case "returns" -> outputs = parser.parameters(false);
        default -> throw parser.wrong("no word for functions: " + Quote.of(word));
      }
    }
    parser.finish();
    return new AbiFunction(name, inputs, outputs, mutability);
  }

  static AbiEvent event(AbiParser parser) {
    parser.takeWord("event");
    String name = parser.identifier("an event's name");
    List<AbiParameter> inputs = parser.parameters(true);
    boolean anonymous = parser.takeWord("anonymous");
    parser.finish();
    return new AbiEvent(name, inputs, anonymous);
  }

  static AbiError error(AbiParser parser) {
    parser.takeWord("error");
    String name = parser.identifier("an error's name");
    List<AbiParameter> inputs = parser.parameters(false);
    parser.finish();
    return new AbiError(name, inputs);
  }

  static AbiConstructor constructor(AbiParser parser) {
    parser.expectWord("constructor");
    List<AbiParameter> inputs = parser.parameters(false);
    parser.takeWord("public");
    boolean payable = parser.takeWord("payable");
    parser.finish();
    return new AbiConstructor(inputs, payable);
  }

  static String list(List<AbiParameter> parameters) {
    return parameters.stream().map(AbiParameter::toString).collect(Collectors.joining(", "));
  }
}
