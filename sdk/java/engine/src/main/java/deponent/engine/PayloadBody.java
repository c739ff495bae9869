package deponent.engine;

import deponent.eth.Bytes;
import java.util.List;
import java.util.Optional;

/**
 * What a block has beside its header: {@code ExecutionPayloadBodyV1} and {@code V2}.
 *
 * @param transactions each in its form by EIP-2718
 * @param withdrawals from Shanghai on
 * @param blockAccessList in RLP (EIP-7928); from Amsterdam on
 */
public record PayloadBody(
    List<Bytes> transactions,
    Optional<List<Withdrawal>> withdrawals,
    Optional<Bytes> blockAccessList) {
  /** Copies the lists. */
  public PayloadBody {
    transactions = List.copyOf(transactions);
    withdrawals = withdrawals.map(List::copyOf);
  }
}
