package deponent.client;

import deponent.eth.AbiError;
import deponent.eth.AbiReader;
import deponent.eth.RevertException;
import deponent.eth.RpcException;
import java.util.Objects;
import java.util.Optional;
import java.util.function.Function;

/**
 * An error of a contract, which reverts are decoded to.
 *
 * <pre>{@code
 * try {
 *   token.transfer(friend, amount);
 * } catch (RevertException revert) {
 *   Erc20Contract.INSUFFICIENT_BALANCE.in(revert).ifPresent(low -> top(low.needed()));
 * }
 * }</pre>
 *
 * @param <T> the record
 */
public final class ContractError<T> {
  private final AbiError abi;
  private final Function<AbiReader, T> record;

  private ContractError(AbiError abi, Function<AbiReader, T> record) {
    this.abi = Objects.requireNonNull(abi);
    this.record = Objects.requireNonNull(record);
  }

  /** Of an error, and what makes a record of its values. */
  public static <T> ContractError<T> of(AbiError abi, Function<AbiReader, T> record) {
    return new ContractError<>(abi, record);
  }

  /** The error. */
  public AbiError abi() {
    return abi;
  }

  /**
   * The record, if it is this error with which a contract reverted. Errors of a batch are taken as
   * the server told of them.
   *
   * @throws deponent.eth.MalformedException if it is, and its values do not decode
   */
  public Optional<T> in(RpcException error) {
    return Reverts.decoded(error, Reverts.NONE) instanceof RevertException revert
            && abi.isIn(revert.revertData())
        ? Optional.of(record.apply(AbiReader.of(abi, revert.revertData())))
        : Optional.empty();
  }

  /** The error's signature. */
  @Override
  public String toString() {
    return abi.toString();
  }
}
