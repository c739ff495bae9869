package deponent.processor;

import deponent.eth.AbiParameter;
import deponent.eth.AbiType;
import deponent.processor.Shape.Kind;
import deponent.processor.Shape.Leaf;
import deponent.processor.Shape.Member;
import deponent.processor.Shape.Sequence;
import deponent.processor.Shape.Struct;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.stream.Collectors;
import javax.lang.model.element.Element;
import javax.lang.model.element.ElementKind;
import javax.lang.model.element.Modifier;
import javax.lang.model.element.RecordComponentElement;
import javax.lang.model.element.TypeElement;
import javax.lang.model.type.DeclaredType;
import javax.lang.model.type.TypeKind;
import javax.lang.model.type.TypeMirror;
import org.jspecify.annotations.Nullable;

/** Compares types of Java with those of the ABI. */
final class JavaTypes {
  /** A type that another processor may write yet. */
  static final class Unknown extends RuntimeException {
    private static final long serialVersionUID = 1;

    Unknown(String type) {
      super(type);
    }
  }

  private JavaTypes() {}

  /**
   * What {@code java} is of {@code abi}.
   *
   * @param place what has the type, such as {@code 'to'}, for messages
   */
  static Shape match(Element at, String place, TypeMirror java, AbiType abi) throws Fault {
    if (java.getKind() == TypeKind.ERROR) {
      throw new Unknown(java.toString());
    }
    return switch (abi.kind()) {
      case ARRAY -> {
        TypeMirror element = argumentOf(java, "java.util.List");
        if (element == null || element.getKind() == TypeKind.WILDCARD) {
          throw other(at, place, java, abi);
        }
        yield new Sequence(abi, match(at, place + "[]", element, abi.element()));
      }
      case TUPLE -> {
        TypeElement type = recordOf(java);
        if (type == null) {
          throw other(at, place, java, abi);
        }
        yield struct(at, type, abi, abi.members());
      }
      default -> {
        Kind kind = kindOf(java, abi);
        if (kind == null) {
          throw other(at, place, java, abi);
        }
        yield new Leaf(abi, kind);
      }
    };
  }

  /** The record of a tuple, of all results, of an event or an error. */
  static Struct struct(Element at, TypeElement type, AbiType abi, List<AbiParameter> members)
      throws Fault {
    List<? extends RecordComponentElement> components = type.getRecordComponents();
    String name = type.getSimpleName().toString();
    if (type.getModifiers().contains(Modifier.PRIVATE) || !type.getTypeParameters().isEmpty()) {
      throw new Fault(at, "the record " + name + " is private or has type parameters");
    }
    if (components.size() != members.size()) {
      throw new Fault(
          at,
          "the record "
              + name
              + " has "
              + count(components.size(), "component")
              + ", where "
              + Names.declared(members)
              + " has "
              + members.size());
    }
    List<Member> found = new ArrayList<>();
    for (int i = 0; i < members.size(); i++) {
      RecordComponentElement component = components.get(i);
      String place = "'" + component.getSimpleName() + "' of " + name;
      checkOrder(at, place, component.getSimpleName().toString(), members, i);
      AbiParameter member = members.get(i);
      Shape shape =
          member.indexed() && !isWord(member.type())
              ? hash(at, place, component.asType(), member.type())
              : match(at, place, component.asType(), member.type());
      found.add(new Member(component.getSimpleName().toString(), shape));
    }
    return new Struct(abi, type.getQualifiedName().toString(), found);
  }

  /** Of an indexed field of which logs have the hash alone. */
  private static Shape hash(Element at, String place, TypeMirror java, AbiType abi) throws Fault {
    if (!named(java, "deponent.eth.Hash")) {
      throw new Fault(
          at,
          place
              + ": of an indexed "
              + abi
              + " logs have the hash alone, so it is Hash in Java, not "
              + simple(java));
    }
    return new Leaf(AbiType.of("bytes32"), Kind.HASH);
  }

  static boolean isWord(AbiType type) {
    return switch (type.kind()) {
      case ARRAY, TUPLE, BYTES, STRING -> false;
      default -> true;
    };
  }

  /** Refuses names of the ABI that stand at other places in Java: they were taken for others. */
  static void checkOrder(
      Element at, String place, String name, List<AbiParameter> members, int index) throws Fault {
    if (bare(members.get(index).name()).equals(name)) {
      return;
    }
    for (int i = 0; i < members.size(); i++) {
      if (i != index && bare(members.get(i).name()).equals(name)) {
        throw new Fault(
            at,
            place
                + " is at place "
                + (index + 1)
                + ", and at place "
                + (i + 1)
                + " of ("
                + Names.declared(members)
                + ")");
      }
    }
  }

  private static String bare(String name) {
    return name.replaceAll("^_+|_+$", "");
  }

  private static @Nullable Kind kindOf(TypeMirror java, AbiType abi) {
    return switch (abi.kind()) {
      case INTEGER -> integerOf(java, abi);
      case DECIMAL -> named(java, "java.math.BigDecimal") ? Kind.DECIMAL : null;
      case BOOLEAN -> is(java, TypeKind.BOOLEAN, "java.lang.Boolean") ? Kind.BOOL : null;
      case ADDRESS -> named(java, "deponent.eth.Address") ? Kind.ADDRESS : null;
      case STRING -> named(java, "java.lang.String") ? Kind.TEXT : null;
      case BYTES -> named(java, "deponent.eth.Bytes") ? Kind.BYTES : null;
      case FIXED_BYTES -> {
        if (abi.length() == 32 && named(java, "deponent.eth.Hash")) {
          yield Kind.HASH;
        }
        yield named(java, "deponent.eth.Bytes") ? Kind.FIXED_BYTES : null;
      }
      default -> null;
    };
  }

  private static @Nullable Kind integerOf(TypeMirror java, AbiType abi) {
    if (named(java, "java.math.BigInteger")) {
      return Kind.BIG;
    }
    if (!abi.isSigned() && named(java, "deponent.eth.Wei")) {
      return Kind.WEI;
    }
    if (abi.bits() <= 64 && is(java, TypeKind.LONG, "java.lang.Long")) {
      return Kind.LONG;
    }
    return abi.bits() <= 32 && is(java, TypeKind.INT, "java.lang.Integer") ? Kind.INT : null;
  }

  private static boolean is(TypeMirror java, TypeKind primitive, String boxed) {
    return java.getKind() == primitive || named(java, boxed);
  }

  private static Fault other(Element at, String place, TypeMirror java, AbiType abi) {
    return new Fault(
        at, place + ": " + abi + " is " + taken(abi) + " in Java, not " + simple(java));
  }

  private static String taken(AbiType abi) {
    return switch (abi.kind()) {
      case INTEGER ->
          "BigInteger"
              + (abi.isSigned() ? "" : ", Wei")
              + (abi.bits() <= 64 ? ", long" : "")
              + (abi.bits() <= 32 ? ", int" : "");
      case DECIMAL -> "BigDecimal";
      case BOOLEAN -> "boolean";
      case ADDRESS -> "Address";
      case STRING -> "String";
      case BYTES -> "Bytes";
      case FIXED_BYTES -> abi.length() == 32 ? "Hash, Bytes" : "Bytes";
      case ARRAY -> "a List";
      case TUPLE -> "a record of " + count(abi.members().size(), "component");
    };
  }

  static String count(int number, String what) {
    return number + " " + what + (number == 1 ? "" : "s");
  }

  /** Without the packages. */
  static String simple(TypeMirror java) {
    if (java instanceof DeclaredType declared) {
      String name = declared.asElement().getSimpleName().toString();
      List<? extends TypeMirror> arguments = declared.getTypeArguments();
      return arguments.isEmpty()
          ? name
          : name
              + arguments.stream()
                  .map(JavaTypes::simple)
                  .collect(Collectors.joining(", ", "<", ">"));
    }
    return java.getKind().isPrimitive()
        ? java.getKind().name().toLowerCase(Locale.ROOT)
        : java.toString();
  }

  static boolean named(TypeMirror java, String name) {
    return java instanceof DeclaredType declared
        && ((TypeElement) declared.asElement()).getQualifiedName().contentEquals(name);
  }

  /** The argument of a type with one, or null. */
  static @Nullable TypeMirror argumentOf(TypeMirror java, String name) {
    boolean one = named(java, name) && ((DeclaredType) java).getTypeArguments().size() == 1;
    return one ? ((DeclaredType) java).getTypeArguments().get(0) : null;
  }

  static @Nullable TypeElement recordOf(TypeMirror java) {
    boolean is =
        java instanceof DeclaredType declared
            && declared.asElement().getKind() == ElementKind.RECORD;
    return is ? (TypeElement) ((DeclaredType) java).asElement() : null;
  }
}
