import deponent.bench.Brane;
import deponent.bench.Contender;
import deponent.bench.Inputs;
import deponent.bench.Operation;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.function.Function;
import java.util.function.Supplier;
import sh.brane.core.abi.Abi;
import sh.brane.core.abi.AbiDecoder;
import sh.brane.core.abi.AbiType;
import sh.brane.core.abi.FastAbiEncoder;
import sh.brane.core.abi.TypeSchema;
import sh.brane.core.crypto.Keccak256;
import sh.brane.core.crypto.PrivateKey;
import sh.brane.core.crypto.PrivateKeySigner;
import sh.brane.core.crypto.Signature;
import sh.brane.core.tx.Eip1559Transaction;
import sh.brane.core.types.Address;
import sh.brane.core.types.HexData;
import sh.brane.core.types.Wei;
import sh.brane.primitives.rlp.Rlp;
import sh.brane.primitives.rlp.RlpItem;
import sh.brane.primitives.rlp.RlpList;
import sh.brane.primitives.rlp.RlpString;
import sh.brane.rpc.BraneProvider;
import sh.brane.rpc.HttpBraneProvider;
import sh.brane.rpc.JsonRpcResponse;
import sh.brane.rpc.WebSocketConfig;
import sh.brane.rpc.WebSocketProvider;

/** Calls Brane. It is compiled when there are jars of it. */
public final class BraneAdapter implements Brane {
  private static final String ABI =
      """
      [{"type": "function", "name": "transfer", "stateMutability": "nonpayable", "outputs": [],
        "inputs": [{"name": "to", "type": "address"}, {"name": "value", "type": "uint256"}]},
       {"type": "function", "name": "processNested", "stateMutability": "pure", "outputs": [],
        "inputs": [{"name": "outer", "type": "tuple", "components": [
          {"name": "inners", "type": "tuple[]", "components": [
            {"name": "a", "type": "uint256"}, {"name": "b", "type": "string"}]},
          {"name": "id", "type": "bytes32"}]}]}]
      """;

  private static String hex(byte[] bytes) {
    return "0x" + HexFormat.of().formatHex(bytes);
  }

  @Override
  public Map<String, Operation> operations() {
    Map<String, Operation> all = new LinkedHashMap<>();
    transfer(all);
    nested(all);
    byte[] word = Inputs.bytes(32);
    byte[] kilobyte = Inputs.bytes(1_024);
    all.put(Inputs.KECCAK_32, Operation.of(() -> Keccak256.hash(word), BraneAdapter::hex));
    all.put(Inputs.KECCAK_1024, Operation.of(() -> Keccak256.hash(kilobyte), BraneAdapter::hex));
    rlp(all);
    keys(all);
    return all;
  }

  private static void transfer(Map<String, Operation> all) {
    Abi abi = Abi.fromJson(ABI);
    Address friend = new Address(Inputs.FRIEND);
    BigInteger amount = Inputs.AMOUNT;
    all.put(
        Inputs.TRANSFER_HEX,
        Operation.of(
            () -> abi.encodeFunction("transfer", friend, amount).data(), Function.identity()));
    List<AbiType> types =
        List.of(
            new sh.brane.core.abi.AddressType(friend), new sh.brane.core.abi.UInt(256, amount));
    all.put(
        Inputs.TRANSFER_BYTES,
        Operation.of(
            () -> FastAbiEncoder.encodeFunction("transfer(address,uint256)", types),
            BraneAdapter::hex));
    byte[] selector = HexFormat.of().parseHex("a9059cbb");
    Object[] values = types.toArray();
    ByteBuffer buffer = ByteBuffer.allocate(68);
    all.put(
        Inputs.TRANSFER_BUFFER,
        Operation.of(
            () -> {
              buffer.clear();
              FastAbiEncoder.encodeTo(selector, values, buffer);
              return buffer;
            },
            into -> hex(into.array())));
  }

  private static void nested(Map<String, Operation> all) {
    Abi abi = Abi.fromJson(ABI);
    List<Object> first = List.of(BigInteger.ONE, "inner1");
    List<Object> second = List.of(BigInteger.TWO, "inner2");
    Object[] arguments = {List.of(List.of(first, second), HexData.fromBytes(Inputs.id()))};
    all.put(
        Inputs.NESTED_ENCODE,
        Operation.of(
            () -> abi.encodeFunction("processNested", arguments).data(), Function.identity()));
    String data = abi.encodeFunction("processNested", arguments).data();
    byte[] encoded = HexFormat.of().parseHex(data.substring(10));
    TypeSchema inner =
        new TypeSchema.TupleSchema(
            List.of(new TypeSchema.UIntSchema(256), new TypeSchema.StringSchema()));
    List<TypeSchema> outer =
        List.of(
            new TypeSchema.TupleSchema(
                List.of(new TypeSchema.ArraySchema(inner, -1), new TypeSchema.BytesSchema(32))));
    all.put(
        Inputs.NESTED_DECODE,
        Operation.of(
            () -> AbiDecoder.decode(encoded, outer), types -> hex(FastAbiEncoder.encode(types))));
  }

  private static void rlp(Map<String, Operation> all) {
    List<RlpItem> items = new ArrayList<>();
    for (byte[] item : Inputs.items()) {
      items.add(RlpString.of(item));
    }
    RlpList tree = RlpList.of(RlpList.of(items), RlpString.of(Inputs.suffix()));
    byte[] encoded = Rlp.encode(tree);
    all.put(Inputs.RLP_ENCODE, Operation.of(() -> Rlp.encode(tree), BraneAdapter::hex));
    all.put(
        Inputs.RLP_DECODE,
        Operation.of(() -> Rlp.decode(encoded), item -> hex(Rlp.encode(item))));
  }

  private static void keys(Map<String, Operation> all) {
    PrivateKey key = PrivateKey.fromHex(Inputs.KEY);
    PrivateKeySigner signer = new PrivateKeySigner(Inputs.KEY);
    byte[] hash = Inputs.bytes(32);
    all.put(Inputs.SIGN_HASH, Operation.of(() -> key.sign(hash), BraneAdapter::joined));
    Eip1559Transaction transaction =
        new Eip1559Transaction(
            Inputs.CHAIN,
            0L,
            Wei.of(Inputs.TIP),
            Wei.of(Inputs.FEE),
            Inputs.GAS,
            new Address(Inputs.FRIEND),
            Wei.of(1),
            HexData.EMPTY,
            List.of());
    all.put(
        Inputs.SIGN_TRANSACTION,
        Operation.of(
            () -> {
              Signature signature = signer.signTransaction(transaction, Inputs.CHAIN);
              return transaction.encodeAsEnvelope(signature);
            },
            BraneAdapter::hex));
    Signature signature = key.sign(hash);
    all.put(
        Inputs.RECOVER,
        Operation.of(
            () -> PrivateKey.recoverAddress(hash, signature),
            address -> address.value().toLowerCase()));
  }

  private static String joined(Signature signature) {
    int parity = signature.v() % 27;
    HexFormat hex = HexFormat.of();
    return "0x"
        + hex.formatHex(signature.r())
        + hex.formatHex(signature.s())
        + hex.toHexDigits((byte) (27 + parity));
  }

  @Override
  public Contender webSocket(String url, boolean blocking) {
    WebSocketConfig.Builder config = WebSocketConfig.builder(url);
    if (blocking) {
      config.waitStrategy(WebSocketConfig.WaitStrategyType.LITE_BLOCKING);
    }
    return new OfWebSocket(WebSocketProvider.create(config.build()));
  }

  @Override
  public Contender http(String url) {
    return new OfHttp(HttpBraneProvider.builder(url).build());
  }

  private static void check(JsonRpcResponse response) {
    if (response.hasError() || response.result() == null) {
      throw new IllegalStateException(response.toString());
    }
  }

  private record OfWebSocket(WebSocketProvider provider) implements Contender {
    @Override
    public void call() {
      check(provider.send("eth_blockNumber", List.of()));
    }

    /** It has no JSON-RPC batch: its own name for calls that are written together. */
    @Override
    public void batch(int count) {
      together(count, () -> provider.sendAsyncBatch("eth_blockNumber", List.of()));
    }

    @Override
    public void pipelined(int count) {
      together(count, () -> provider.sendAsync("eth_blockNumber", List.of()));
    }

    private static void together(int count, Supplier<CompletableFuture<JsonRpcResponse>> one) {
      List<CompletableFuture<JsonRpcResponse>> all = new ArrayList<>(count);
      for (int i = 0; i < count; i++) {
        all.add(one.get());
      }
      for (CompletableFuture<JsonRpcResponse> response : all) {
        check(response.join());
      }
    }

    @Override
    public void close() {
      provider.close();
    }
  }

  private record OfHttp(BraneProvider provider) implements Contender {
    @Override
    public void call() {
      check(provider.send("eth_blockNumber", List.of()));
    }

    @Override
    public void close() {
      provider.close();
    }
  }
}
