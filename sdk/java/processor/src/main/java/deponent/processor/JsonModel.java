package deponent.processor;

import deponent.eth.AbiConstructor;
import deponent.eth.AbiError;
import deponent.eth.AbiEvent;
import deponent.eth.AbiFunction;
import deponent.eth.AbiFunction.Mutability;
import deponent.eth.AbiParameter;
import deponent.eth.AbiType;
import deponent.processor.AbiFile.Named;
import deponent.processor.Model.How;
import deponent.processor.Shape.Kind;
import deponent.processor.Shape.Leaf;
import deponent.processor.Shape.Member;
import deponent.processor.Shape.Sequence;
import deponent.processor.Shape.Struct;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Collectors;

/** Adds to a model what the interface does not have, by types that hold all values. */
final class JsonModel {
  private final Model model;

  /** Names of records, and of types that they would hide. */
  private final Names types;

  /** Methods by name and types of Java. */
  private final Set<String> methods = new HashSet<>();

  /** Records of structs by their names in Solidity and their types. */
  private final Map<String, Struct> structs = new HashMap<>();

  JsonModel(Model model, Set<String> takenTypes) {
    this.model = model;
    Set<String> taken = new HashSet<>(Names.TYPES);
    taken.addAll(takenTypes);
    taken.add(model.className);
    types = new Names(taken);
    model.functions.forEach(function -> methods.add(key(function.method(), function)));
  }

  private static String key(String method, Model.Function function) {
    List<String> java = new ArrayList<>();
    function.parameters().forEach(parameter -> java.add(erased(parameter.shape())));
    if (function.ether() != null) {
      java.add("Wei");
    }
    return method + java;
  }

  private static String erased(Shape shape) {
    return shape instanceof Sequence ? "List" : shape.java();
  }

  /** Adds all of a JSON ABI that is not there yet. */
  void add(AbiFile file) {
    for (int i = 0; i < file.events().size(); i++) {
      event(file.abi().events().get(i), file.events().get(i).inputs());
    }
    for (int i = 0; i < file.errors().size(); i++) {
      error(file.abi().errors().get(i), file.errors().get(i).inputs());
    }
    for (int i = 0; i < file.functions().size(); i++) {
      function(file.abi().functions().get(i), file.functions().get(i));
    }
    if (file.constructor().isPresent() || file.code().isPresent()) {
      creation(file.abi().constructor(), file.constructor().orElse(List.of()));
    }
    model.code = file.code();
  }

  /** Adds the constructor. */
  void creation(AbiConstructor abi, List<Named> named) {
    List<Member> parameters = members(abi.inputs(), named);
    model.creation =
        new Model.Creation(abi, parameters, abi.isPayable() ? etherAmong(parameters) : null);
  }

  private void event(AbiEvent abi, List<Named> named) {
    if (model.events.stream().anyMatch(one -> one.abi().signature().equals(abi.signature()))) {
      return;
    }
    List<Member> fields = new ArrayList<>();
    Names names = new Names(Set.of());
    for (int i = 0; i < named.size(); i++) {
      AbiParameter input = abi.inputs().get(i);
      boolean hashed = input.indexed() && !JavaTypes.isWord(input.type());
      Shape shape =
          hashed ? new Leaf(AbiType.of("bytes32"), Kind.HASH) : shape(input, named.get(i));
      fields.add(new Member(names.free(Names.ofValue(input.name(), i)), shape));
    }
    String name = Names.ofType(abi.name());
    String longer = Names.withTypes(name, abi.inputs());
    Struct record = record(types.free(name, name + "Event", longer), tuple(abi.inputs()), fields);
    model.events.add(new Model.Event(abi, record));
  }

  private void error(AbiError abi, List<Named> named) {
    if (model.errors.stream().anyMatch(one -> one.abi().signature().equals(abi.signature()))) {
      return;
    }
    String name = Names.ofType(abi.name());
    String longer = Names.withTypes(name, abi.inputs());
    List<Member> fields = members(abi.inputs(), named);
    Struct record = record(types.free(name, name + "Error", longer), tuple(abi.inputs()), fields);
    model.errors.add(new Model.Failure(abi, record));
  }

  private void function(AbiFunction abi, AbiFile.Entry named) {
    if (model.functions.stream().anyMatch(one -> one.abi().signature().equals(abi.signature()))) {
      return;
    }
    List<Member> parameters = members(abi.inputs(), named.inputs());
    boolean reads = abi.mutability() == Mutability.VIEW || abi.mutability() == Mutability.PURE;
    String ether = null;
    if (abi.mutability() == Mutability.PAYABLE) {
      ether = etherAmong(parameters);
    }
    Shape result = null;
    boolean values = abi.outputs().size() > 1;
    if (values && reads) {
      List<Member> fields = members(abi.outputs(), named.outputs());
      String name = Names.ofType(abi.name()) + "Result";
      String longer = Names.withTypes(name, abi.inputs());
      result = record(types.free(name, longer), tuple(abi.outputs()), fields);
    } else if (reads && !abi.outputs().isEmpty()) {
      result = shape(abi.outputs().get(0), named.outputs().get(0));
    }
    Model.Function function =
        new Model.Function(
            abi,
            Names.ofMethod(abi.name()),
            reads ? How.CALL : How.SEND,
            parameters,
            ether,
            result,
            values,
            false);
    String longer = Names.withTypes(function.method(), abi.inputs());
    for (int i = 1; !methods.add(key(function.method(), function)); i++) {
      function = renamed(function, i == 1 ? longer : longer + "_" + i);
    }
    model.functions.add(function);
  }

  private static Model.Function renamed(Model.Function old, String method) {
    return new Model.Function(
        old.abi(),
        method,
        old.how(),
        old.parameters(),
        old.ether(),
        old.result(),
        old.values(),
        false);
  }

  private static String etherAmong(List<Member> parameters) {
    Set<String> taken = parameters.stream().map(Member::name).collect(Collectors.toSet());
    return new Names(taken).free("value", "ether");
  }

  private Struct record(String name, AbiType type, List<Member> fields) {
    Struct record = new Struct(type, name, fields);
    model.records.add(record);
    return record;
  }

  private static AbiType tuple(List<AbiParameter> parameters) {
    return AbiType.of(
        parameters.stream()
            .map(parameter -> parameter.type().toString())
            .collect(Collectors.joining(",", "(", ")")));
  }

  private List<Member> members(List<AbiParameter> parameters, List<Named> named) {
    List<Member> members = new ArrayList<>();
    Names names = new Names(Set.of());
    for (int i = 0; i < parameters.size(); i++) {
      AbiParameter parameter = parameters.get(i);
      String name = names.free(Names.ofValue(parameter.name(), i));
      Named more = i < named.size() ? named.get(i) : new Named("", List.of());
      members.add(new Member(name, shape(parameter, more)));
    }
    return members;
  }

  private Shape shape(AbiParameter parameter, Named named) {
    return shape(parameter.type(), named, parameter.name());
  }

  private Shape shape(AbiType type, Named named, String name) {
    return switch (type.kind()) {
      case ARRAY -> new Sequence(type, shape(type.element(), named, name));
      case TUPLE -> struct(type, named, name);
      case INTEGER -> new Leaf(type, integer(type));
      case DECIMAL -> new Leaf(type, Kind.DECIMAL);
      case BOOLEAN -> new Leaf(type, Kind.BOOL);
      case ADDRESS -> new Leaf(type, Kind.ADDRESS);
      case STRING -> new Leaf(type, Kind.TEXT);
      case BYTES -> new Leaf(type, Kind.BYTES);
      case FIXED_BYTES -> new Leaf(type, type.length() == 32 ? Kind.HASH : Kind.FIXED_BYTES);
    };
  }

  /** The smallest that holds all values. */
  private static Kind integer(AbiType type) {
    int bits = type.isSigned() ? type.bits() : type.bits() + 1;
    return bits <= 32 ? Kind.INT : bits <= 64 ? Kind.LONG : Kind.BIG;
  }

  private Struct struct(AbiType type, Named named, String name) {
    Optional<String> solidity = AbiFile.structOf(named);
    String wanted =
        Names.ofType(solidity.orElse(Names.ofValue(name, 0).replaceFirst("^value1$", "Tuple")));
    String key = wanted + " " + Names.declared(type.members());
    Struct known = structs.get(key);
    if (known != null) {
      return known;
    }
    List<Member> members = members(type.members(), named.members());
    Struct struct = record(types.free(wanted, wanted + "Struct"), type, members);
    structs.put(key, struct);
    return struct;
  }
}
