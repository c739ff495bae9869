package deponent.processor;

import deponent.eth.AbiParameter;
import deponent.eth.AbiType;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import javax.lang.model.SourceVersion;

/** Names of Java for those of the ABI. */
final class Names {
  /** Types that generated code names without their package, and those of java.lang near to it. */
  static final Set<String> TYPES =
      Set.of(
          "Abi",
          "AbiConstructor",
          "AbiError",
          "AbiEvent",
          "AbiFunction",
          "AbiReader",
          "AbiWriter",
          "Account",
          "Address",
          "BigDecimal",
          "BlockId",
          "BigInteger",
          "Boolean",
          "Bytes",
          "Call",
          "Client",
          "CompletableFuture",
          "BoundContract",
          "ContractError",
          "ContractEvent",
          "Hash",
          "Integer",
          "List",
          "Long",
          "Object",
          "Override",
          "PendingTransaction",
          "Receipt",
          "Record",
          "Request",
          "String",
          "Void",
          "Wei");

  /** Methods without parameters that each object has, and those of generated code. */
  private static final Set<String> METHODS =
      Set.of(
          "address",
          "clone",
          "equals",
          "finalize",
          "getClass",
          "hashCode",
          "initCode",
          "notify",
          "notifyAll",
          "toString",
          "wait");

  private final Set<String> taken;

  Names(Set<String> taken) {
    this.taken = new HashSet<>(taken);
  }

  /** The first of {@code wanted} that is free, or the last with a number; it is taken then. */
  String free(String... wanted) {
    for (String name : wanted) {
      if (taken.add(name)) {
        return name;
      }
    }
    String last = wanted[wanted.length - 1];
    for (int i = 2; ; i++) {
      if (taken.add(last + i)) {
        return last + i;
      }
    }
  }

  /** Of a parameter or a component, the {@code index}th. */
  static String ofValue(String name, int index) {
    String bare = name.replaceAll("^_+|_+$", "");
    if (!isIdentifier(bare)) {
      return "value" + (index + 1);
    }
    boolean inner =
        bare.matches("(in|out|each)[0-9]*") || Set.of("java", "deponent").contains(bare);
    return inner || METHODS.contains(bare) || isWord(bare) ? bare + "_" : bare;
  }

  static String ofMethod(String name) {
    return METHODS.contains(name) || isWord(name) ? name + "_" : name;
  }

  /** Whether Solidity takes it for a name. Others are not written into code. */
  static boolean isIdentifier(String name) {
    return name.matches("[A-Za-z_$][A-Za-z0-9_$]*");
  }

  private static boolean isWord(String name) {
    return SourceVersion.isKeyword(name) || name.equals("record") || name.equals("yield");
  }

  /** With a capital letter in front. */
  static String ofType(String name) {
    String type = name.substring(0, 1).toUpperCase(Locale.ROOT) + name.substring(1);
    return isWord(type) ? type + "_" : type;
  }

  /** Such as {@code OWNERSHIP_TRANSFERRED}. */
  static String ofConstant(String type) {
    return type.replaceAll("([a-z0-9])([A-Z])", "$1_$2").toUpperCase(Locale.ROOT);
  }

  /** Such as {@code set_uint256_addressArray}. */
  static String withTypes(String name, List<AbiParameter> inputs) {
    StringBuilder longer = new StringBuilder(name);
    for (AbiParameter input : inputs) {
      longer.append('_').append(word(input.type()));
    }
    return longer.toString();
  }

  private static String word(AbiType type) {
    return switch (type.kind()) {
      case ARRAY -> word(type.element()) + "Array" + (type.length() < 0 ? "" : type.length());
      case TUPLE -> withTypes("tuple", type.members());
      default -> type.toString();
    };
  }

  /** The parameters with the names of all members, which a signature's parser reads. */
  static String declared(List<AbiParameter> parameters) {
    StringBuilder list = new StringBuilder();
    for (AbiParameter parameter : parameters) {
      list.append(list.isEmpty() ? "" : ", ").append(declared(parameter.type()));
      list.append(parameter.indexed() ? " indexed" : "");
      if (isIdentifier(parameter.name())) {
        list.append(' ').append(parameter.name());
      }
    }
    return list.toString();
  }

  private static String declared(AbiType type) {
    return switch (type.kind()) {
      case ARRAY ->
          declared(type.element()) + (type.length() < 0 ? "[]" : "[" + type.length() + "]");
      case TUPLE -> "(" + declared(type.members()) + ")";
      default -> type.toString();
    };
  }
}
