package deponent.client;

import deponent.eth.AbiEvent;
import deponent.eth.AbiReader;
import deponent.eth.Address;
import java.util.List;
import java.util.Objects;
import java.util.function.BiFunction;

/**
 * An event of a contract, whose logs are decoded to records.
 *
 * <pre>{@code
 * for (Log log : eth.logs(LogFilter.of(Erc20Contract.TRANSFER.abi()).from(token))) {
 *   Erc20.Transfer transfer = Erc20Contract.TRANSFER.decode(log);
 * }
 * }</pre>
 *
 * @param <T> the record
 */
public final class ContractEvent<T> {
  private final AbiEvent abi;
  private final BiFunction<AbiReader, AbiReader, T> record;

  private ContractEvent(AbiEvent abi, BiFunction<AbiReader, AbiReader, T> record) {
    this.abi = Objects.requireNonNull(abi);
    this.record = Objects.requireNonNull(record);
  }

  /** Of an event, and what makes a record of its indexed fields and of its data. */
  public static <T> ContractEvent<T> of(AbiEvent abi, BiFunction<AbiReader, AbiReader, T> record) {
    return new ContractEvent<>(abi, record);
  }

  /** The event, of which a {@link LogFilter} is made. */
  public AbiEvent abi() {
    return abi;
  }

  /** Whether a log may be of this event. */
  public boolean isIn(Log log) {
    return log.isOf(abi);
  }

  /**
   * The record of a log.
   *
   * @throws deponent.eth.MalformedException if it is of another event, or does not decode
   */
  public T decode(Log log) {
    return record.apply(AbiReader.ofTopics(abi, log.topics()), AbiReader.ofData(abi, log.data()));
  }

  /**
   * The records of the logs that {@code contract} wrote in a transaction, in their order.
   *
   * @throws deponent.eth.MalformedException if one does not decode
   */
  public List<T> in(Receipt receipt, Address contract) {
    return receipt.logs().stream()
        .filter(log -> log.address().equals(contract) && isIn(log))
        .map(this::decode)
        .toList();
  }

  /** The event's signature. */
  @Override
  public String toString() {
    return abi.toString();
  }
}
