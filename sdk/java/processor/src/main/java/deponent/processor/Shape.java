package deponent.processor;

import deponent.eth.AbiParameter;
import deponent.eth.AbiType;
import java.util.List;

/** A type of the ABI together with the type of Java that its values have. */
sealed interface Shape {
  /** The type of the ABI. */
  AbiType type();

  /** The type of Java, a primitive one where there is one. */
  String java();

  /** The type of Java as an argument of a type. */
  default String boxed() {
    return java();
  }

  /** What a value of one word, a string or bytes is in Java. */
  enum Kind {
    BIG("BigInteger", "BigInteger"),
    WEI("Wei", "Wei"),
    LONG("long", "Long"),
    INT("int", "Integer"),
    DECIMAL("BigDecimal", "BigDecimal"),
    BOOL("boolean", "Boolean"),
    ADDRESS("Address", "Address"),
    TEXT("String", "String"),
    BYTES("Bytes", "Bytes"),
    FIXED_BYTES("Bytes", "Bytes"),
    HASH("Hash", "Hash");

    final String java;
    final String boxed;

    Kind(String java, String boxed) {
      this.java = java;
      this.boxed = boxed;
    }
  }

  /** A value without parts. */
  record Leaf(AbiType type, Kind kind) implements Shape {
    @Override
    public String java() {
      return kind.java;
    }

    @Override
    public String boxed() {
      return kind.boxed;
    }
  }

  /** An array, which is a list. */
  record Sequence(AbiType type, Shape element) implements Shape {
    @Override
    public String java() {
      return "List<" + element.boxed() + ">";
    }
  }

  /** A tuple, which is a record; also all results of a function, and the fields of an event. */
  record Struct(AbiType type, String java, List<Member> members) implements Shape {}

  /** A component of a record, or a parameter of a method. */
  record Member(String name, Shape shape) {}

  /** Bytes of the value's head: 32 of a dynamic one, else all its bytes. */
  static int headBytes(AbiType type) {
    if (type.isDynamic()) {
      return 32;
    }
    return switch (type.kind()) {
      case ARRAY -> type.length() * headBytes(type.element());
      case TUPLE -> headsBytes(type.members());
      default -> 32;
    };
  }

  /** Bytes of all heads. */
  static int headsBytes(List<AbiParameter> members) {
    return members.stream().mapToInt(member -> headBytes(member.type())).sum();
  }
}
