package deponent.examples;

import static org.junit.jupiter.api.Assertions.assertEquals;

import deponent.eth.Address;
import deponent.eth.Wei;
import deponent.testing.DevNode;
import deponent.testing.Snapshot;
import deponent.testing.TestClient;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledIf;
import org.junit.jupiter.api.extension.RegisterExtension;

/** 9. A test with a chain of its own. */
@EnabledIf(value = "hasNode", disabledReason = "set DEPONENT_BINARY to the program deponent")
class OwnChainTest {
  @RegisterExtension static DevNode node = DevNode.start(); // deponent dev, or anvil

  private final Address friend = Address.of("0x00000000000000000000000000000000000000aa");

  /** In CI it has to be there, so that the test fails without it. */
  static boolean hasNode() {
    return System.getenv("DEPONENT_BINARY") != null || System.getenv("CI") != null;
  }

  @Test
  @SuppressWarnings("try") // the snapshot is closed
  void aSnapshotIsRevertedTo() {
    TestClient chain = node.client();
    try (Snapshot start = chain.snapshot()) {
      chain.setBalance(friend, Wei.ether("10"));
      assertEquals(Wei.ether("10"), chain.eth().balance(friend));
    } // close() reverts
    assertEquals(Wei.ZERO, chain.eth().balance(friend));
  }
}
