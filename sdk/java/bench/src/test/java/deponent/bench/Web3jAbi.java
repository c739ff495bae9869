package deponent.bench;

import deponent.eth.AbiParameter;
import deponent.eth.AbiType;
import deponent.eth.Bytes;
import java.math.BigInteger;
import java.util.ArrayList;
import java.util.List;
import org.web3j.abi.TypeReference;
import org.web3j.abi.datatypes.AbiTypes;
import org.web3j.abi.datatypes.Address;
import org.web3j.abi.datatypes.Array;
import org.web3j.abi.datatypes.Bool;
import org.web3j.abi.datatypes.DynamicArray;
import org.web3j.abi.datatypes.DynamicBytes;
import org.web3j.abi.datatypes.DynamicStruct;
import org.web3j.abi.datatypes.StaticStruct;
import org.web3j.abi.datatypes.Type;
import org.web3j.abi.datatypes.Utf8String;

/** Types and values of ours as those of web3j, and back. */
@SuppressWarnings({"rawtypes", "unchecked"})
final class Web3jAbi {
  private Web3jAbi() {}

  /** A value as web3j has it. */
  static Type valueOf(AbiType type, Object value) {
    return switch (type.kind()) {
      case ADDRESS -> new Address(value.toString());
      case BOOLEAN -> new Bool((Boolean) value);
      case STRING -> new Utf8String((String) value);
      case BYTES -> new DynamicBytes(((Bytes) value).toBytes());
      case FIXED_BYTES -> made(classOf(type), byte[].class, ((Bytes) value).toBytes());
      case INTEGER -> made(classOf(type), BigInteger.class, value);
      case ARRAY -> array(type, (List<?>) value);
      case TUPLE -> tuple(type, (List<?>) value);
      case DECIMAL -> throw new AssertionError("web3j has no " + type);
    };
  }

  private static Type array(AbiType type, List<?> values) {
    List<Type> elements = new ArrayList<>();
    values.forEach(value -> elements.add(valueOf(type.element(), value)));
    Class element = classOf(type.element());
    if (type.length() < 0) {
      return new DynamicArray(element, elements);
    }
    try {
      return (Type)
          classOf(type).getConstructor(Class.class, List.class).newInstance(element, elements);
    } catch (ReflectiveOperationException no) {
      throw new AssertionError(no);
    }
  }

  private static Type tuple(AbiType type, List<?> values) {
    List<Type> members = new ArrayList<>();
    for (int i = 0; i < values.size(); i++) {
      members.add(valueOf(type.members().get(i).type(), values.get(i)));
    }
    return type.isDynamic() ? new DynamicStruct(members) : new StaticStruct(members);
  }

  private static <T> Type made(Class<? extends Type> of, Class<T> taken, Object value) {
    try {
      return of.getConstructor(taken).newInstance(value);
    } catch (ReflectiveOperationException no) {
      throw new AssertionError(no);
    }
  }

  /** The class of web3j for a type. */
  static Class<? extends Type> classOf(AbiType type) {
    return switch (type.kind()) {
      case ARRAY -> type.length() < 0 ? DynamicArray.class : staticArray(type.length());
      case TUPLE -> type.isDynamic() ? DynamicStruct.class : StaticStruct.class;
      // It has no function, whose encoding is the same.
      case FIXED_BYTES -> AbiTypes.getType("bytes" + type.length());
      default -> AbiTypes.getType(type.toString());
    };
  }

  private static Class<? extends Type> staticArray(int length) {
    try {
      return (Class<? extends Type>)
          Class.forName("org.web3j.abi.datatypes.generated.StaticArray" + length);
    } catch (ClassNotFoundException no) {
      throw new AssertionError(no);
    }
  }

  /** What web3j decodes by; of tuples their members. */
  static TypeReference referenceOf(AbiType type) throws ClassNotFoundException {
    if (type.kind() == AbiType.Kind.TUPLE) {
      List<TypeReference<?>> members = new ArrayList<>();
      for (AbiParameter member : type.members()) {
        members.add(referenceOf(member.type()));
      }
      return type.isDynamic() ? new OfDynamic(members) : new OfStatic(members);
    }
    return TypeReference.makeTypeReference(type.toString().replace("function", "bytes24"));
  }

  private static final class OfDynamic extends TypeReference<DynamicStruct> {
    OfDynamic(List<TypeReference<?>> members) {
      super(false, members);
    }
  }

  private static final class OfStatic extends TypeReference<StaticStruct> {
    OfStatic(List<TypeReference<?>> members) {
      super(false, members);
    }
  }

  /** A value of web3j as ours. */
  static Object ours(AbiType type, Type value) {
    if (value instanceof Array<?> array) {
      List<Object> values = new ArrayList<>();
      List<? extends Type> elements = array.getValue();
      for (int i = 0; i < elements.size(); i++) {
        boolean tuple = type.kind() == AbiType.Kind.TUPLE;
        AbiType element = tuple ? type.members().get(i).type() : type.element();
        values.add(ours(element, elements.get(i)));
      }
      return values;
    }
    return switch (value) {
      case Address address -> deponent.eth.Address.of(address.getValue().toLowerCase());
      case Bool bool -> bool.getValue();
      case Utf8String text -> text.getValue();
      default -> value.getValue() instanceof byte[] bytes ? Bytes.of(bytes) : value.getValue();
    };
  }
}
