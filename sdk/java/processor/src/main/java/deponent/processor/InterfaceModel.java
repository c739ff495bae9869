package deponent.processor;

import deponent.eth.AbiConstructor;
import deponent.eth.AbiError;
import deponent.eth.AbiEvent;
import deponent.eth.AbiFunction;
import deponent.eth.AbiFunction.Mutability;
import deponent.eth.AbiParameter;
import deponent.eth.AbiType;
import deponent.eth.Bytes;
import deponent.processor.Model.How;
import deponent.processor.Shape.Member;
import deponent.processor.Shape.Struct;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.function.Function;
import java.util.stream.Collectors;
import javax.lang.model.element.AnnotationMirror;
import javax.lang.model.element.Element;
import javax.lang.model.element.ElementKind;
import javax.lang.model.element.ExecutableElement;
import javax.lang.model.element.Modifier;
import javax.lang.model.element.TypeElement;
import javax.lang.model.element.VariableElement;
import javax.lang.model.type.TypeKind;
import javax.lang.model.type.TypeMirror;
import javax.lang.model.util.ElementFilter;
import javax.lang.model.util.Elements;
import org.jspecify.annotations.Nullable;

/** Reads an interface with its annotations into a model, and says what is wrong with it. */
final class InterfaceModel {
  static final String CLIENT = "deponent.client.";
  static final String VIEW = CLIENT + "View";
  static final String SEND = CLIENT + "Send";
  static final String EVENT = CLIENT + "Event";
  static final String ERROR = CLIENT + "Error";
  private static final String PENDING = CLIENT + "PendingTransaction";
  private static final String WEI = "deponent.eth.Wei";
  private static final String FUTURE = "java.util.concurrent.CompletableFuture";

  private final Elements elements;
  private final TypeElement type;
  private final Optional<AbiFile> file;
  private final Model model;
  private final List<Fault> faults = new ArrayList<>();

  /** Signatures and results by selector. */
  private final Map<Bytes, AbiFunction> selectors = new HashMap<>();

  InterfaceModel(Elements elements, TypeElement type, Optional<AbiFile> file) {
    this.elements = elements;
    this.type = type;
    this.file = file;
    String inPackage = elements.getPackageOf(type).getQualifiedName().toString();
    String whole = type.getQualifiedName().toString();
    model =
        new Model(
            inPackage,
            inPackage.isEmpty() ? whole : whole.substring(inPackage.length() + 1),
            type.getSimpleName() + "Contract",
            type.getModifiers().contains(Modifier.PUBLIC) && isReachable());
  }

  private boolean isReachable() {
    for (Element outer = type.getEnclosingElement();
        outer.getKind() != ElementKind.PACKAGE;
        outer = outer.getEnclosingElement()) {
      if (!outer.getModifiers().contains(Modifier.PUBLIC)) {
        return false;
      }
    }
    return true;
  }

  List<Fault> faults() {
    return faults;
  }

  /** Reads it; the model is whole where there are no faults. */
  Model read(AnnotationMirror contract) {
    if (type.getKind() != ElementKind.INTERFACE) {
      faults.add(new Fault(type, "@Contract is for interfaces"));
      return model;
    }
    for (Element outer = type;
        outer.getKind() != ElementKind.PACKAGE;
        outer = outer.getEnclosingElement()) {
      if (outer.getModifiers().contains(Modifier.PRIVATE)) {
        faults.add(new Fault(type, "the class of a contract cannot see a private interface"));
        return model;
      }
    }
    if (type.getModifiers().contains(Modifier.SEALED)) {
      faults.add(new Fault(type, "the class of a contract implements no sealed interface"));
      return model;
    }
    if (!type.getTypeParameters().isEmpty()) {
      faults.add(new Fault(type, "an interface of a contract has no type parameters"));
      return model;
    }
    List<? extends Element> members = elements.getAllMembers(type);
    for (ExecutableElement method : ElementFilter.methodsIn(members)) {
      attempt(() -> method(method));
    }
    for (TypeElement member : ElementFilter.typesIn(members)) {
      attempt(() -> member(member));
    }
    attempt(() -> rest(contract, members));
    return model;
  }

  /** A part of the reading. */
  private interface Part {
    void read() throws Fault;
  }

  private void attempt(Part part) {
    try {
      part.read();
    } catch (Fault fault) {
      faults.add(fault);
    }
  }

  /** The annotation of this name, or null. */
  static @Nullable AnnotationMirror annotation(Element element, String name) {
    for (AnnotationMirror one : element.getAnnotationMirrors()) {
      if (JavaTypes.named(one.getAnnotationType(), name)) {
        return one;
      }
    }
    return null;
  }

  /** An element of an annotation, or "". */
  static String valueOf(AnnotationMirror annotation, String name) {
    for (var entry : annotation.getElementValues().entrySet()) {
      if (entry.getKey().getSimpleName().contentEquals(name)) {
        return entry.getValue().getValue().toString();
      }
    }
    return "";
  }

  private void method(ExecutableElement method) throws Fault {
    AnnotationMirror view = annotation(method, VIEW);
    AnnotationMirror send = annotation(method, SEND);
    boolean isAbstract = method.getModifiers().contains(Modifier.ABSTRACT);
    if (view == null && send == null) {
      if (isAbstract && !isAddress(method)) {
        throw new Fault(method, "a method of a contract has @View or @Send, or a body");
      }
      return;
    }
    if (view != null && send != null) {
      throw new Fault(method, send, "a method has @View or @Send, and not both");
    }
    if (!isAbstract || !method.getTypeParameters().isEmpty()) {
      throw new Fault(method, "a method of a contract has neither a body nor type parameters");
    }
    AnnotationMirror annotation = view != null ? view : send;
    AbiFunction abi = function(method, annotation);
    checkSelector(method, annotation, abi);
    Model.Function function = view != null ? viewed(method, abi) : sent(method, annotation, abi);
    model.functions.add(function);
  }

  /** Whether it is the method that each class has. */
  private static boolean isAddress(ExecutableElement method) {
    return method.getSimpleName().contentEquals("address")
        && method.getParameters().isEmpty()
        && JavaTypes.named(method.getReturnType(), "deponent.eth.Address");
  }

  private AbiFunction function(ExecutableElement method, AnnotationMirror annotation) throws Fault {
    String given = valueOf(annotation, "value");
    if (file.isEmpty() && !given.contains("(")) {
      throw new Fault(
          method,
          annotation,
          "the signature is missing, such as @View(\"balanceOf(address) returns (uint256)\"), or"
              + " the JSON of the contract, as in @Contract(abi = \"Erc20.json\")");
    }
    AbiFunction declared =
        given.contains("(") ? parsed(method, annotation, AbiFunction::of, given) : null;
    if (file.isEmpty()) {
      return declared;
    }
    String wanted = declared != null ? declared.signature() : given;
    String name = wanted.isEmpty() ? method.getSimpleName().toString() : wanted;
    AbiFunction found = parsed(method, annotation, file.get().abi()::function, name);
    if (declared != null && !declared.outputs().isEmpty() && !sameOutputs(declared, found)) {
      throw new Fault(
          method, annotation, "the JSON of the contract has other results: " + declaration(found));
    }
    return found;
  }

  private static boolean sameOutputs(AbiFunction one, AbiFunction other) {
    return one.outputs().stream()
        .map(AbiParameter::type)
        .toList()
        .equals(other.outputs().stream().map(AbiParameter::type).toList());
  }

  private static String declaration(AbiFunction abi) {
    return abi.name()
        + "("
        + Names.declared(abi.inputs())
        + ") returns ("
        + Names.declared(abi.outputs())
        + ")";
  }

  private static <T> T parsed(
      Element at, AnnotationMirror annotation, Function<String, T> parser, String text)
      throws Fault {
    try {
      return parser.apply(text);
    } catch (IllegalArgumentException no) {
      throw new Fault(at, annotation, String.valueOf(no.getMessage()));
    }
  }

  private void checkSelector(Element at, AnnotationMirror annotation, AbiFunction abi)
      throws Fault {
    AbiFunction before = selectors.putIfAbsent(abi.selector(), abi);
    if (before == null) {
      return;
    }
    if (!before.signature().equals(abi.signature())) {
      throw new Fault(
          at,
          annotation,
          abi.signature() + " has the selector of " + before.signature() + ", " + abi.selector());
    }
    if (!sameOutputs(before, abi)) {
      throw new Fault(at, annotation, "another method has other results: " + declaration(before));
    }
  }

  private Model.Function viewed(ExecutableElement method, AbiFunction abi) throws Fault {
    TypeMirror java = method.getReturnType();
    How how = How.CALL;
    TypeMirror future = JavaTypes.argumentOf(java, FUTURE);
    TypeMirror request = JavaTypes.argumentOf(java, "deponent.rpc.Request");
    if (future != null) {
      java = future;
      how = How.CALL_ASYNC;
    } else if (request != null) {
      java = request;
      how = How.REQUEST;
    }
    List<Member> parameters = parameters(method, abi.inputs());
    Shape result = result(method, java, abi);
    return new Model.Function(
        abi,
        method.getSimpleName().toString(),
        how,
        parameters,
        etherOf(method, abi),
        result,
        abi.outputs().size() > 1,
        true);
  }

  private static @Nullable Shape result(ExecutableElement method, TypeMirror java, AbiFunction abi)
      throws Fault {
    List<AbiParameter> outputs = abi.outputs();
    boolean none = java.getKind() == TypeKind.VOID || JavaTypes.named(java, "java.lang.Void");
    if (outputs.isEmpty()) {
      if (!none) {
        throw new Fault(
            method,
            abi.signature()
                + " returns nothing, so the method is void: 'returns (type)' is missing in the"
                + " signature, if it does");
      }
      return null;
    }
    if (none) {
      throw new Fault(
          method,
          "the method is void, where the function returns (" + Names.declared(outputs) + ")");
    }
    if (outputs.size() == 1) {
      return JavaTypes.match(method, "the result", java, outputs.get(0).type());
    }
    TypeElement record = JavaTypes.recordOf(java);
    if (java.getKind() == TypeKind.ERROR) {
      throw new JavaTypes.Unknown(java.toString());
    }
    if (record == null) {
      throw new Fault(
          method,
          "the result: ("
              + Names.declared(outputs)
              + ") is a record of "
              + outputs.size()
              + " components in Java, not "
              + JavaTypes.simple(java));
    }
    return JavaTypes.struct(method, record, tuple(outputs), outputs);
  }

  private Model.Function sent(
      ExecutableElement method, AnnotationMirror annotation, AbiFunction abi) throws Fault {
    if (abi.mutability() == Mutability.VIEW || abi.mutability() == Mutability.PURE) {
      throw new Fault(
          method, annotation, abi.signature() + " changes nothing: it is called, by @View");
    }
    TypeMirror java = method.getReturnType();
    TypeMirror future = JavaTypes.argumentOf(java, FUTURE);
    How how;
    if (JavaTypes.named(java, PENDING)) {
      how = How.SEND;
    } else if (future != null && JavaTypes.named(future, PENDING)) {
      how = How.SEND_ASYNC;
    } else if (JavaTypes.named(java, CLIENT + "Call")) {
      how = How.PREPARE;
    } else {
      throw new Fault(
          method,
          "a method with @Send returns PendingTransaction, CompletableFuture<PendingTransaction>,"
              + " or the Call that would be sent, not "
              + JavaTypes.simple(java));
    }
    List<Member> parameters = parameters(method, abi.inputs());
    return new Model.Function(
        abi,
        method.getSimpleName().toString(),
        how,
        parameters,
        etherOf(method, abi),
        null,
        false,
        true);
  }

  /** The parameters, the ether not among them. */
  private static List<Member> parameters(ExecutableElement method, List<AbiParameter> inputs)
      throws Fault {
    List<? extends VariableElement> java = method.getParameters();
    int ether = java.size() - inputs.size();
    boolean fits = ether == 0 || ether == 1 && JavaTypes.named(java.getLast().asType(), WEI);
    if (!fits) {
      throw new Fault(
          method,
          "the method has "
              + JavaTypes.count(java.size(), "parameter")
              + ", where ("
              + Names.declared(inputs)
              + ") has "
              + inputs.size());
    }
    List<Member> parameters = new ArrayList<>();
    for (int i = 0; i < inputs.size(); i++) {
      VariableElement parameter = java.get(i);
      String name = parameter.getSimpleName().toString();
      JavaTypes.checkOrder(parameter, "'" + name + "'", name, inputs, i);
      Shape shape =
          JavaTypes.match(parameter, "'" + name + "'", parameter.asType(), inputs.get(i).type());
      parameters.add(new Member(Names.ofValue(name, i), shape));
    }
    return parameters;
  }

  /** The parameter with the ether: one more than the function has. */
  private static @Nullable String etherOf(ExecutableElement method, AbiFunction abi) throws Fault {
    if (method.getParameters().size() == abi.inputs().size()) {
      return null;
    }
    VariableElement last = method.getParameters().getLast();
    if (abi.mutability() != Mutability.PAYABLE) {
      throw new Fault(
          last,
          abi.signature()
              + " takes no ether: it is not payable, and '"
              + last.getSimpleName()
              + "' is more than its parameters");
    }
    return Names.ofValue(last.getSimpleName().toString(), 0);
  }

  private void member(TypeElement member) throws Fault {
    AnnotationMirror event = annotation(member, EVENT);
    AnnotationMirror error = annotation(member, ERROR);
    AnnotationMirror annotation = event != null ? event : error;
    if (annotation == null) {
      return;
    }
    if (event != null && error != null) {
      throw new Fault(member, error, "a record has @Event or @Error, and not both");
    }
    if (member.getKind() != ElementKind.RECORD) {
      throw new Fault(
          member, annotation, "@" + (event != null ? "Event" : "Error") + " is for records");
    }
    String given = valueOf(annotation, "value");
    if (file.isEmpty() && !given.contains("(")) {
      throw new Fault(
          member,
          annotation,
          "the signature is missing, such as @Event(\"Paid(address indexed from, uint256 amount)"
              + "\"), or the JSON of the contract, as in @Contract(abi = \"Erc20.json\")");
    }
    if (event != null) {
      event(member, event, given);
    } else {
      error(member, annotation, given);
    }
  }

  private void event(TypeElement member, AnnotationMirror annotation, String given) throws Fault {
    AbiEvent abi = given.contains("(") ? parsed(member, annotation, AbiEvent::of, given) : null;
    if (file.isPresent()) {
      String wanted = abi != null ? abi.signature() : given;
      String name = wanted.isEmpty() ? member.getSimpleName().toString() : wanted;
      AbiEvent found = parsed(member, annotation, file.get().abi()::event, name);
      if (abi != null && !indexed(abi.inputs()).equals(indexed(found.inputs()))) {
        throw new Fault(
            member, annotation, "the JSON of the contract has other indexed fields: " + found);
      }
      abi = found;
    }
    AbiEvent event = abi;
    if (model.events.stream().anyMatch(one -> one.abi().signature().equals(event.signature()))) {
      throw new Fault(member, annotation, "another record is of the event " + event.signature());
    }
    Struct fields = JavaTypes.struct(member, member, tuple(event.inputs()), event.inputs());
    model.events.add(new Model.Event(event, fields));
  }

  private static List<Boolean> indexed(List<AbiParameter> inputs) {
    return inputs.stream().map(AbiParameter::indexed).toList();
  }

  private void error(TypeElement member, AnnotationMirror annotation, String given) throws Fault {
    AbiError abi = given.contains("(") ? parsed(member, annotation, AbiError::of, given) : null;
    if (file.isPresent()) {
      String wanted = abi != null ? abi.signature() : given;
      String name = wanted.isEmpty() ? member.getSimpleName().toString() : wanted;
      abi = parsed(member, annotation, file.get().abi()::error, name);
    }
    AbiError error = abi;
    for (Model.Failure other : model.errors) {
      if (other.abi().signature().equals(error.signature())) {
        throw new Fault(member, annotation, "another record is of the error " + error.signature());
      }
      if (other.abi().selector().equals(error.selector())) {
        throw new Fault(
            member,
            annotation,
            error.signature()
                + " has the selector of "
                + other.abi().signature()
                + ", "
                + error.selector());
      }
    }
    Struct fields = JavaTypes.struct(member, member, tuple(error.inputs()), error.inputs());
    model.errors.add(new Model.Failure(error, fields));
  }

  /** What is of no member of the interface. */
  private void rest(AnnotationMirror contract, List<? extends Element> members) throws Fault {
    Set<String> names = new HashSet<>();
    ElementFilter.typesIn(members).forEach(one -> names.add(one.getSimpleName().toString()));
    model.hiding.addAll(names);
    model.hiding.add(model.name.replaceFirst("\\..*", ""));
    JsonModel more = new JsonModel(model, names);
    String given = valueOf(contract, "constructor");
    if (file.isPresent() && !given.isEmpty()) {
      throw new Fault(type, contract, "the JSON of the contract has its constructor");
    }
    if (!given.isEmpty()) {
      more.creation(parsed(type, contract, AbiConstructor::of, given), List.of());
    }
    file.ifPresent(more::add);
  }

  private static AbiType tuple(List<AbiParameter> parameters) {
    return AbiType.of(
        parameters.stream()
            .map(parameter -> parameter.type().toString())
            .collect(Collectors.joining(",", "(", ")")));
  }
}
