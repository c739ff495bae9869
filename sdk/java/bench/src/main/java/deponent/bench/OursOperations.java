package deponent.bench;

import static deponent.bench.Inputs.AMOUNT;

import deponent.engine.Witness;
import deponent.eth.AbiFunction;
import deponent.eth.AbiType;
import deponent.eth.Address;
import deponent.eth.Bytes;
import deponent.eth.Hash;
import deponent.eth.Hex;
import deponent.eth.Keccak256;
import deponent.eth.Rlp;
import deponent.eth.RlpWriter;
import deponent.eth.Signature;
import deponent.eth.SignedTransaction;
import deponent.eth.Transaction;
import deponent.eth.Wei;
import deponent.wallet.PrivateKey;
import deponent.wallet.PublicKey;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;

/** The operations of this SDK. */
final class OursOperations {
  private static final String NESTED = "((uint256 a, string b)[] inners, bytes32 id)";

  private OursOperations() {}

  static Map<String, Operation> all() {
    Map<String, Operation> all = new LinkedHashMap<>();
    abi(all);
    hashes(all);
    rlp(all);
    all.putAll(keys());
    witnesses(all);
    return all;
  }

  private static void abi(Map<String, Operation> all) {
    AbiFunction transfer = AbiFunction.of("transfer(address to, uint256 value)");
    Address friend = Address.of(Inputs.FRIEND);
    all.put(
        Inputs.TRANSFER_HEX,
        Operation.of(() -> transfer.encodeHex(friend, AMOUNT), Function.identity()));
    all.put(
        Inputs.TRANSFER_BYTES,
        Operation.of(() -> transfer.encode(friend, AMOUNT), Bytes::toString));
    byte[] buffer = new byte[68];
    all.put(
        Inputs.TRANSFER_BUFFER,
        Operation.of(
            () -> {
              transfer.encodeTo(buffer, 0, friend, AMOUNT);
              return buffer;
            },
            Hex::encode));
    AbiFunction nested = AbiFunction.of("processNested(" + NESTED + " outer)");
    List<Object> outer =
        List.of(
            List.of(List.of(BigInteger.ONE, "inner1"), List.of(BigInteger.TWO, "inner2")),
            Bytes.of(Inputs.id()));
    all.put(Inputs.NESTED_ENCODE, Operation.of(() -> nested.encodeHex(outer), Function.identity()));
    AbiType type = AbiType.of("(" + NESTED + ")");
    byte[] encoded = type.encode(List.of(outer)).toBytes();
    all.put(
        Inputs.NESTED_DECODE,
        Operation.of(() -> type.decode(encoded), value -> type.encode(value).toString()));
  }

  private static void hashes(Map<String, Operation> all) {
    byte[] word = Inputs.bytes(32);
    byte[] kilobyte = Inputs.bytes(1_024);
    all.put(Inputs.KECCAK_32, Operation.of(() -> Keccak256.hash(word), Hash::toString));
    all.put(Inputs.KECCAK_1024, Operation.of(() -> Keccak256.hash(kilobyte), Hash::toString));
  }

  private static void rlp(Map<String, Operation> all) {
    List<Rlp> items = new ArrayList<>();
    for (byte[] item : Inputs.items()) {
      items.add(new Rlp.Data(Bytes.of(item)));
    }
    Rlp tree =
        new Rlp.Items(List.of(new Rlp.Items(items), new Rlp.Data(Bytes.of(Inputs.suffix()))));
    byte[] encoded = tree.encode();
    all.put(Inputs.RLP_ENCODE, Operation.of(tree::encode, Hex::encode));
    all.put(
        Inputs.RLP_DECODE,
        Operation.of(() -> Rlp.decode(encoded), rlp -> Hex.encode(rlp.encode())));
  }

  /** Those that need the curve. */
  static Map<String, Operation> keys() {
    PrivateKey key = PrivateKey.of(Inputs.KEY);
    Hash hash = Hash.of(Inputs.bytes(32));
    Signature signature = key.sign(hash);
    Transaction transaction =
        Transaction.to(Address.of(Inputs.FRIEND))
            .chainId(Inputs.CHAIN)
            .value(Wei.of(1))
            .gasLimit(Inputs.GAS)
            .fees(Wei.of(Inputs.FEE), Wei.of(Inputs.TIP))
            .build();
    Map<String, Operation> all = new LinkedHashMap<>();
    all.put(Inputs.SIGN_HASH, Operation.of(() -> key.sign(hash), one -> one.toBytes().toString()));
    all.put(
        Inputs.SIGN_TRANSACTION,
        Operation.of(
            () -> {
              SignedTransaction signed = key.sign(transaction);
              return signed.encode();
            },
            Bytes::toString));
    all.put(
        Inputs.RECOVER,
        Operation.of(
            () -> PublicKey.recover(hash, signature).orElseThrow().address(),
            address -> address.toString().toLowerCase()));
    return all;
  }

  /** A witness of 1 MB: 1,500 nodes of a branch's size, and 40 codes. */
  private static void witnesses(Map<String, Operation> all) {
    List<Bytes> nodes = new ArrayList<>();
    for (int i = 0; i < 1_500; i++) {
      byte[] node = Inputs.bytes(532);
      node[0] = (byte) i;
      node[1] = (byte) (i >> 8);
      nodes.add(Bytes.of(node));
    }
    List<Bytes> codes = new ArrayList<>();
    for (int i = 0; i < 40; i++) {
      codes.add(Bytes.of(Inputs.bytes(5_000 + i)));
    }
    Bytes header = Bytes.of(new RlpWriter().list().add(Inputs.bytes(600)).end().toBytes());
    try (Witness witness = Witness.of(nodes, codes, List.of(header))) {
      byte[] ssz = witness.toSsz();
      byte[] rlp = witness.toRlp();
      byte[] json = witness.toJson();
      all.put(
          Inputs.WITNESS_SSZ, Operation.of(() -> iterated(Witness.ofSsz(ssz)), Object::toString));
      all.put(
          Inputs.WITNESS_RLP, Operation.of(() -> iterated(Witness.ofRlp(rlp)), Object::toString));
      all.put(
          Inputs.WITNESS_JSON,
          Operation.of(() -> iterated(Witness.ofJson(json)), Object::toString));
    }
  }

  /** The sum of the first bytes of all items. */
  private static Long iterated(Witness witness) {
    long sum = 0;
    try (witness) {
      for (List<ByteBuffer> items :
          List.<List<ByteBuffer>>of(witness.nodes(), witness.codes(), witness.headers())) {
        for (ByteBuffer item : items) {
          sum += item.get(0) + item.remaining();
        }
      }
    }
    return sum;
  }
}
