package deponent.eth;

import java.util.List;

/**
 * An error with which a contract reverts.
 *
 * <pre>{@code
 * AbiError.of("InsufficientBalance(uint256 have, uint256 need)").decode(data).integer("have");
 * }</pre>
 */
public final class AbiError {
  /** Solidity's {@code require(.., "reason")}. */
  public static final AbiError REASON = of("Error(string reason)");

  /** Solidity's failed assertions, divisions by zero and the like, by code. */
  public static final AbiError PANIC = of("Panic(uint256 code)");

  final AbiCall call;

  AbiError(String name, List<AbiParameter> inputs) {
    this.call = new AbiCall(name, inputs);
  }

  /**
   * Of a human-readable signature: {@code [error] name(type [name], ..)}.
   *
   * @throws IllegalArgumentException if it is none
   */
  public static AbiError of(String signature) {
    return AbiSignatures.error(new AbiParser(signature));
  }

  /** The name. */
  public String name() {
    return call.name;
  }

  /** Name and types. */
  public String signature() {
    return call.signature;
  }

  /** The four bytes with which the data begins. */
  public Bytes selector() {
    return call.selectorBytes();
  }

  /** The values of the error. */
  public List<AbiParameter> inputs() {
    return call.inputs.members();
  }

  /** Whether {@code data} begins with the selector. */
  public boolean isIn(Bytes data) {
    return call.begins(data.array);
  }

  /**
   * The values in the data of a revert.
   *
   * @throws MalformedException if the selector is another, or the rest does not decode
   */
  public AbiValues decode(Bytes data) {
    return call.decode(data.array);
  }

  /**
   * The data of a revert with these values.
   *
   * @throws IllegalArgumentException if the values do not fit, with the place of the one
   */
  public Bytes encode(Object... values) {
    return Bytes.own(call.encode(values));
  }

  /** As a human-readable signature. */
  @Override
  public String toString() {
    return "error " + call.name + "(" + AbiSignatures.list(inputs()) + ")";
  }
}
