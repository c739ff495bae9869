package deponent.processor;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import deponent.client.BlockId;
import deponent.client.Client;
import deponent.client.ContractError;
import deponent.client.ContractEvent;
import deponent.client.Log;
import deponent.eth.Abi;
import deponent.eth.AbiEvent;
import deponent.eth.AbiFunction;
import deponent.eth.Address;
import deponent.eth.Bytes;
import deponent.eth.Hash;
import deponent.eth.RevertException;
import deponent.eth.RpcException;
import deponent.eth.Wei;
import deponent.rpc.Request;
import deponent.sets.Sets;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.math.BigInteger;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import javax.annotation.processing.AbstractProcessor;
import javax.annotation.processing.RoundEnvironment;
import javax.lang.model.SourceVersion;
import javax.lang.model.element.TypeElement;
import org.junit.jupiter.api.Test;

/** Generated code encodes and decodes as the dynamic codec does. */
class GeneratedTest {
  private static final Address FRIEND = Address.of("0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed");

  private static Object at(Class<?> type, Echo echo) throws ReflectiveOperationException {
    Method at = type.getMethod("at", Client.class, Address.class);
    return at.invoke(null, Client.of(echo), FRIEND);
  }

  private static Method method(Class<?> type, String name) {
    return Arrays.stream(type.getDeclaredMethods())
        .filter(one -> one.getName().equals(name))
        .findFirst()
        .orElseThrow();
  }

  private static Object invoke(Object contract, String method, Object... arguments)
      throws ReflectiveOperationException {
    Method found = method(contract.getClass(), method);
    found.setAccessible(true);
    return found.invoke(contract, arguments);
  }

  @Test
  void randomFunctionsEncodeAndDecodeAsTheDynamicCodec() throws Exception {
    Random random = Sets.random();
    RandomAbi abis = new RandomAbi(random);
    String json =
        IntStream.range(0, 150)
            .mapToObj(i -> abis.function("f" + i))
            .collect(Collectors.joining(",\n", "[", "]"));
    Path folder = Files.createTempDirectory("abi");
    Path file = Files.writeString(folder.resolve("Echo.json"), json);
    Compiled compiled;
    try {
      String source =
          "package app; @deponent.client.Contract(abi = \"Echo.json\") public interface Echo {}";
      compiled = Compiled.of(Map.of("app.Echo", source), "-Adeponent.abi=" + folder);
    } finally {
      Files.delete(file);
      Files.delete(folder);
    }
    Class<?> type = compiled.loader().loadClass("app.EchoContract");
    Abi abi = (Abi) type.getField("ABI").get(null);
    Echo echo = new Echo();
    Object contract = at(type, echo);
    for (AbiFunction function : Abi.ofJson(json).functions()) {
      assertEquals(function.signature(), abi.function(function.name()).signature());
      for (int round = 0; round < 20; round++) {
        check(function, abis, contract, echo);
      }
    }
  }

  private static void check(AbiFunction function, RandomAbi abis, Object contract, Echo echo)
      throws ReflectiveOperationException {
    Method method = method(contract.getClass(), function.name());
    List<Object> values = new ArrayList<>();
    List<Object> java = new ArrayList<>();
    for (int i = 0; i < function.inputs().size(); i++) {
      values.add(abis.value(function.inputs().get(i).type()));
      java.add(RandomAbi.java(values.get(i), method.getGenericParameterTypes()[i]));
    }
    Bytes expected = function.encode(values.toArray());
    boolean empty = expected.size() == 4;
    Object result;
    try {
      result = method.invoke(contract, java.toArray());
    } catch (InvocationTargetException refused) {
      assertTrue(empty, () -> function + ": " + refused.getCause());
      return;
    }
    assertEquals(expected, echo.data, function.toString());
    Object wanted =
        values.size() == 1 ? java.get(0) : RandomAbi.record(values, method.getReturnType());
    assertEquals(wanted, result, function.toString());
  }

  private static final String ERC20 =
      """
      package app;
      import deponent.client.*;
      import deponent.client.Error;
      import deponent.eth.*;
      import deponent.rpc.Request;
      import java.math.BigInteger;
      import java.util.List;
      import java.util.concurrent.CompletableFuture;

      public interface Tokens {
        @Contract(constructor = "constructor(string name, (address to, uint8 part)[] shares)")
        interface Erc20 extends Base {
          @View("balanceOf(address) returns (uint256)") BigInteger balanceOf(Address owner);
          @View("balanceOf(address) returns (uint256)") Wei balance(Address owner);
          @View("balanceOf(address) returns (uint256)")
          CompletableFuture<BigInteger> balanceAsync(Address owner);
          @View("balanceOf(address) returns (uint256)") Request<Wei> balanceRequest(Address owner);
          @View("check(uint64[2] window)") void check(List<Long> window);
          @View("reserves() returns (uint112 first, uint112 second, uint32 time)")
          Reserves reserves();
          @Send("transfer(address to, uint256 value)") Call transfer(Address to, Wei value);
          @Send("buy(uint8 rate) payable") Call buy(int rate, Wei in);
          @View("quote(uint8 rate) payable returns (uint256)") Wei quote(int rate, Wei ether);
          default BigInteger mine() { return balanceOf(Address.ZERO); }

          record Reserves(Wei first, Wei second, long time) {}

          @Event("Transfer(address indexed from, address indexed to, uint256 value)")
          record Transfer(Address from, Address to, Wei value) {}

          @Event("Noted(string indexed topic, string note, (address to, uint8 part)[] shares)")
          record Noted(Hash topic, String note, List<Share> shares) {}

          record Share(Address to, int part) {}

          @Error("Low(uint256 have, string why)") record Low(Wei have, String why) {}
        }
      }

      interface Base {
        @View("name() returns (string)") String name();
        Address address();
      }
      """;

  private static Class<?> erc20() throws ReflectiveOperationException {
    return Compiled.of(Map.of("app.Tokens", ERC20)).loader().loadClass("app.Erc20Contract");
  }

  @Test
  void methodsOfAnInterfaceCall() throws Exception {
    Class<?> type = erc20();
    Echo echo = new Echo();
    Object token = at(type, echo);
    assertEquals("Tokens.Erc20 at " + FRIEND, token.toString());
    assertEquals(FRIEND, invoke(token, "address"));
    Bytes five = AbiFunction.of("f() returns (uint256)").encodeResult(5);
    echo.answer = five;
    BigInteger number = BigInteger.valueOf(5);
    assertEquals(number, invoke(token, "balanceOf", FRIEND));
    AbiFunction balanceOf = AbiFunction.of("balanceOf(address) returns (uint256)");
    assertEquals(balanceOf.encode(FRIEND), echo.data);
    assertTrue(echo.call.contains("\"to\":\"" + FRIEND.toString().toLowerCase() + "\""), echo.call);
    assertEquals(Wei.of(5), invoke(token, "balance", FRIEND));
    assertTrue(echo.call.endsWith(",\"latest\"]"), echo.call);
    Object before = type.getMethod("at", BlockId.class).invoke(token, BlockId.of(255));
    assertEquals(Wei.of(5), invoke(before, "balance", FRIEND));
    assertTrue(echo.call.endsWith(",\"0xff\"]"), echo.call);
    assertEquals(number, ((CompletableFuture<?>) invoke(token, "balanceAsync", FRIEND)).join());
    Request<?> request = (Request<?>) invoke(token, "balanceRequest", FRIEND);
    assertTrue(request.isRepeatable());
    assertEquals(Wei.of(5), echo.request(request));
    assertEquals(Wei.of(5), invoke(token, "quote", 3, Wei.of(7)));
    assertTrue(echo.call.contains("\"value\":\"0x7\""), echo.call);
    invoke(token, "check", List.of(1L, 2L));
    assertEquals(AbiFunction.of("check(uint64[2])").encode(List.of(1, 2)), echo.data);
    echo.answer = AbiFunction.of("f() returns (uint112, uint112, uint32)").encodeResult(1, 2, 3);
    assertEquals("Reserves[first=1, second=2, time=3]", invoke(token, "reserves").toString());
    echo.answer = AbiFunction.of("f() returns (string)").encodeResult("Coin");
    assertEquals("Coin", invoke(token, "name"));
    assertEquals(
        AbiFunction.of("transfer(address,uint256)").encode(FRIEND, 9),
        ((deponent.client.Call) invoke(token, "transfer", FRIEND, Wei.of(9))).data());
    assertEquals(
        Wei.of(9), ((deponent.client.Call) invoke(token, "buy", 2, Wei.of(9))).value().get());
  }

  private static void fails(
      Class<? extends Throwable> kind,
      String message,
      Object token,
      String method,
      Object... arguments) {
    Throwable thrown =
        assertThrows(InvocationTargetException.class, () -> invoke(token, method, arguments))
            .getCause();
    assertEquals(kind, thrown.getClass(), thrown::toString);
    assertTrue(String.valueOf(thrown.getMessage()).contains(message), thrown.getMessage());
  }

  @Test
  void valuesThatDoNotFitAreRefusedWithTheirPlace() throws Exception {
    Object token = at(erc20(), new Echo());
    fails(
        misfit(),
        "check(uint64[2]) .window[1]: -1 does not fit uint64",
        token,
        "check",
        List.of(1L, -1L));
    fails(
        misfit(),
        "check(uint64[2]) .window: 1 elements do not fit uint64[2]",
        token,
        "check",
        List.of(1L));
    fails(misfit(), "balanceOf(address) .1: null is no value", token, "balanceOf", (Object) null);
  }

  private static Class<? extends Throwable> misfit() {
    try {
      AbiFunction.of("f(uint8)").encode(256);
      throw new AssertionError();
    } catch (IllegalArgumentException refused) {
      return refused.getClass();
    }
  }

  private static Log log(List<Hash> topics, Bytes data) {
    return new Log(
        FRIEND, topics, data, Hash.ZERO, 1, OptionalLong.empty(), Hash.ZERO, 0, 0, false);
  }

  @Test
  void logsAndRevertsBecomeRecords() throws Exception {
    Class<?> type = erc20();
    ContractEvent<?> transfer = (ContractEvent<?>) type.getField("TRANSFER").get(null);
    AbiEvent abi = AbiEvent.of("Transfer(address indexed from, address indexed to, uint256 value)");
    assertEquals(abi.topic(), transfer.abi().topic());
    Bytes value = AbiFunction.of("f() returns (uint256)").encodeResult(5);
    Log log = log(abi.topics(FRIEND, Address.ZERO), value);
    assertTrue(transfer.isIn(log));
    assertEquals(
        "Transfer[from=" + FRIEND + ", to=" + Address.ZERO + ", value=5]",
        transfer.decode(log).toString());
    ContractEvent<?> noted = (ContractEvent<?>) type.getField("NOTED").get(null);
    Bytes data =
        AbiFunction.of("f() returns (string, (address, uint8)[])")
            .encodeResult("hello", List.of(List.of(FRIEND, 3)));
    Hash topic = noted.abi().topics("dogs").get(1);
    assertEquals(
        "Noted[topic=" + topic + ", note=hello, shares=[Share[to=" + FRIEND + ", part=3]]]",
        noted.decode(log(noted.abi().topics("dogs"), data)).toString());
    ContractError<?> low = (ContractError<?>) type.getField("LOW").get(null);
    Abi all = (Abi) type.getField("ABI").get(null);
    Bytes revert = low.abi().encode(7, "poor");
    RevertException thrown = RevertException.of(3, "execution reverted", revert, all);
    assertEquals("Low(7, poor)", thrown.reason());
    assertEquals("Low[have=7, why=poor]", low.in(thrown).orElseThrow().toString());
    RevertException other = RevertException.of(3, "execution reverted", Bytes.EMPTY, all);
    assertTrue(low.in(other).isEmpty());
    RpcException told = new RpcException(-32000, "reverted", "\"" + revert + "\"");
    assertEquals("Low[have=7, why=poor]", low.in(told).orElseThrow().toString());
  }

  @Test
  void theCodeThatCreatesAContractIsFollowedByArguments() throws Exception {
    Class<?> type = erc20();
    Class<?> share = type.getClassLoader().loadClass("app.Erc20Contract$Shares");
    Object one = RandomAbi.record(List.of(FRIEND, BigInteger.TWO), share);
    Bytes code = Bytes.of("0x6000");
    Object made = method(type, "initCode").invoke(null, code, "Coin", List.of(one));
    Abi abi = (Abi) type.getField("ABI").get(null);
    assertEquals(abi.constructor().encode(code, "Coin", List.of(List.of(FRIEND, 2))), made);
  }

  @Test
  void aJsonAbiGivesAWholeClass() throws Exception {
    Compiled compiled =
        Compiled.of(
            Map.of(
                "app.Coin",
                """
                package app;
                @deponent.client.Contract(abi = "Coin.json")
                interface Coin {
                  @deponent.client.View
                  deponent.eth.Wei balanceOf(deponent.eth.Address owner);
                }
                """),
            "-Adeponent.abi=src/test/abi");
    Class<?> type = compiled.loader().loadClass("app.CoinContract");
    String methods =
        Arrays.stream(type.getDeclaredMethods())
            .filter(one -> java.lang.reflect.Modifier.isPublic(one.getModifiers()))
            .filter(one -> !one.isBridge())
            .map(
                one ->
                    one.getReturnType().getSimpleName()
                        + " "
                        + one.getName()
                        + Arrays.stream(one.getParameterTypes()).map(Class::getSimpleName).toList())
            .sorted()
            .collect(Collectors.joining("\n"));
    assertEquals(
        """
        Address address[]
        Address sender[]
        Bytes initCode[String, BigInteger]
        CoinContract at[Account, Address]
        CoinContract at[Account, Receipt]
        CoinContract at[BlockId]
        CoinContract at[Client, Address]
        List echo[List]
        PendingTransaction buy[int, Wei]
        PendingTransaction deploy[Account, String, BigInteger, Wei]
        PendingTransaction give[Round]
        PendingTransaction transfer[Address, BigInteger]
        PendingTransaction transfer[Grant]
        String name[]
        String toString[]
        SupplyResult supply[]
        Wei balanceOf[Address]""",
        methods);
    String records =
        Arrays.stream(type.getDeclaredClasses())
            .filter(Class::isRecord)
            .map(
                one ->
                    one.getSimpleName()
                        + Arrays.stream(one.getRecordComponents())
                            .map(part -> part.getType().getSimpleName() + " " + part.getName())
                            .toList())
            .sorted()
            .collect(Collectors.joining("\n"));
    assertEquals(
        """
        Closed[List window, String memo]
        Grant[Address to, BigInteger amount]
        Granted[Hash memo, Round round]
        InsufficientBalance[Address sender, BigInteger balance, BigInteger needed]
        Round[String memo, List grants, List window]
        SupplyResult[BigInteger amount, int decimals]
        Transfer[Address from, Address to, BigInteger value]""",
        records);
  }

  @Test
  void namesThatJavaHasOtherwiseAreChanged() throws Exception {
    String json =
        """
        [{"type":"function","name":"set","inputs":[{"name":"in","type":"uint256"}],"outputs":[],
          "stateMutability":"view"},
         {"type":"function","name":"set","inputs":[{"name":"","type":"uint128"}],"outputs":[],
          "stateMutability":"view"},
         {"type":"function","name":"toString","inputs":[],"outputs":[{"name":"","type":"string"}],
          "stateMutability":"view"},
         {"type":"function","name":"default","inputs":[{"name":"_class","type":"tuple",
          "components":[{"name":"hashCode","type":"bool"},{"name":"_a","type":"bool"},
          {"name":"a","type":"bool"},{"name":"x) {} void f(int y","type":"bool"}],"internalType":"struct String"}],
          "outputs":[{"name":"","type":"bool"},{"name":"","type":"bool"}],"stateMutability":"pure"},
         {"type":"function","name":"set_uint120","inputs":[{"name":"a","type":"uint256"}],
          "outputs":[],"stateMutability":"view"},
         {"type":"function","name":"set","inputs":[{"name":"a) {} int b","type":"uint120"}],
          "outputs":[],"stateMutability":"view"},
         {"type":"function","name":"wait","inputs":[],"outputs":[],"stateMutability":"view"},
         {"type":"function","name":"wait_","inputs":[],"outputs":[],"stateMutability":"view"},
         {"type":"event","name":"_","inputs":[],"anonymous":false},
         {"type":"event","name":"set","inputs":[],"anonymous":false},
         {"type":"event","name":"Set","inputs":[{"name":"a","type":"bool","indexed":false}],
          "anonymous":false},
         {"type":"error","name":"Set","inputs":[]}]
        """;
    Path folder = Files.createTempDirectory("abi");
    Path file = Files.writeString(folder.resolve("Odd.json"), json);
    Compiled compiled;
    try {
      compiled =
          Compiled.of(
              Map.of("Odd", "@deponent.client.Contract(abi = \"Odd.json\") interface Odd {}"),
              "-Adeponent.abi=" + folder);
    } finally {
      Files.delete(file);
      Files.delete(folder);
    }
    compiled.loader().loadClass("OddContract");
    String source = compiled.source("OddContract");
    for (String part :
        List.of(
            " void set(BigInteger in_) {",
            " void set_uint128(BigInteger value1) {",
            " void set_uint120(BigInteger a) {",
            " void set_uint120_2(BigInteger value1) {",
            " void wait_() {",
            " void wait__2() {",
            "record __() {}",
            " String toString_() {",
            " DefaultResult default_(StringStruct class_) {",
            "record StringStruct(boolean hashCode_, boolean a, boolean a2, boolean value4) {}",
            "record DefaultResult(boolean value1, boolean value2) {}",
            "record Set() {}",
            "record SetEvent(boolean a) {}",
            "record SetError() {}",
            "> SET =",
            "> SET_EVENT =",
            "> SET_ERROR =")) {
      assertTrue(source.contains(part), () -> part + " is not in " + source);
    }
  }

  @Test
  void typesOfAnInterfaceMayHaveNamesOfTheLibrary() throws Exception {
    String source =
        """
        package app;
        import deponent.client.*;
        public interface Account {
          @Contract
          interface Wallet {
            @View("all((address to, bytes data)[] calls, uint8[] list) returns ((bytes[] parts))")
            Bytes all(java.util.List<Call> calls, java.util.List<Integer> list);
            record Call(deponent.eth.Address to, deponent.eth.Bytes data) {}
            record Bytes(java.util.List<deponent.eth.Bytes> parts) {}
            @Event("List(bytes32 a)") record List(deponent.eth.Hash a) {}
            @deponent.client.Error("Override(string a)") record Override(java.lang.String a) {}
          }
        }
        """;
    Compiled compiled = Compiled.of(Map.of("app.Account", source));
    Class<?> type = compiled.loader().loadClass("app.WalletContract");
    Echo echo = new Echo();
    Object wallet = at(type, echo);
    Class<?> callType = type.getClassLoader().loadClass("app.Account$Wallet$Call");
    Object call = RandomAbi.record(List.of(FRIEND, Bytes.of("0x12")), callType);
    AbiFunction all = AbiFunction.of("all((address,bytes)[],uint8[]) returns ((bytes[] parts))");
    echo.answer = all.encodeResult(List.of(List.of(Bytes.of("0x34"))));
    Object result = invoke(wallet, "all", List.of(call), List.of(1, 2));
    assertEquals("Bytes[parts=[0x34]]", result.toString());
    Bytes expected = all.encode(List.of(List.of(FRIEND, Bytes.of("0x12"))), List.of(1, 2));
    assertEquals(expected, echo.data);
  }

  /** Another processor, which writes a record when it is run first. */
  private static final class Writer extends AbstractProcessor {
    @Override
    public Set<String> getSupportedAnnotationTypes() {
      return Set.of("*");
    }

    @Override
    public SourceVersion getSupportedSourceVersion() {
      return SourceVersion.latestSupported();
    }

    @Override
    public boolean process(Set<? extends TypeElement> annotations, RoundEnvironment round) {
      if (processingEnv.getElementUtils().getTypeElement("app.Point") == null) {
        try (var out = processingEnv.getFiler().createSourceFile("app.Point").openWriter()) {
          out.write("package app; public record Point(int x, int y) {}");
        } catch (IOException failed) {
          throw new UncheckedIOException(failed);
        }
      }
      return false;
    }
  }

  @Test
  void recordsThatAnotherProcessorWritesAreWaitedFor() throws Exception {
    Compiled compiled =
        Compiled.of(
            List.of(new Writer(), new ContractProcessor()),
            Map.of(
                "app.Map",
                """
                package app;
                import deponent.client.*;
                @Contract interface Map {
                  @View("at(uint8) returns ((uint8 x, uint8 y))") Point at(int index);
                }
                """),
            "-Xlint:-processing");
    compiled.loader().loadClass("app.MapContract");
    assertTrue(compiled.source("app.MapContract").contains("new app.Point("));
  }

  @Test
  void anApplicationOfModulesNeedsNoOtherLibrary() throws Exception {
    String separator = System.getProperty("path.separator");
    List<String> modules = new ArrayList<>();
    for (Class<?> one : List.of(Bytes.class, Request.class, Client.class)) {
      modules.add(
          Path.of(one.getProtectionDomain().getCodeSource().getLocation().toURI()).toString());
    }
    Compiled compiled =
        Compiled.of(
            Map.of(
                "module-info",
                "module app { requires transitive deponent.client; exports app; }",
                "app.Coin",
                """
                package app;
                @deponent.client.Contract(abi = "Coin.json") public interface Coin {}
                """),
            "-Adeponent.abi=src/test/abi",
            "--module-path",
            String.join(separator, modules));
    assertEquals(List.of(), compiled.diagnostics);
  }

  @Test
  void theExampleOfTheReadmeCompiles() throws Exception {
    String readme = Files.readString(Path.of("../README.md"));
    String example = readme.substring(readme.indexOf("@Contract interface Erc20 {"));
    example = example.substring(0, example.indexOf("```"));
    int end = example.indexOf("\n}\n") + 3;
    String source =
        """
        package app;
        import deponent.client.*;
        import deponent.client.Error;
        import deponent.eth.*;
        import deponent.rpc.Request;
        import java.math.BigInteger;
        import java.util.List;
        import java.util.concurrent.CompletableFuture;
        abstract class Readme {
        abstract void top(BigInteger amount);
        """
            + example.substring(0, end)
            + "void use(Client eth, Account me, Address address, Address friend) {"
            + example.substring(end)
            + "}}";
    Compiled.of(Map.of("app.Readme", source)).loader().loadClass("app.Erc20Contract");
  }

  @Test
  void codeThatIsLongerThanAConstantIsKept() throws Exception {
    String digits = "60".repeat(70_000);
    String json = "{\"abi\":[],\"bytecode\":{\"object\":\"0x" + digits + "\"}}";
    Path folder = Files.createTempDirectory("abi");
    Path file = Files.writeString(folder.resolve("Long.json"), json);
    Compiled compiled;
    try {
      compiled =
          Compiled.of(
              Map.of("Long1", "@deponent.client.Contract(abi = \"Long.json\") interface Long1 {}"),
              "-Adeponent.abi=" + folder);
    } finally {
      Files.delete(file);
      Files.delete(folder);
    }
    Method initCode = compiled.loader().loadClass("Long1Contract").getMethod("initCode");
    initCode.setAccessible(true);
    assertEquals(Bytes.of(digits), initCode.invoke(null));
  }
}
