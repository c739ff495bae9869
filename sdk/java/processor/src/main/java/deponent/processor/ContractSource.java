package deponent.processor;

import deponent.processor.Model.How;
import deponent.processor.Shape.Leaf;
import deponent.processor.Shape.Member;
import deponent.processor.Shape.Sequence;
import deponent.processor.Shape.Struct;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;

/** Writes the class of a contract. */
final class ContractSource {
  /** Characters of a constant, of which a class file takes 65,535 bytes. */
  private static final int CONSTANT = 60_000;

  private static final List<String> IMPORTS =
      List.of(
          "deponent.client.Account",
          "deponent.client.BlockId",
          "deponent.client.BoundContract",
          "deponent.client.Call",
          "deponent.client.Client",
          "deponent.client.ContractError",
          "deponent.client.ContractEvent",
          "deponent.client.PendingTransaction",
          "deponent.client.Receipt",
          "deponent.eth.Abi",
          "deponent.eth.AbiConstructor",
          "deponent.eth.AbiFunction",
          "deponent.eth.AbiReader",
          "deponent.eth.AbiWriter",
          "deponent.eth.Address",
          "deponent.eth.Bytes",
          "deponent.eth.Hash",
          "deponent.eth.Wei",
          "deponent.rpc.Request",
          "java.math.BigDecimal",
          "java.math.BigInteger",
          "java.util.List",
          "java.util.concurrent.CompletableFuture");

  private final Model model;
  private final String self;
  private final StringBuilder body = new StringBuilder();

  /** Functions by signature, in the order of their constants. */
  private final List<String> functions = new ArrayList<>();

  /** Methods that read and write a record as a tuple, by its types. */
  private final Map<String, String> structs = new LinkedHashMap<>();

  private final List<Struct> structsToWrite = new ArrayList<>();
  private final Names structNames = new Names(Set.of());

  private ContractSource(Model model) {
    this.model = model;
    this.self = model.className;
  }

  /** The source of the class. */
  static String of(Model model) {
    ContractSource source = new ContractSource(model);
    source.body();
    StringBuilder whole = new StringBuilder();
    whole.append("// Written by deponent-processor for ").append(model.name);
    whole.append(": changes are lost.\n");
    if (!model.inPackage.isEmpty()) {
      whole.append("package ").append(model.inPackage).append(";\n\n");
    }
    String body = source.body.toString();
    for (String name : model.hiding) {
      body = withWholeName(body, name);
    }
    for (String one : IMPORTS) {
      if (body.matches("(?s).*(?<![.\\w])" + simple(one) + "\\b.*")) {
        whole.append("import ").append(one).append(";\n");
      }
    }
    return whole.append('\n').append(body).toString();
  }

  /** With the package before a type of a library, which a type of the interface hides. */
  private static String withWholeName(String body, String name) {
    String whole =
        IMPORTS.stream()
            .filter(one -> simple(one).equals(name))
            .findFirst()
            .orElse("java.lang." + name);
    if (!Names.TYPES.contains(name)) {
      return body;
    }
    String found = "(?<![.\\w])" + name + "\\b";
    return body.lines()
        .map(
            line ->
                line.contains("/**") || line.contains("\"") ? line : line.replaceAll(found, whole))
        .collect(Collectors.joining("\n", "", "\n"));
  }

  private void line(String... parts) {
    for (String part : parts) {
      body.append(part);
    }
    body.append('\n');
  }

  private void body() {
    String whole = model.inPackage.isEmpty() ? model.name : model.inPackage + "." + model.name;
    line("/** The contract {@link ", whole, "}, called without reflection. */");
    line(model.isPublic ? "public " : "", "final class ", self, " implements ", whole, " {");
    abi();
    constants();
    line("  private final BoundContract contract;");
    line();
    line("  private ", self, "(BoundContract contract) {");
    line("    this.contract = contract;");
    line("  }");
    factories();
    creation();
    for (int i = 0; i < model.functions.size(); i++) {
      function(model.functions.get(i), i);
    }
    for (int i = 0; i < model.events.size(); i++) {
      event(model.events.get(i), i);
    }
    for (int i = 0; i < model.errors.size(); i++) {
      error(model.errors.get(i), i);
    }
    // Writing one may ask for others.
    for (int i = 0; i < structsToWrite.size(); i++) {
      struct(structsToWrite.get(i));
    }
    model.records.forEach(this::record);
    line();
    line("  @Override");
    line("  public String toString() {");
    line("    return \"", model.name, " at \" + this.contract.address();");
    line("  }");
    line("}");
  }

  private void abi() {
    List<String> declarations = new ArrayList<>();
    for (Model.Function function : model.functions) {
      if (!functions.contains(function.abi().signature())) {
        functions.add(function.abi().signature());
        declarations.add(declaration(function));
      }
    }
    for (Model.Event event : model.events) {
      String text = event.abi().name() + "(" + Names.declared(event.abi().inputs()) + ")";
      declarations.add("event " + text + (event.abi().isAnonymous() ? " anonymous" : ""));
    }
    for (Model.Failure error : model.errors) {
      String text = error.abi().name() + "(" + Names.declared(error.abi().inputs()) + ")";
      declarations.add("error " + text);
    }
    Model.Creation creation = model.creation;
    if (creation != null) {
      String text = "constructor(" + Names.declared(creation.abi().inputs()) + ")";
      declarations.add(text + (creation.ether() != null ? " payable" : ""));
    }
    String separator = ",\n          ";
    line("  /** The functions, events and errors. */");
    line("  public static final Abi ABI =");
    line(
        "      Abi.of(",
        declarations.isEmpty() ? "" : "\n          ",
        declarations.stream().map(one -> "\"" + one + "\"").collect(Collectors.joining(separator)),
        ");");
    line();
  }

  private static String declaration(Model.Function function) {
    StringBuilder text = new StringBuilder("function ").append(function.abi().name());
    text.append('(').append(Names.declared(function.abi().inputs())).append(')');
    switch (function.abi().mutability()) {
      case PURE -> text.append(" pure");
      case VIEW -> text.append(" view");
      case PAYABLE -> text.append(" payable");
      default -> {}
    }
    if (!function.abi().outputs().isEmpty()) {
      text.append(" returns (").append(Names.declared(function.abi().outputs())).append(')');
    }
    return text.toString();
  }

  private void constants() {
    Names names = new Names(Set.of("ABI", "CODE", "CONSTRUCTOR"));
    for (int i = 0; i < model.events.size(); i++) {
      Model.Event event = model.events.get(i);
      String name = Names.ofConstant(simple(event.fields().java()));
      line("  /** Logs of {@code ", event.abi().signature(), "}. */");
      line(
          "  public static final ContractEvent<" + event.fields().java() + "> ",
          names.free(name, name + "_EVENT"),
          " =");
      String found = "ABI.event(\"" + event.abi().signature() + "\")";
      line(
          "      ContractEvent.of(\n          ", found, ",\n          ", self, "::event", i + ");");
      line();
    }
    for (int i = 0; i < model.errors.size(); i++) {
      Model.Failure error = model.errors.get(i);
      String name = Names.ofConstant(simple(error.fields().java()));
      line("  /** Reverts with {@code ", error.abi().signature(), "}. */");
      line(
          "  public static final ContractError<" + error.fields().java() + "> ",
          names.free(name, name + "_ERROR"),
          " =");
      String found = "ABI.error(\"" + error.abi().signature() + "\")";
      line(
          "      ContractError.of(\n          ", found, ",\n          ", self, "::error", i + ");");
      line();
    }
    for (int i = 0; i < functions.size(); i++) {
      line("  private static final AbiFunction FUNCTION_" + i, " =");
      line("      ABI.function(\"", functions.get(i), "\");");
      line();
    }
  }

  private static String simple(String name) {
    return name.substring(name.lastIndexOf('.') + 1);
  }

  private void factories() {
    line();
    line("  /** The contract at {@code address}, of which functions are called. */");
    line("  public static ", self, " at(Client client, Address address) {");
    line("    return new ", self, "(BoundContract.at(client, address, ABI));");
    line("  }");
    line();
    line("  /** The contract at {@code address}, to which {@code account} sends transactions. */");
    line("  public static ", self, " at(Account account, Address address) {");
    line("    return new ", self, "(BoundContract.at(account, address, ABI));");
    line("  }");
    line();
    line("  /** The same contract, called on the state after {@code block}. */");
    line("  public ", self, " at(BlockId block) {");
    line("    return new ", self, "(this.contract.at(block));");
    line("  }");
    line();
    line("  /** The contract's address. */");
    line("  public Address address() {");
    line("    return this.contract.address();");
    line("  }");
  }

  private void creation() {
    Model.Creation creation = model.creation;
    if (creation == null) {
      return;
    }
    boolean known = model.code.filter(code -> code.matches("[0-9a-fA-F]*")).isPresent();
    List<String> first = new ArrayList<>();
    List<String> names = new ArrayList<>();
    if (!known) {
      first.add("Bytes code");
      names.add("code");
    }
    Set<String> taken = new HashSet<>(Set.of("account", "code"));
    Names free = new Names(taken);
    List<Member> renamed = new ArrayList<>();
    for (Member parameter : creation.parameters()) {
      renamed.add(
          new Member(free.free(parameter.name(), parameter.name() + "_"), parameter.shape()));
    }
    renamed.forEach(one -> first.add(one.shape().java() + " " + one.name()));
    renamed.forEach(one -> names.add(one.name()));
    line();
    line("  private static final AbiConstructor CONSTRUCTOR = ABI.constructor();");
    line();
    if (known) {
      code(model.code.orElseThrow());
    }
    line("  /** The data of a transaction that creates the contract. */");
    line("  public static Bytes initCode(", String.join(", ", first), ") {");
    line(
        "    return AbiWriter.of(CONSTRUCTOR, ",
        known ? "Bytes.of(CODE)" : "code",
        ")",
        written(renamed),
        ".toBytes();");
    line("  }");
    line();
    String ether = creation.ether();
    String more = ether == null ? "" : free.free(ether, "ether");
    List<String> all = new ArrayList<>(first);
    all.addFirst("Account account");
    if (ether != null) {
      all.add("Wei " + more);
    }
    line("  /** Creates the contract; its receipt has the address. */");
    line("  public static PendingTransaction deploy(", String.join(", ", all), ") {");
    line(
        "    return account.send(Call.create(initCode(",
        String.join(", ", names),
        "))",
        ether == null ? "" : ".value(" + more + ")",
        ".errors(ABI));");
    line("  }");
    line();
    line("  /** The contract that the transaction with this receipt created. */");
    line("  public static ", self, " at(Account account, Receipt deployed) {");
    line("    return at(account, deployed.contractAddress().orElseThrow());");
    line("  }");
  }

  private void code(String digits) {
    line("  private static final String CODE =");
    List<String> parts = new ArrayList<>();
    for (int at = 0; at < digits.length(); at += CONSTANT) {
      String part = digits.substring(at, Math.min(digits.length(), at + CONSTANT));
      // A constant is no longer than a class file takes: these are joined when the class is loaded.
      parts.add(
          digits.length() > CONSTANT ? "java.lang.String.valueOf(\"" + part + "\")" : quoted(part));
    }
    line("      ", String.join("\n          + ", parts), ";");
    line();
  }

  private static String quoted(String text) {
    return "\"" + text + "\"";
  }

  private void function(Model.Function function, int index) {
    String constant = "FUNCTION_" + functions.indexOf(function.abi().signature());
    List<String> parameters = new ArrayList<>();
    function.parameters().forEach(one -> parameters.add(one.shape().java() + " " + one.name()));
    if (function.ether() != null) {
      parameters.add("Wei " + function.ether());
    }
    Shape result = function.result();
    String boxed = result == null ? "Void" : result.boxed();
    String java =
        switch (function.how()) {
          case CALL -> result == null ? "void" : result.java();
          case CALL_ASYNC -> "CompletableFuture<" + boxed + ">";
          case REQUEST -> "Request<" + boxed + ">";
          case SEND -> "PendingTransaction";
          case SEND_ASYNC -> "CompletableFuture<PendingTransaction>";
          case PREPARE -> "Call";
        };
    line();
    if (function.overrides()) {
      line("  @Override");
    } else {
      String what = function.how() == How.CALL ? "Calls" : "Sends a transaction that calls";
      line("  /** ", what, " {@code ", function.abi().signature(), "}. */");
    }
    line("  public ", java, " ", function.method(), "(", String.join(", ", parameters), ") {");
    String data = "AbiWriter.of(" + constant + ")" + written(function.parameters()) + ".toBytes()";
    String ether = function.ether();
    String call =
        "this.contract.prepare(" + data + ")" + (ether == null ? "" : ".value(" + ether + ")");
    String read = self + "::result" + index;
    line(
        switch (function.how()) {
          case CALL -> "    " + (result == null ? "" : "return ") + called("call", call, read);
          case CALL_ASYNC -> "    return " + called("callAsync", call, read);
          case REQUEST -> "    return " + called("request", call, read);
          case SEND -> "    return this.contract.send(" + call + ");";
          case SEND_ASYNC -> "    return this.contract.sendAsync(" + call + ");";
          case PREPARE -> "    return " + call + ";";
        });
    line("  }");
    if (function.how().compareTo(How.SEND) < 0) {
      result(function, index, constant, boxed);
    }
  }

  private static String called(String how, String call, String read) {
    return "this.contract." + how + "(" + call + ", " + read + ");";
  }

  private void result(Model.Function function, int index, String constant, String boxed) {
    Shape result = function.result();
    line();
    line("  private static ", boxed, " result" + index, "(Bytes result) {");
    if (result == null) {
      line("    return null;");
    } else if (function.values()) {
      line("    AbiReader in = AbiReader.ofResult(", constant, ", result);");
      line("    return ", made((Struct) result, "in"), ";");
    } else {
      line("    AbiReader in = AbiReader.ofResult(", constant, ", result);");
      line("    return in", read(result, 1), ";");
    }
    line("  }");
  }

  private void event(Model.Event event, int index) {
    line();
    String types = "(AbiReader topics, AbiReader data)";
    line("  private static ", event.fields().java(), " event" + index, types, " {");
    List<String> values = new ArrayList<>();
    for (int i = 0; i < event.fields().members().size(); i++) {
      boolean indexed = event.abi().inputs().get(i).indexed();
      Shape shape = event.fields().members().get(i).shape();
      values.add((indexed ? "topics" : "data") + read(shape, 1));
    }
    line("    return new ", event.fields().java(), "(", String.join(", ", values), ");");
    line("  }");
  }

  private void error(Model.Failure error, int index) {
    line();
    line("  private static ", error.fields().java(), " error" + index, "(AbiReader in) {");
    line("    return ", made(error.fields(), "in"), ";");
    line("  }");
  }

  /** The record out of values that are next. */
  private String made(Struct record, String in) {
    return record.members().stream()
        .map(member -> in + read(member.shape(), 1))
        .collect(Collectors.joining(", ", "new " + record.java() + "(", ")"));
  }

  private void record(Struct record) {
    line();
    line(
        "  /** {@code ",
        record.type().toString(),
        "}. */\n  public record ",
        record.java(),
        record.members().stream()
            .map(member -> member.shape().java() + " " + member.name())
            .collect(Collectors.joining(", ", "(", ")")),
        " {}");
  }

  private String struct(Shape.Struct struct, String what) {
    String key = struct.java() + " " + struct.type() + " " + struct.members();
    String name = structs.get(key);
    if (name == null) {
      name = structNames.free(Names.ofType(simple(struct.java())));
      structs.put(key, name);
      structsToWrite.add(struct);
    }
    return self + "::" + what + name;
  }

  private void struct(Struct struct) {
    String name = struct(struct, "").substring((self + "::").length());
    line();
    line("  private static void write", name, "(AbiWriter out, ", struct.java(), " each) {");
    List<Member> members = new ArrayList<>();
    struct
        .members()
        .forEach(one -> members.add(new Member("each." + one.name() + "()", one.shape())));
    line("    out", written(members), ";");
    line("  }");
    line();
    line("  private static ", struct.java(), " read", name, "(AbiReader in) {");
    line("    return ", made(struct, "in"), ";");
    line("  }");
  }

  /** Calls of a writer for values that are next. */
  private String written(List<Member> values) {
    return values.stream()
        .map(value -> write(value.shape(), value.name(), 1))
        .collect(Collectors.joining());
  }

  private String write(Shape shape, String value, int depth) {
    return switch (shape) {
      case Leaf leaf -> writeLeaf(leaf, value);
      case Struct struct -> {
        boolean dynamic = struct.type().isDynamic();
        int bytes = Shape.headsBytes(struct.type().members());
        yield (dynamic ? ".tuple(" : ".staticTuple(")
            + String.join(", ", value, bytes + "", struct(struct, "write") + ")");
      }
      case Sequence list -> {
        String each =
            "(out"
                + depth
                + ", each"
                + depth
                + ") -> out"
                + depth
                + write(list.element(), "each" + depth, depth + 1);
        yield array(list, value + ", ") + each + ")";
      }
    };
  }

  private static String array(Sequence list, String first) {
    int bytes = Shape.headBytes(list.type().element());
    int length = list.type().length();
    if (length < 0) {
      return ".array(" + first + bytes + ", ";
    }
    return list.type().element().isDynamic()
        ? ".fixedArray(" + first + length + ", "
        : ".staticArray(" + first + length + ", " + bytes + ", ";
  }

  private static String writeLeaf(Leaf leaf, String value) {
    return switch (leaf.kind()) {
      case BIG, WEI, LONG, INT ->
          (leaf.type().isSigned() ? ".signed(" : ".unsigned(")
              + value
              + ", "
              + leaf.type().bits()
              + ")";
      case DECIMAL -> ".decimal(" + value + ", " + decimal(leaf) + ")";
      case BOOL -> ".bool(" + value + ")";
      case ADDRESS -> ".address(" + value + ")";
      case TEXT -> ".text(" + value + ")";
      case BYTES -> ".bytes(" + value + ")";
      case FIXED_BYTES -> ".fixedBytes(" + value + ", " + leaf.type().length() + ")";
      case HASH -> ".hash(" + value + ")";
    };
  }

  private static String decimal(Leaf leaf) {
    return leaf.type().isSigned() + ", " + leaf.type().bits() + ", " + leaf.type().decimals();
  }

  /** A call of a reader for a value that is next. */
  private String read(Shape shape, int depth) {
    return switch (shape) {
      case Leaf leaf -> readLeaf(leaf);
      case Struct struct -> {
        boolean dynamic = struct.type().isDynamic();
        int bytes = Shape.headsBytes(struct.type().members());
        yield (dynamic ? ".tuple(" : ".staticTuple(") + bytes + ", " + struct(struct, "read") + ")";
      }
      case Sequence list ->
          array(list, "") + "in" + depth + " -> in" + depth + read(list.element(), depth + 1) + ")";
    };
  }

  private static String readLeaf(Leaf leaf) {
    String sign = leaf.kind() != Shape.Kind.WEI && isInteger(leaf) ? sign(leaf) : "";
    return switch (leaf.kind()) {
      case BIG -> sign + "(" + leaf.type().bits() + ")";
      case WEI -> ".wei(" + leaf.type().bits() + ")";
      case LONG -> sign + "Long(" + leaf.type().bits() + ")";
      case INT -> sign + "Int(" + leaf.type().bits() + ")";
      case DECIMAL -> ".decimal(" + decimal(leaf) + ")";
      case BOOL -> ".bool()";
      case ADDRESS -> ".address()";
      case TEXT -> ".text()";
      case BYTES -> ".bytes()";
      case FIXED_BYTES -> ".fixedBytes(" + leaf.type().length() + ")";
      case HASH -> ".hash()";
    };
  }

  private static boolean isInteger(Leaf leaf) {
    return leaf.type().kind() == deponent.eth.AbiType.Kind.INTEGER;
  }

  private static String sign(Leaf leaf) {
    return leaf.type().isSigned() ? ".signed" : ".unsigned";
  }
}
