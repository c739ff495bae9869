package deponent.client;

import deponent.eth.JsonReader;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A block of a {@link Simulation}, and what became of its calls.
 *
 * @param block the block
 * @param calls the calls, in their order
 */
public record SimulatedBlock(Block block, List<SimulatedCall> calls) {
  private static final Members MEMBERS = Block.MEMBERS.with("calls");

  /** With a copy of {@code calls}. */
  public SimulatedBlock {
    calls = List.copyOf(calls);
  }

  static SimulatedBlock read(JsonReader json) {
    Parts parts = new Parts();
    MEMBERS.read(json, parts);
    return new SimulatedBlock(parts.block.block(), Members.the("calls", parts.calls));
  }

  private static final class Parts implements Members.Taker {
    private final Block.Parts block = new Block.Parts();
    private @Nullable List<SimulatedCall> calls;

    @Override
    public void take(String name, JsonReader json) {
      if (name.equals("calls")) {
        calls = Members.list(json, SimulatedCall::read);
      } else {
        block.take(name, json);
      }
    }
  }
}
