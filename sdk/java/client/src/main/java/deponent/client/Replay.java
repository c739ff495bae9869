package deponent.client;

import deponent.eth.Address;
import deponent.eth.Bytes;
import deponent.eth.Hash;
import deponent.eth.JsonReader;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * A transaction or call that ran again, as OpenEthereum's {@code trace_*} has it.
 *
 * @param output what it returned
 * @param trace what it did, where that was asked for
 * @param stateDiff what it changed, where that was asked for
 * @param vmTrace the instructions that ran, as JSON, where they were asked for
 * @param transactionHash the transaction, of a block
 */
public record Replay(
    Bytes output,
    List<FlatTrace> trace,
    Optional<Map<Address, AccountDiff>> stateDiff,
    Optional<String> vmTrace,
    Optional<Hash> transactionHash) {
  private static final Members MEMBERS =
      Members.of("output", "trace", "stateDiff", "vmTrace", "transactionHash");

  /** With copies. */
  public Replay {
    trace = List.copyOf(trace);
  }

  static Replay read(JsonReader json) {
    Parts parts = new Parts();
    MEMBERS.read(json, parts);
    return parts.made();
  }

  private static final class Parts implements Members.Taker {
    private @Nullable Bytes output;
    private List<FlatTrace> trace = List.of();
    private @Nullable Map<Address, AccountDiff> stateDiff;
    private @Nullable String vmTrace;
    private @Nullable Hash transactionHash;

    @Override
    public void take(String name, JsonReader json) {
      switch (name) {
        case "output" -> output = json.nextBytes();
        case "trace" -> trace = Members.list(json, FlatTrace::read);
        case "stateDiff" -> stateDiff = Members.map(json, Members::address, AccountDiff::read);
        case "vmTrace" -> vmTrace = json.nextJson();
        case "transactionHash" -> transactionHash = json.nextHash();
        default -> throw new AssertionError(name);
      }
    }

    Replay made() {
      return new Replay(
          Members.the("output", output),
          trace,
          Optional.ofNullable(stateDiff),
          Optional.ofNullable(vmTrace),
          Optional.ofNullable(transactionHash));
    }
  }
}
