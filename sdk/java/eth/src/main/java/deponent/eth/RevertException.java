package deponent.eth;

import java.math.BigInteger;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * A call or transaction that a contract reverted. The reason is Solidity's own, or that of an error
 * of the ABI with which it was decoded.
 */
public final class RevertException extends RpcException {
  private static final long serialVersionUID = 1;

  /** Solidity's words for the codes of {@code Panic}. */
  private static final Map<Integer, String> PANICS =
      Map.of(
          0x01, "an assertion failed",
          0x11, "an arithmetic operation overflowed",
          0x12, "division by zero",
          0x21, "no value of the enum",
          0x22, "a storage byte array that is encoded wrongly",
          0x31, "pop of an empty array",
          0x32, "an index out of bounds",
          0x41, "too much memory",
          0x51, "a call of an uninitialised function");

  private final transient Bytes revertData;
  private final transient @Nullable AbiError error;
  private final transient @Nullable AbiValues values;
  private final String reason;

  private RevertException(
      int code,
      String message,
      Bytes revertData,
      @Nullable AbiError error,
      @Nullable AbiValues values,
      String reason) {
    super(code, reason.isEmpty() ? message : message + ": " + reason, revertData.toString());
    this.revertData = revertData;
    this.error = error;
    this.values = values;
    this.reason = reason;
  }

  /**
   * With the members of the server's error, decoded by the errors of {@code abi} and Solidity's.
   * Data that does not decode leaves the reason empty.
   */
  public static RevertException of(int code, String message, Bytes data, Abi abi) {
    Optional<AbiError> error = abi.errorOf(data);
    if (error.isEmpty()) {
      return new RevertException(code, message, data, null, null, "");
    }
    try {
      AbiValues values = error.get().decode(data);
      String reason = reasonOf(error.get(), values);
      // Servers put Solidity's reason into the message as well.
      String shorter = message.replace(": " + reason, "");
      return new RevertException(code, shorter, data, error.get(), values, reason);
    } catch (MalformedException no) {
      return new RevertException(code, message, data, null, null, "");
    }
  }

  private static String reasonOf(AbiError error, AbiValues values) {
    if (error == AbiError.REASON) {
      return values.text(0);
    }
    if (error == AbiError.PANIC) {
      BigInteger code = values.integer(0);
      String words = code.bitLength() < 31 ? PANICS.get(code.intValue()) : null;
      return "panic 0x" + code.toString(16) + (words == null ? "" : ", " + words);
    }
    String list = values.toString();
    return error.name() + "(" + list.substring(1, list.length() - 1) + ")";
  }

  /**
   * The same, decoded by the errors of {@code abi}, which was not at hand where it was thrown. One
   * whose error is known already stays as it is.
   */
  public RevertException with(Abi abi) {
    if (error != null) {
      return this;
    }
    RevertException decoded = of(code(), String.valueOf(getMessage()), revertData, abi);
    decoded.setStackTrace(getStackTrace());
    return decoded;
  }

  /** The bytes with which the contract reverted. */
  public Bytes revertData() {
    return revertData;
  }

  /** The text of {@code require}, or the error with its values; empty where it is not known. */
  public String reason() {
    return reason;
  }

  /** The error, where it is known. */
  public Optional<AbiError> error() {
    return Optional.ofNullable(error);
  }

  /** The error's values, where it is known. */
  public Optional<AbiValues> values() {
    return Optional.ofNullable(values);
  }
}
