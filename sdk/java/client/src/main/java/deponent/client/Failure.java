package deponent.client;

import deponent.eth.Abi;
import deponent.eth.Bytes;
import deponent.eth.JsonReader;
import deponent.eth.RevertException;
import deponent.eth.RpcException;
import deponent.rpc.Request;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * Finds out why a transaction in a block failed: receipts do not say. The server's tracer knows;
 * the first transaction of a block can as well be called again on the state before it. Where there
 * is no tracer, others are called again too, on the states around their block, which is a guess.
 */
final class Failure {
  /** The code of reverts, which geth began. */
  private static final int REVERTED = 3;

  private final Client client;
  private final Receipt receipt;
  private final Abi errors;

  Failure(Client client, Receipt receipt, Abi errors) {
    this.client = client;
    this.receipt = receipt;
    this.errors = errors;
  }

  /** The reason, as an exception that is to be thrown. */
  RevertException why() {
    Optional<ChainTransaction> transaction = client.transaction(receipt.transactionHash());
    if (transaction.isEmpty()) {
      return failed("its call is not known any more", Bytes.EMPTY);
    }
    boolean first = receipt.transactionIndex() == 0;
    Optional<RevertException> why = first ? replayed(transaction.get(), -1) : traced();
    if (why.isEmpty()) {
      why = first ? traced() : replayed(transaction.get(), -1);
    }
    if (why.isEmpty()) {
      why = replayed(transaction.get(), 0);
    }
    return why.orElseGet(() -> unknown(transaction.get()));
  }

  private RevertException unknown(ChainTransaction transaction) {
    boolean all = receipt.gasUsed() == transaction.gasLimit();
    return failed(all ? "out of gas" : "the server does not say why", Bytes.EMPTY);
  }

  private RevertException failed(String why, Bytes data) {
    String what = receipt.transactionHash() + " failed in block " + receipt.blockNumber();
    return RevertException.of(REVERTED, what + ": " + why, data, errors);
  }

  /** What it does when it is called on the state after the block so many places away. */
  private Optional<RevertException> replayed(ChainTransaction transaction, int places) {
    Call call =
        (transaction.to().isPresent()
                ? Call.to(transaction.to().get()).data(transaction.input())
                : Call.create(transaction.input()))
            .from(transaction.from())
            .value(transaction.value())
            .gasLimit(transaction.gasLimit())
            .accessList(transaction.accessList());
    try {
      client.call(call, BlockId.of(Math.max(0, receipt.blockNumber() + places)));
      return Optional.empty();
    } catch (RevertException revert) {
      return Optional.of(failed("execution reverted", revert.revertData()));
    } catch (RpcException other) {
      String message = String.valueOf(other.getMessage());
      // A state that is not there, or a balance that was spent before, is another matter.
      return message.contains("gas") && !message.contains("funds")
          ? Optional.of(failed(message, Bytes.EMPTY))
          : Optional.empty();
    }
  }

  private record Top(String error, Bytes output) {}

  private Optional<RevertException> traced() {
    Request<Top> trace =
        Request.of(
            "debug_traceTransaction",
            json ->
                json.value(receipt.transactionHash())
                    .raw("{\"tracer\":\"callTracer\",\"tracerConfig\":{\"onlyTopCall\":true}}"),
            Failure::top);
    try {
      Top top = client.request(trace.repeatable());
      return top.error().isEmpty()
          ? Optional.empty()
          : Optional.of(failed(top.error(), top.output()));
    } catch (RpcException none) {
      return Optional.empty();
    }
  }

  private static Top top(JsonReader json) {
    @Nullable String error = null;
    Bytes output = Bytes.EMPTY;
    json.beginObject();
    while (json.hasNext()) {
      switch (json.nextName()) {
        case "error" -> error = json.nextNull() ? null : json.nextString();
        case "output" -> output = json.nextNull() ? Bytes.EMPTY : json.nextBytes();
        default -> json.skipValue();
      }
    }
    json.endObject();
    return new Top(error == null ? "" : error, output);
  }
}
