import static java.math.BigInteger.ONE;
import static java.math.BigInteger.ZERO;

import java.math.BigInteger;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;
import org.web3j.abi.EventEncoder;
import org.web3j.abi.FunctionEncoder;
import org.web3j.abi.FunctionReturnDecoder;
import org.web3j.abi.TypeReference;
import org.web3j.abi.datatypes.Address;
import org.web3j.abi.datatypes.Event;
import org.web3j.abi.datatypes.Function;
import org.web3j.abi.datatypes.Type;
import org.web3j.abi.datatypes.Utf8String;
import org.web3j.abi.datatypes.generated.Uint256;
import org.web3j.crypto.AccessListObject;
import org.web3j.crypto.Blob;
import org.web3j.crypto.Credentials;
import org.web3j.crypto.RawTransaction;
import org.web3j.crypto.TransactionEncoder;
import org.web3j.protocol.Web3j;
import org.web3j.protocol.core.DefaultBlockParameterName;
import org.web3j.protocol.core.Request;
import org.web3j.protocol.core.Response;
import org.web3j.protocol.core.methods.request.EthFilter;
import org.web3j.protocol.core.methods.request.Transaction;
import org.web3j.protocol.core.methods.response.EthCall;
import org.web3j.protocol.core.methods.response.EthSendTransaction;
import org.web3j.protocol.core.methods.response.Log;
import org.web3j.protocol.core.methods.response.TransactionReceipt;
import org.web3j.protocol.http.HttpService;
import org.web3j.protocol.websocket.WebSocketService;
import org.web3j.tx.RawTransactionManager;
import org.web3j.tx.response.PollingTransactionReceiptProcessor;
import org.web3j.utils.Numeric;

/**
 * A day with web3j on a chain for tests: a contract, its errors and events, each type of
 * transaction, a snapshot, a reorganisation.
 *
 * <pre>java -cp 'JARS/*' Day.java http://127.0.0.1:8545 ../Till.json</pre>
 */
public final class Day {
  static final long CHAIN = 31337;
  static final BigInteger GAS = BigInteger.valueOf(1_000_000);
  static final BigInteger GWEI = BigInteger.valueOf(1_000_000_000);
  private static final Credentials OWNER =
      Credentials.create("0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80");
  static final Credentials PAYER =
      Credentials.create("0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d");
  static final String OTHER = "0x3c44cdddb6a900fa2b585dd299e03d12fa4293bc";
  private static final Event PAID =
      new Event(
          "Paid",
          List.of(
              new TypeReference<Address>(true) {},
              new TypeReference<Uint256>() {},
              new TypeReference<Utf8String>() {}));

  private final HttpService service;
  final Web3j web3;
  private final String url;
  String till;

  private Day(String url) {
    this.url = url;
    // A blob takes its time on a busy machine.
    var client = HttpService.getOkHttpClientBuilder().readTimeout(Duration.ofMinutes(5)).build();
    service = new HttpService(url, client);
    web3 = Web3j.build(service);
  }

  public static void main(String[] arguments) throws Exception {
    run(arguments);
    System.out.println("{\"done\": [\"web3j\"]}");
    System.exit(0);
  }

  static Day run(String[] arguments) throws Exception {
    // Each version has another library of JSON.
    String till = Files.readString(Path.of(arguments[1]));
    var code = Pattern.compile("\"bytecode\":\\s*\"(\\w+)\"").matcher(till);
    is(true, code.find());
    Day day = new Day(arguments[0]);
    day.contract(code.group(1));
    day.errors();
    day.events();
    day.transactions();
    day.turns();
    return day;
  }

  static void is(Object expected, Object found) {
    if (!expected.equals(found)) {
      throw new AssertionError("expected " + expected + ", not " + found);
    }
  }

  static BigInteger number(long number) {
    return BigInteger.valueOf(number);
  }

  private RawTransactionManager of(Credentials account) {
    return new RawTransactionManager(web3, account, CHAIN);
  }

  private TransactionReceipt mined(EthSendTransaction sent) throws Exception {
    if (sent.hasError()) throw new AssertionError(sent.getError().getMessage());
    return new PollingTransactionReceiptProcessor(web3, 20, 6000)
        .waitForTransactionReceipt(sent.getTransactionHash());
  }

  private EthSendTransaction send(Credentials from, String to, String data, long value)
      throws Exception {
    return send(from, to, data, number(value));
  }

  private EthSendTransaction send(Credentials from, String to, String data, BigInteger value)
      throws Exception {
    BigInteger fee = GWEI.multiply(number(3));
    return of(from).sendEIP1559Transaction(CHAIN, ONE, fee, GAS, to, data, value, to == null);
  }

  private static String payment(String note) {
    return FunctionEncoder.encode(new Function("pay", List.of(new Utf8String(note)), List.of()));
  }

  TransactionReceipt pay(String note, long value) throws Exception {
    return mined(send(PAYER, till, payment(note), value));
  }

  private EthCall call(String data, long value) throws Exception {
    Transaction call =
        new Transaction(PAYER.getAddress(), null, null, null, till, number(value), data);
    return web3.ethCall(call, DefaultBlockParameterName.LATEST).send();
  }

  private BigInteger read(String name, Type<?>... arguments) throws Exception {
    List<TypeReference<?>> outputs = List.of(new TypeReference<Uint256>() {});
    Function function = new Function(name, Arrays.asList(arguments), outputs);
    String found = call(FunctionEncoder.encode(function), 0).getValue();
    var values = FunctionReturnDecoder.decode(found, function.getOutputParameters());
    return (BigInteger) values.get(0).getValue();
  }

  BigInteger paid() throws Exception {
    return read("paid", new Address(PAYER.getAddress()));
  }

  private void contract(String code) throws Exception {
    String least = FunctionEncoder.encodeConstructor(List.of(new Uint256(100)));
    till = mined(send(OWNER, null, code + least, 0)).getContractAddress();
    is(number(100), read("least"));
    TransactionReceipt receipt = pay("coffee", 150);
    is("0x1", receipt.getStatus());
    is("coffee", note(receipt.getLogs().get(0).getData()));
    is(number(150), paid());
  }

  private static String note(String data) {
    var values = FunctionReturnDecoder.decode(data, PAID.getNonIndexedParameters());
    return (String) values.get(1).getValue();
  }

  private void errors() throws Exception {
    EthCall poor = call(payment("tea"), 1);
    is(true, poor.isReverted());
    String error = FunctionEncoder.encode(
        new Function("TooLittle", List.of(new Uint256(1), new Uint256(100)), List.of()));
    is(error, poor.getError().getData().toString().replace("\"", ""));
    Function change = new Function("setLeast", List.of(new Uint256(1)), List.of());
    EthCall refused = call(FunctionEncoder.encode(change), 0);
    is("execution reverted: only the owner", refused.getRevertReason());
    is("0x0", mined(send(PAYER, till, payment("tea"), 1)).getStatus());
    BigInteger rich = BigInteger.TEN.pow(23);
    EthSendTransaction sent = send(PAYER, OTHER, "", rich);
    is(true, sent.getError().getMessage().toLowerCase().contains("insufficient funds"));
  }

  private void events() throws Exception {
    BlockingQueue<String> heard = new LinkedBlockingQueue<>();
    WebSocketService socket = new WebSocketService(url.replace("http", "ws"), false);
    socket.connect();
    Web3j over = Web3j.build(socket);
    String topic = EventEncoder.encode(PAID);
    var listening =
        over.logsNotifications(List.of(till), List.of(topic))
            .subscribe(found -> heard.add(note(found.getParams().getResult().getData())));
    // Again and again, since it may begin to listen after the first one.
    String first = null;
    for (int tries = 0; first == null && tries < 1000; tries++) {
      pay("tea", 200);
      first = heard.poll(100, TimeUnit.MILLISECONDS);
    }
    is("tea", first);
    listening.dispose();
    socket.close();

    EthFilter filter =
        new EthFilter(DefaultBlockParameterName.EARLIEST, DefaultBlockParameterName.LATEST, till);
    filter.addSingleTopic(topic);
    var logs = web3.ethGetLogs(filter).send().getLogs();
    is("coffee", note(((Log) logs.get(0).get()).getData()));
    is(true, logs.size() >= 2);
  }

  private void transactions() throws Exception {
    RawTransactionManager payer = of(PAYER);
    BigInteger price = web3.ethGasPrice().send().getGasPrice();
    TransactionReceipt receipt = mined(payer.sendTransaction(price, GAS, OTHER, "", ONE, false));
    is("0x0", receipt.getType());
    var access = List.of(new AccessListObject(OTHER, List.of("0x" + "00".repeat(32))));
    receipt =
        signed(
            RawTransaction.createTransaction(
                CHAIN, nonce(PAYER), price, GAS, OTHER, ONE, "", access));
    is("0x1", receipt.getType());
    is("0x2", pay("tea", 200).getType());

    // EIP-4844, with a blob.
    BigInteger fee = price.multiply(number(2));
    List<Blob> blobs = List.of(new Blob(new byte[131_072]));
    receipt =
        signed(
            RawTransaction.createTransaction(
                blobs, CHAIN, nonce(PAYER), ONE, fee, GAS, OTHER, ZERO, "", GWEI));
    is("0x3", receipt.getType());
    is("0x1", receipt.getStatus());
  }

  TransactionReceipt signed(RawTransaction transaction) throws Exception {
    String bytes = Numeric.toHexString(TransactionEncoder.signMessage(transaction, PAYER));
    return mined(web3.ethSendRawTransaction(bytes).send());
  }

  BigInteger nonce(Credentials account) throws Exception {
    return web3.ethGetTransactionCount(account.getAddress(), DefaultBlockParameterName.PENDING)
        .send()
        .getTransactionCount();
  }

  /** An answer of any kind, for methods without a name in web3j. */
  public static final class Answer extends Response<Object> {}

  private Object ask(String method, Object... params) throws Exception {
    Answer answer = new Request<>(method, Arrays.asList(params), service, Answer.class).send();
    if (answer.hasError()) throw new AssertionError(answer.getError().getMessage());
    return answer.getResult();
  }

  private void turns() throws Exception {
    Object snapshot = ask("evm_snapshot");
    BigInteger before = paid();
    pay("for nothing", 200);
    is(before.add(number(200)), paid());
    is(true, ask("evm_revert", snapshot));
    is(before, paid());
    String hash = pay("for nothing", 200).getTransactionHash();
    ask("anvil_reorg", 1, List.of());
    is(before, paid());
    is(false, web3.ethGetTransactionReceipt(hash).send().getTransactionReceipt().isPresent());
  }
}
