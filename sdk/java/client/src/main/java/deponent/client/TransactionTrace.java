package deponent.client;

import deponent.eth.Hash;
import deponent.eth.JsonReader;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * What a {@link Tracer} saw of a transaction of a block.
 *
 * @param txHash the transaction's hash, where the server says it
 * @param result what it saw
 * @param error why it saw nothing
 * @param <T> the type of what it sees
 */
public record TransactionTrace<T>(
    Optional<Hash> txHash, Optional<T> result, Optional<String> error) {
  private static final Members MEMBERS = Members.of("txHash", "result", "error");

  static <T> TransactionTrace<T> read(JsonReader json, Tracer<T> tracer) {
    Parts<T> parts = new Parts<>(tracer);
    MEMBERS.read(json, parts);
    if (parts.result == null && parts.error == null) {
      Members.the("result", null);
    }
    return new TransactionTrace<>(
        Optional.ofNullable(parts.txHash),
        Optional.ofNullable(parts.result),
        Optional.ofNullable(parts.error));
  }

  private static final class Parts<T> implements Members.Taker {
    private final Tracer<T> tracer;
    private @Nullable Hash txHash;
    private @Nullable T result;
    private @Nullable String error;

    Parts(Tracer<T> tracer) {
      this.tracer = tracer;
    }

    @Override
    public void take(String name, JsonReader json) {
      switch (name) {
        case "txHash" -> txHash = json.nextHash();
        case "result" -> result = tracer.read(json);
        case "error" -> error = json.nextString();
        default -> throw new AssertionError(name);
      }
    }
  }
}
