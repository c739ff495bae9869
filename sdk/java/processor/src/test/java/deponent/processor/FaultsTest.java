package deponent.processor;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import javax.tools.Diagnostic;
import javax.tools.JavaFileObject;
import org.junit.jupiter.api.Test;

/** What is wrong with an interface is said at the line where it is. */
class FaultsTest {
  private static final String IMPORTS =
      """
      package app;
      import deponent.client.*;
      import deponent.client.Error;
      import deponent.eth.*;
      import java.math.BigInteger;
      import java.util.List;
      import java.util.concurrent.CompletableFuture;
      """;

  /** The first error is this one, at the line with {@code //}, or the first of the source. */
  private static void fault(String message, String source) {
    String text = IMPORTS + source;
    Compiled compiled = Compiled.of(Map.of("app.Coin", text), "-Adeponent.abi=src/test/abi");
    List<Diagnostic<? extends JavaFileObject>> errors =
        compiled.diagnostics.stream()
            .filter(one -> one.getKind() == Diagnostic.Kind.ERROR)
            .toList();
    assertTrue(!errors.isEmpty(), "there is no error, where it should be: " + message);
    assertEquals(message, errors.get(0).getMessage(null));
    long line = text.lines().takeWhile(one -> !one.contains("//")).count() + 1;
    assertEquals(line, errors.get(0).getLineNumber(), message);
  }

  private static void memberFault(String message, String members) {
    fault(message, "@Contract interface Coin {\n" + members + "\n}");
  }

  @Test
  void annotationsAtWrongPlacesAreFaults() {
    fault("@Contract is for interfaces", "@Contract class Coin {} //");
    fault("@Contract is for interfaces", "@Contract record Coin(int a) {} //");
    fault("an interface of a contract has no type parameters", "@Contract interface Coin<T> {} //");
    fault(
        "the class of a contract cannot see a private interface",
        "class Coin {\n@Contract private interface Inner {} //\n}");
    fault(
        "the class of a contract implements no sealed interface",
        "@Contract sealed interface Coin permits Own {} //\nfinal class Own implements Coin {}");
    fault(
        "@Event stands in an interface with @Contract",
        "class Coin {\n@Event(\"E()\") record E() {} //\n}");
    fault(
        "@View stands in an interface with @Contract",
        "abstract class Coin {\n@View(\"f()\") abstract void f(); //\n}");
    memberFault("a method of a contract has @View or @Send, or a body", "void f(); //");
    memberFault(
        "a method has @View or @Send, and not both", "@View(\"f()\") @Send(\"f()\") void f(); //");
    memberFault(
        "a method of a contract has neither a body nor type parameters",
        "@View(\"f()\") default void f() {} //");
    memberFault(
        "a method of a contract has neither a body nor type parameters",
        "@View(\"f()\") <T> void f(); //");
    memberFault("@Event is for records", "@Event(\"E()\") interface E {} //");
    memberFault("@Error is for records", "@Error(\"E()\") class E {} //");
    memberFault(
        "a record has @Event or @Error, and not both",
        "@Event(\"E()\") @Error(\"E()\") record E() {} //");
  }

  @Test
  void signaturesThatAreNoneAreFaults() {
    String missing =
        "the signature is missing, such as @View(\"balanceOf(address) returns (uint256)\"), or"
            + " the JSON of the contract, as in @Contract(abi = \"Erc20.json\")";
    memberFault(missing, "@View void f(); //");
    memberFault(missing, "@Send(\"f\") PendingTransaction f(); //");
    memberFault(
        "the signature is missing, such as @Event(\"Paid(address indexed from, uint256 amount)\"),"
            + " or the JSON of the contract, as in @Contract(abi = \"Erc20.json\")",
        "@Error record E() {} //");
    memberFault("no type of the ABI: 'foo' in 'f(foo)'", "@View(\"f(foo)\") void f(int a); //");
    memberFault("')' is expected, at 9 of 'f(uint8 a'", "@View(\"f(uint8 a\") void f(int a); //");
    memberFault(
        "E(uint8,uint8,uint8,uint8) has 5 topics, where a log has four at most",
        "@Event(\"E(uint8 indexed a, uint8 indexed b, uint8 indexed c, uint8 indexed d)\") //\n"
            + "record E(int a, int b, int c, int d) {}");
    fault(
        "'(' is expected, at 11 of 'constructor'",
        "@Contract(constructor = \"constructor\") interface Coin {} //");
  }

  @Test
  void typesOfJavaThatAreOthersThanThoseOfTheAbiAreFaults() {
    memberFault(
        "'a': uint256 is BigInteger, Wei in Java, not String",
        "@View(\"f(uint256)\") void f(\nString a); //");
    memberFault(
        "'a': uint256 is BigInteger, Wei in Java, not long",
        "@View(\"f(uint256)\") void f(\nlong a); //");
    memberFault(
        "'a': int64 is BigInteger, long in Java, not int",
        "@View(\"f(int64)\") void f(\nint a); //");
    memberFault(
        "'a': int8 is BigInteger, long, int in Java, not Wei",
        "@View(\"f(int8)\") void f(\nWei a); //");
    memberFault(
        "'a': bytes31 is Bytes in Java, not Hash", "@View(\"f(bytes31)\") void f(\nHash a); //");
    memberFault(
        "'a': bytes32 is Hash, Bytes in Java, not String",
        "@View(\"f(bytes32)\") void f(\nString a); //");
    memberFault(
        "'a': address is Address in Java, not String",
        "@View(\"f(address)\") void f(\nString a); //");
    memberFault("'a': bool is boolean in Java, not int", "@View(\"f(bool)\") void f(\nint a); //");
    memberFault(
        "'a': uint8[] is a List in Java, not BigInteger",
        "@View(\"f(uint8[])\") void f(\nBigInteger a); //");
    memberFault(
        "'a': uint8[] is a List in Java, not List<?>",
        "@View(\"f(uint8[])\") void f(\nList<?> a); //");
    memberFault(
        "'a'[][]: uint8 is BigInteger, Wei, long, int in Java, not String",
        "@View(\"f(uint8[][2])\") void f(\nList<List<String>> a); //");
    memberFault(
        "'a': (uint8,bool) is a record of 2 components in Java, not List<Object>",
        "@View(\"f((uint8,bool))\") void f(\nList<Object> a); //");
    memberFault(
        "the record P has 1 component, where uint8 x, bool y has 2",
        "record P(int x) {}\n@View(\"f((uint8 x, bool y))\") void f(\nP a); //");
    memberFault(
        "'y' of P: bool is boolean in Java, not int",
        "record P(int x, int y) {}\n@View(\"f((uint8 x, bool y))\") void f(\nP a); //");
    memberFault(
        "the record P is private or has type parameters",
        "record P<T>(T x) {}\n@View(\"f((uint8 x))\") void f(\nP<Integer> a); //");
    memberFault(
        "'e' of E: of an indexed string logs have the hash alone, so it is Hash in Java, not"
            + " String",
        "@Event(\"E(string indexed e)\") record E(String e) {} //");
  }

  @Test
  void resultsThatAreOthersAreFaults() {
    memberFault(
        "the result: address is Address in Java, not String",
        "@View(\"f() returns (address)\") String f(); //");
    memberFault(
        "the result: address is Address in Java, not String",
        "@View(\"f() returns (address)\") CompletableFuture<String> f(); //");
    memberFault(
        "the method is void, where the function returns (address owner)",
        "@View(\"f() returns (address owner)\") void f(); //");
    memberFault(
        "f() returns nothing, so the method is void: 'returns (type)' is missing in the signature,"
            + " if it does",
        "@View(\"f()\") int f(); //");
    memberFault(
        "the result: (uint8 a, bool) is a record of 2 components in Java, not int",
        "@View(\"f() returns (uint8 a, bool)\") int f(); //");
    memberFault(
        "a method with @Send returns PendingTransaction, CompletableFuture<PendingTransaction>, or"
            + " the Call that would be sent, not void",
        "@Send(\"f()\") void f(); //");
    memberFault(
        "f() changes nothing: it is called, by @View",
        "@Send(\"f() view\") PendingTransaction f(); //");
  }

  @Test
  void parametersThatAreOthersAreFaults() {
    memberFault(
        "the method has 1 parameter, where (address to, uint256 value) has 2",
        "@Send(\"f(address to, uint256 value)\") PendingTransaction f(Address to); //");
    memberFault(
        "f(address) takes no ether: it is not payable, and 'value' is more than its parameters",
        "@Send(\"f(address to)\") PendingTransaction f(Address to,\nWei value); //");
    memberFault(
        "'from' is at place 2, and at place 1 of (address from, address to)",
        "@Send(\"f(address from, address to)\") PendingTransaction f(Address to_, \n"
            + "Address from); //");
    memberFault(
        "'to' of E is at place 1, and at place 2 of (address indexed from, address to)",
        "@Event(\"E(address indexed from, address to)\") record E(Address to, Address from) {} //");
  }

  @Test
  void thatWhichIsThereTwiceIsAFault() {
    // Both selectors are 0x42966c68.
    memberFault(
        "collate_propagate_storage(bytes16) has the selector of burn(uint256), 0x42966c68",
        "@Send(\"burn(uint256)\") PendingTransaction burn(BigInteger a);\n"
            + "@Send(\"collate_propagate_storage(bytes16)\") PendingTransaction f(Bytes a); //");
    memberFault(
        "another method has other results: f() returns (uint256)",
        "@View(\"f() returns (uint256)\") BigInteger f();\n"
            + "@View(\"f() returns (uint8)\") int g(); //");
    memberFault(
        "another record is of the event E(uint8)",
        "@Event(\"E(uint8 a)\") record E(int a) {}\n@Event(\"E(uint8 a)\") record F(int a) {} //");
    memberFault(
        "another record is of the error E(uint8)",
        "@Error(\"E(uint8 a)\") record E(int a) {}\n@Error(\"E(uint8 a)\") record F(int a) {} //");
  }

  private static void jsonFault(String message, String members) {
    fault(message, "@Contract(abi = \"Coin.json\") interface Coin {\n" + members + "\n}");
  }

  @Test
  void whatTheJsonOfTheContractDoesNotHaveIsAFault() {
    jsonFault(
        "several have the name, say which by its signature: [transfer((address,uint256)),"
            + " transfer(address,uint256)]",
        "@Send PendingTransaction transfer(Address to, BigInteger value); //");
    jsonFault(
        "there is no function 'burn' among [balanceOf(address), buy(uint8),"
            + " echo((string,(address,uint256)[],uint64[2])[]),"
            + " give((string,(address,uint256)[],uint64[2])), name(), sender(), supply(),"
            + " transfer((address,uint256)), transfer(address,uint256)]",
        "@View void burn(); //");
    jsonFault(
        "there is no error 'TooLow(uint256)' among [Closed(uint64[2],string),"
            + " InsufficientBalance(address,uint256,uint256)]",
        "@Error(\"TooLow(uint256)\") record TooLow(BigInteger a) {} //");
    jsonFault(
        "the JSON of the contract has other results: name() returns (string)",
        "@View(\"name() returns (bytes32)\") Hash name(); //");
    jsonFault(
        "the JSON of the contract has other indexed fields: event Transfer(address indexed from,"
            + " address indexed to, uint256 value)",
        "@Event(\"Transfer(address from, address to, uint256 value)\") //\n"
            + "record Transfer(Address from, Address to, BigInteger value) {}");
    jsonFault(
        "'owner': address is Address in Java, not String",
        "@View BigInteger balanceOf(\nString owner); //");
    fault(
        "there is no file Coin.sol.json in " + Path.of("src/test/abi").toAbsolutePath(),
        "@Contract(abi = \"Coin.sol.json\") interface Coin {} //");
    fault(
        "Token.json is not read: a contract's JSON without the member abi",
        "@Contract(abi = \"Token.json\") interface Coin {} //");
    fault(
        "Odd.json is not read: an entry of the type function with the name 'f\"); evil('",
        "@Contract(abi = \"Odd.json\") interface Coin {} //");
    fault(
        "the JSON of the contract has its constructor",
        "@Contract(abi = \"Coin.json\", constructor = \"constructor()\") interface Coin {} //");
    Compiled without =
        Compiled.of(
            Map.of("Coin", "@deponent.client.Contract(abi = \"Coin.json\") interface Coin {}"));
    assertEquals(
        "the folder of Coin.json is not known: -Adeponent.abi=FOLDER says it",
        without.diagnostics.get(0).getMessage(null));
  }
}
