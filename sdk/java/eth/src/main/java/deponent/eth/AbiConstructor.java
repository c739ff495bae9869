package deponent.eth;

import java.util.List;

/**
 * The constructor of a contract.
 *
 * <pre>{@code
 * Bytes initCode = AbiConstructor.of("constructor(string name) payable").encode(bytecode, "Coin");
 * }</pre>
 */
public final class AbiConstructor {
  private final AbiTuple inputs;
  private final boolean payable;

  AbiConstructor(List<AbiParameter> inputs, boolean payable) {
    this.inputs = AbiTuple.of(inputs);
    this.payable = payable;
  }

  /**
   * Of a human-readable signature: {@code constructor(type [name], ..) [payable]}.
   *
   * @throws IllegalArgumentException if it is none
   */
  public static AbiConstructor of(String signature) {
    return AbiSignatures.constructor(new AbiParser(signature));
  }

  AbiTuple types() {
    return inputs;
  }

  /** What it takes. */
  public List<AbiParameter> inputs() {
    return inputs.members();
  }

  /** Whether it takes ether. */
  public boolean isPayable() {
    return payable;
  }

  /**
   * The data of a transaction that creates the contract: its code, and the arguments behind it.
   *
   * @throws IllegalArgumentException if the arguments do not fit, with the place of the one
   */
  public Bytes encode(Bytes bytecode, Object... arguments) {
    try {
      return Bytes.concat(bytecode, inputs.encode(arguments));
    } catch (Misfit misfit) {
      throw misfit.in("constructor" + inputs + " ");
    }
  }

  /** As a human-readable signature. */
  @Override
  public String toString() {
    String text = "constructor(" + AbiSignatures.list(inputs()) + ")";
    return payable ? text + " payable" : text;
  }
}
