package deponent.client;

import deponent.eth.AbiFunction;
import deponent.eth.AbiValues;
import deponent.eth.Address;
import deponent.eth.Bytes;
import deponent.eth.Hash;
import deponent.eth.MalformedException;
import deponent.eth.RevertException;
import deponent.eth.Signature;
import java.nio.ByteBuffer;

/**
 * Checks signatures on the chain: of contracts (EIP-1271), of contracts that may not be there yet
 * (EIP-6492), and of keys.
 */
final class SignatureCheck {
  private static final AbiFunction IS_VALID =
      AbiFunction.of("isValidSignature(bytes32 hash, bytes signature) view returns (bytes4)");

  /** What it returns for a signature: its own selector. */
  private static final Bytes VALID =
      Bytes.concat(IS_VALID.selector(), Bytes.of(new byte[Hash.SIZE - 4]));

  private static final AbiFunction WRAPPED =
      AbiFunction.of("wrapped(address factory, bytes factoryCalldata, bytes signature)");

  /** What ends a signature of a contract that may not be there yet. */
  private static final Bytes SUFFIX = Bytes.of("6492".repeat(16));

  /** The precompiled contract that finds the signer's address. */
  private static final Address RECOVER = Address.of("0x0000000000000000000000000000000000000001");

  /** The code before the inputs of the calls in {@link #twoCalls}. */
  private static final int CODE_BYTES = 103;

  private final Client client;
  private final BlockId block;

  SignatureCheck(Client client, BlockId block) {
    this.client = client;
    this.block = block;
  }

  /** Whether {@code account} signed {@code hash}. */
  boolean isValid(Address account, Hash hash, Bytes signature) {
    int unwrapped = signature.size() - SUFFIX.size();
    if (unwrapped >= 0 && signature.slice(unwrapped, signature.size()).equals(SUFFIX)) {
      return isOfFuture(account, hash, signature.slice(0, unwrapped));
    }
    return client.code(account, block).isEmpty()
        ? isOfKey(account, hash, signature)
        : isOfContract(account, hash, signature);
  }

  private boolean isOfContract(Address account, Hash hash, Bytes signature) {
    try {
      return isValid(client.call(Call.to(account).data(IS_VALID, hash, signature), block));
    } catch (RevertException refused) {
      return false;
    }
  }

  private static boolean isValid(Bytes result) {
    return result.size() >= Hash.SIZE && result.slice(0, Hash.SIZE).equals(VALID);
  }

  private boolean isOfKey(Address account, Hash hash, Bytes signature) {
    Signature parts;
    try {
      parts = Signature.of(signature);
    } catch (IllegalArgumentException none) {
      return false;
    }
    if (!parts.isCanonical()) {
      return false;
    }
    // The hash, v, r and s, in 32 bytes each.
    byte[] input = new byte[128];
    hash.copyTo(input, 0);
    input[63] = (byte) (27 + parts.yParity());
    signature.slice(0, 64).copyTo(input, 64);
    Bytes signer = client.call(Call.to(RECOVER).data(Bytes.of(input)), block);
    return signer.size() == Hash.SIZE
        && Address.of(signer.slice(12, Hash.SIZE).toBytes()).equals(account);
  }

  /** Checks a signature that says how its contract comes to be. */
  private boolean isOfFuture(Address account, Hash hash, Bytes wrapped) {
    AbiValues values;
    try {
      values = WRAPPED.decodeArguments(Bytes.concat(WRAPPED.selector(), wrapped));
    } catch (MalformedException other) {
      return false;
    }
    Bytes signature = values.bytes("signature");
    if (!client.code(account, block).isEmpty() && isOfContract(account, hash, signature)) {
      return true;
    }
    Bytes check = IS_VALID.encode(hash, signature);
    Bytes code =
        twoCalls(values.address("factory"), values.bytes("factoryCalldata"), account, check);
    try {
      Bytes result = client.call(Call.create(code), block);
      return result.size() == 64 && result.at(31) == 1 && isValid(result.slice(32, 64));
    } catch (RevertException refused) {
      return false;
    }
  }

  /**
   * Init code that calls {@code first}, whatever becomes of it, and then reads {@code second}. It
   * returns 1 if that returned at least 32 bytes, else 0, and these bytes.
   */
  private static Bytes twoCalls(Address first, Bytes data, Address second, Bytes more) {
    ByteBuffer code = ByteBuffer.allocate(CODE_BYTES + data.size() + more.size());
    copy(code, CODE_BYTES, data.size());
    // PUSH0 twice for no output, PUSH4 the input's length, PUSH0 twice for its place and no ether,
    // PUSH20 the address, GAS, CALL, POP.
    code.put(bytes(0x5f, 0x5f, 0x63)).putInt(data.size()).put(bytes(0x5f, 0x5f, 0x73));
    code.put(first.toBytes()).put(bytes(0x5a, 0xf1, 0x50));
    copy(code, CODE_BYTES + data.size(), more.size());
    // PUSH1 32 of output at PUSH1 64, PUSH4 the input's length, PUSH0 for its place, PUSH20 the
    // address, GAS, STATICCALL.
    code.put(bytes(0x60, 32, 0x60, 64, 0x63)).putInt(more.size()).put(bytes(0x5f, 0x73));
    code.put(second.toBytes()).put(bytes(0x5a, 0xfa));
    // PUSH1 31, RETURNDATASIZE, GT, AND, PUSH1 32, MSTORE, PUSH1 64, PUSH1 32, RETURN.
    code.put(bytes(0x60, 31, 0x3d, 0x11, 0x16, 0x60, 32, 0x52, 0x60, 64, 0x60, 32, 0xf3));
    code.put(data.toBytes()).put(more.toBytes());
    return Bytes.of(code.array());
  }

  /** PUSH4 the length, PUSH4 the place in the code, PUSH0 that in memory, CODECOPY. */
  private static void copy(ByteBuffer code, int from, int length) {
    code.put(bytes(0x63)).putInt(length).put(bytes(0x63)).putInt(from).put(bytes(0x5f, 0x39));
  }

  private static byte[] bytes(int... values) {
    byte[] bytes = new byte[values.length];
    for (int i = 0; i < values.length; i++) {
      bytes[i] = (byte) values[i];
    }
    return bytes;
  }
}
