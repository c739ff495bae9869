package deponent.bench;

import static deponent.bench.Inputs.AMOUNT;

import deponent.eth.Hex;
import java.math.BigInteger;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import org.web3j.abi.FunctionEncoder;
import org.web3j.abi.FunctionReturnDecoder;
import org.web3j.abi.TypeReference;
import org.web3j.abi.Utils;
import org.web3j.abi.datatypes.Address;
import org.web3j.abi.datatypes.DynamicArray;
import org.web3j.abi.datatypes.DynamicStruct;
import org.web3j.abi.datatypes.Type;
import org.web3j.abi.datatypes.Utf8String;
import org.web3j.abi.datatypes.generated.Bytes32;
import org.web3j.abi.datatypes.generated.Uint256;
import org.web3j.abi.datatypes.reflection.Parameterized;
import org.web3j.crypto.Credentials;
import org.web3j.crypto.Hash;
import org.web3j.crypto.Keys;
import org.web3j.crypto.RawTransaction;
import org.web3j.crypto.Sign;
import org.web3j.crypto.TransactionEncoder;
import org.web3j.rlp.RlpDecoder;
import org.web3j.rlp.RlpEncoder;
import org.web3j.rlp.RlpList;
import org.web3j.rlp.RlpString;
import org.web3j.rlp.RlpType;

/** The operations of web3j. Its values are made before, which an application does for each call. */
final class Web3jOperations {
  private Web3jOperations() {}

  static Map<String, Operation> all() {
    Map<String, Operation> all = new LinkedHashMap<>();
    abi(all);
    byte[] word = Inputs.bytes(32);
    byte[] kilobyte = Inputs.bytes(1_024);
    all.put(Inputs.KECCAK_32, Operation.of(() -> Hash.sha3(word), Hex::encode));
    all.put(Inputs.KECCAK_1024, Operation.of(() -> Hash.sha3(kilobyte), Hex::encode));
    rlp(all);
    keys(all);
    return all;
  }

  /** The struct of a nested call. */
  public static final class Inner extends DynamicStruct {
    /** With its members. */
    public Inner(Uint256 a, Utf8String b) {
      super(a, b);
    }
  }

  /** The struct around it. */
  public static final class Outer extends DynamicStruct {
    /** With its members. */
    public Outer(@Parameterized(type = Inner.class) DynamicArray<Inner> inners, Bytes32 id) {
      super(inners, id);
    }
  }

  private static void abi(Map<String, Operation> all) {
    var transfer =
        new org.web3j.abi.datatypes.Function(
            "transfer", List.of(new Address(Inputs.FRIEND), new Uint256(AMOUNT)), List.of());
    all.put(
        Inputs.TRANSFER_HEX,
        Operation.of(() -> FunctionEncoder.encode(transfer), Function.identity()));
    Inner first = new Inner(new Uint256(BigInteger.ONE), new Utf8String("inner1"));
    Inner second = new Inner(new Uint256(BigInteger.TWO), new Utf8String("inner2"));
    Outer outer =
        new Outer(new DynamicArray<>(Inner.class, first, second), new Bytes32(Inputs.id()));
    var nested = new org.web3j.abi.datatypes.Function("processNested", List.of(outer), List.of());
    all.put(
        Inputs.NESTED_ENCODE,
        Operation.of(() -> FunctionEncoder.encode(nested), Function.identity()));
    String encoded = "0x" + FunctionEncoder.encodeConstructor(List.of(outer));
    List<TypeReference<Type>> types = Utils.convert(List.of(TypeReference.create(Outer.class)));
    all.put(
        Inputs.NESTED_DECODE,
        Operation.of(
            () -> FunctionReturnDecoder.decode(encoded, types),
            values -> "0x" + FunctionEncoder.encodeConstructor(values)));
  }

  private static void rlp(Map<String, Operation> all) {
    List<RlpType> items = new ArrayList<>();
    for (byte[] item : Inputs.items()) {
      items.add(RlpString.create(item));
    }
    RlpList tree = new RlpList(new RlpList(items), RlpString.create(Inputs.suffix()));
    byte[] encoded = RlpEncoder.encode(tree);
    all.put(Inputs.RLP_ENCODE, Operation.of(() -> RlpEncoder.encode(tree), Hex::encode));
    all.put(
        Inputs.RLP_DECODE,
        Operation.of(
            () -> RlpDecoder.decode(encoded),
            list -> Hex.encode(RlpEncoder.encode(list.getValues().get(0)))));
  }

  private static void keys(Map<String, Operation> all) {
    Credentials credentials = Credentials.create(Inputs.KEY);
    byte[] hash = Inputs.bytes(32);
    all.put(
        Inputs.SIGN_HASH,
        Operation.of(
            () -> Sign.signMessage(hash, credentials.getEcKeyPair(), false),
            one -> Hex.encode(joined(one))));
    RawTransaction transaction =
        RawTransaction.createTransaction(
            Inputs.CHAIN,
            BigInteger.ZERO,
            BigInteger.valueOf(Inputs.GAS),
            Inputs.FRIEND,
            BigInteger.ONE,
            "",
            BigInteger.valueOf(Inputs.TIP),
            BigInteger.valueOf(Inputs.FEE));
    all.put(
        Inputs.SIGN_TRANSACTION,
        Operation.of(() -> TransactionEncoder.signMessage(transaction, credentials), Hex::encode));
    Sign.SignatureData signature = Sign.signMessage(hash, credentials.getEcKeyPair(), false);
    all.put(
        Inputs.RECOVER,
        Operation.of(
            () -> "0x" + Keys.getAddress(Sign.signedMessageHashToKey(hash, signature)),
            Function.identity()));
  }

  private static byte[] joined(Sign.SignatureData signature) {
    byte[] bytes = new byte[65];
    System.arraycopy(signature.getR(), 0, bytes, 0, 32);
    System.arraycopy(signature.getS(), 0, bytes, 32, 32);
    bytes[64] = signature.getV()[0];
    return bytes;
  }
}
