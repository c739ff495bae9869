package deponent.eth;

import java.nio.ByteBuffer;
import java.util.List;

/**
 * A function of a contract: its calls encoded, its results decoded. It is made once and used by any
 * number of threads.
 *
 * <pre>{@code
 * AbiFunction transfer = AbiFunction.of("transfer(address to, uint256 value) returns (bool)");
 * Bytes data = transfer.encode(friend, Wei.ether("1"));
 * boolean done = transfer.decodeResult(result).bool(0);
 * }</pre>
 */
public final class AbiFunction {
  /** A function's word for what it does to the state. */
  public enum Mutability {
    /** Reads no state. */
    PURE,
    /** Changes no state. */
    VIEW,
    /** Changes state, and takes no ether. */
    NONPAYABLE,
    /** Changes state, and takes ether. */
    PAYABLE
  }

  final AbiCall call;
  final AbiTuple outputs;
  private final Mutability mutability;

  AbiFunction(
      String name, List<AbiParameter> inputs, List<AbiParameter> outputs, Mutability mutability) {
    this.call = new AbiCall(name, inputs);
    this.outputs = AbiTuple.of(outputs);
    this.mutability = mutability;
  }

  /**
   * Of a human-readable signature: {@code [function] name(type [name], ..) [view] [returns (type
   * [name], ..)]}.
   *
   * @throws IllegalArgumentException if it is none
   */
  public static AbiFunction of(String signature) {
    return AbiSignatures.function(new AbiParser(signature));
  }

  /** The name. */
  public String name() {
    return call.name;
  }

  /** Name and types, such as {@code transfer(address,uint256)}. */
  public String signature() {
    return call.signature;
  }

  /** The four bytes with which a call begins. */
  public Bytes selector() {
    return call.selectorBytes();
  }

  /** What the function takes. */
  public List<AbiParameter> inputs() {
    return call.inputs.members();
  }

  /** What the function returns. */
  public List<AbiParameter> outputs() {
    return outputs.members();
  }

  /** What the function does to the state. */
  public Mutability mutability() {
    return mutability;
  }

  /**
   * The data of a call. An array is given as one {@link List}.
   *
   * @throws IllegalArgumentException if the arguments do not fit, with the place of the one
   */
  public Bytes encode(Object... arguments) {
    return Bytes.own(call.encode(arguments));
  }

  /**
   * The data of a call as hex after {@code 0x}.
   *
   * @throws IllegalArgumentException if the arguments do not fit, with the place of the one
   */
  public String encodeHex(Object... arguments) {
    return Hex.encode(call.encode(arguments));
  }

  /**
   * Writes the data of a call to {@code into}, from {@code at} on. It allocates nothing where
   * integers are {@code Wei}, or of less than 64 bits; Java makes the array of the arguments.
   *
   * @return the number of bytes written
   * @throws IllegalArgumentException if the arguments do not fit, with the place of the one
   * @throws IndexOutOfBoundsException if the data does not fit; nothing is written then
   */
  public int encodeTo(byte[] into, int at, Object... arguments) {
    return call.encodeTo(into, at, arguments);
  }

  /**
   * Writes the data of a call to {@code into}, whose position goes behind it.
   *
   * @return the number of bytes written
   * @throws IllegalArgumentException if the arguments do not fit, with the place of the one
   * @throws java.nio.BufferOverflowException if the data does not fit
   */
  public int encodeTo(ByteBuffer into, Object... arguments) {
    return call.encodeTo(into, arguments);
  }

  /** Whether {@code data} begins with the selector. */
  public boolean isCalledBy(Bytes data) {
    return call.begins(data.array);
  }

  /**
   * The arguments in the data of a call.
   *
   * @throws MalformedException if the selector is another, or the rest does not decode
   */
  public AbiValues decodeArguments(Bytes data) {
    return call.decode(data.array);
  }

  /**
   * What a call returned.
   *
   * @throws MalformedException if it does not decode
   */
  public AbiValues decodeResult(Bytes result) {
    checkResult(result);
    return new AbiDecoder(result.array, 0, result.size()).values(outputs);
  }

  void checkResult(Bytes result) {
    if (result.isEmpty() && !outputs.members().isEmpty()) {
      throw new MalformedException(
          "nothing is returned, where "
              + call.signature
              + " returns "
              + outputs
              + ": there may be no contract at the address");
    }
  }

  /** The values as the function would return them. */
  public Bytes encodeResult(Object... values) {
    return outputs.encode(values);
  }

  /** As a human-readable signature. */
  @Override
  public String toString() {
    StringBuilder text = new StringBuilder("function ").append(call.name).append('(');
    text.append(AbiSignatures.list(inputs())).append(')');
    if (mutability != Mutability.NONPAYABLE) {
      text.append(' ').append(mutability.name().toLowerCase(java.util.Locale.ROOT));
    }
    if (!outputs().isEmpty()) {
      text.append(" returns (").append(AbiSignatures.list(outputs())).append(')');
    }
    return text.toString();
  }
}
