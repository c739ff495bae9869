package deponent.testing;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import deponent.client.Block;
import deponent.client.BlockId;
import deponent.client.Call;
import deponent.client.Client;
import deponent.eth.Address;
import deponent.eth.Bytes;
import deponent.eth.Hash;
import deponent.eth.RpcException;
import deponent.eth.Wei;
import deponent.testing.TestClient.Replacement;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Each method of the client, on {@code deponent dev} and on anvil. */
class TestClientTest {
  private static final Address FRIEND = Address.of("0x00000000000000000000000000000000000000aa");
  private static final Hash SLOT =
      Hash.of("0x0000000000000000000000000000000000000000000000000000000000000001");
  private static final Hash VALUE =
      Hash.of("0x00000000000000000000000000000000000000000000000000000000000000ff");

  private interface Script {
    void run(DevNode node, TestClient chain, Client eth) throws Exception;
  }

  private static void onEach(Script script) throws Exception {
    for (DevNodeBuilder builder : Nodes.builders()) {
      try (DevNode node = builder.start()) {
        script.run(node, node.client(), node.client().eth());
      }
    }
  }

  private static Block block(Client eth, long number) {
    return eth.block(BlockId.of(number)).orElseThrow();
  }

  private static Call gift(DevNode node) {
    return Call.to(FRIEND).from(node.account(0).address()).value(Wei.of(7));
  }

  @Test
  void blocksAreMined() throws Exception {
    onEach(
        (node, chain, eth) -> {
          chain.mine();
          assertEquals(1, eth.blockNumber());
          chain.mine(3);
          assertEquals(4, eth.blockNumber());
          chain.mine(3, Duration.ofSeconds(100));
          assertEquals(7, eth.blockNumber());
          assertEquals(200, block(eth, 7).timestamp() - block(eth, 5).timestamp());
          assertThrows(IllegalArgumentException.class, () -> chain.mine(0));
          Duration part = Duration.ofMillis(1_500);
          assertThrows(IllegalArgumentException.class, () -> chain.mine(1, part));
        });
  }

  @Test
  void timeIsSet() throws Exception {
    onEach(
        (node, chain, eth) -> {
          long begin = block(eth, 0).timestamp();
          chain.setNextBlockTimestamp(Instant.ofEpochSecond(begin + 5_000));
          chain.mine();
          assertEquals(begin + 5_000, block(eth, 1).timestamp());
          chain.increaseTime(Duration.ofDays(1));
          chain.mine();
          assertTrue(block(eth, 2).timestamp() >= begin + 5_000 + 86_400);
          Instant past = Instant.ofEpochSecond(begin);
          assertThrows(RpcException.class, () -> chain.setNextBlockTimestamp(past));
        });
  }

  @Test
  void blocksHaveTheFeeTheLimitAndTheAccountThatWereSet() throws Exception {
    onEach(
        (node, chain, eth) -> {
          chain.setNextBlockBaseFee(Wei.of(12_345));
          chain.setBlockGasLimit(12_000_000);
          chain.setCoinbase(FRIEND);
          chain.mine();
          Block block = block(eth, 1);
          assertEquals(Wei.of(12_345), block.baseFeePerGas().orElseThrow());
          assertEquals(12_000_000, block.gasLimit());
          assertEquals(FRIEND, block.miner());
        });
  }

  @Test
  void accountsAreSet() throws Exception {
    onEach(
        (node, chain, eth) -> {
          chain.setBalance(FRIEND, Wei.ether("10"));
          chain.setNonce(FRIEND, 41);
          // PUSH1 1 SLOAD PUSH0 MSTORE PUSH1 32 PUSH0 RETURN
          chain.setCode(FRIEND, Bytes.of("0x6001545f5260205ff3"));
          chain.setStorageAt(FRIEND, SLOT, VALUE);
          assertEquals(Wei.ether("10"), eth.balance(FRIEND));
          assertEquals(41, eth.transactionCount(FRIEND));
          assertEquals(Bytes.of("0x6001545f5260205ff3"), eth.code(FRIEND));
          assertEquals(VALUE, eth.storageAt(FRIEND, SLOT));
          assertEquals(VALUE.toString(), eth.call(Call.to(FRIEND)).toString());
        });
  }

  @Test
  void aSnapshotIsRevertedToOnce() throws Exception {
    onEach(
        (node, chain, eth) -> {
          try (Snapshot start = chain.snapshot()) {
            chain.setBalance(FRIEND, Wei.ether("10"));
            chain.mine(2);
            assertEquals(start.id(), start.toString());
          }
          assertEquals(Wei.ZERO, eth.balance(FRIEND));
          assertEquals(0, eth.blockNumber());
          Snapshot first = chain.snapshot();
          Snapshot second = chain.snapshot();
          first.close();
          first.close();
          assertThrows(IllegalStateException.class, second::close);
        });
  }

  @Test
  void anAccountIsImpersonatedUntilThatIsClosed() throws Exception {
    Address whale = Address.of("0x00000000000000000000000000000000000000bb");
    onEach(
        (node, chain, eth) -> {
          chain.setBalance(whale, Wei.ether("10"));
          Impersonation one = chain.impersonate(whale);
          try (one) {
            assertEquals(whale, one.address());
            Hash sent = one.send(Call.to(FRIEND).value(Wei.of(7)));
            Nodes.until(() -> eth.receipt(sent).isPresent());
            assertEquals(Wei.of(7), eth.balance(FRIEND));
          }
          Call more = Call.to(FRIEND).value(Wei.of(7));
          assertThrows(RpcException.class, () -> one.send(more));
          chain.autoImpersonate(true);
          Hash sent = chain.send(more.from(whale));
          Nodes.until(() -> eth.receipt(sent).isPresent());
          chain.autoImpersonate(false);
          assertThrows(RpcException.class, () -> chain.send(more.from(whale)));
          assertThrows(IllegalArgumentException.class, () -> chain.send(more));
        });
  }

  @Test
  void transactionsWaitAndAreDropped() throws Exception {
    onEach(
        (node, chain, eth) -> {
          chain.automine(false);
          Hash dropped = chain.send(gift(node));
          assertTrue(eth.transaction(dropped).isPresent());
          assertTrue(chain.dropTransaction(dropped));
          assertFalse(chain.dropTransaction(dropped));
          chain.send(gift(node));
          chain.dropAllTransactions();
          chain.mine();
          assertEquals(Wei.ZERO, eth.balance(FRIEND));
          Hash mined = chain.send(gift(node));
          assertTrue(eth.receipt(mined).isEmpty());
          chain.automine(true);
          chain.mine();
          Nodes.until(() -> eth.receipt(mined).isPresent());
          assertEquals(Wei.of(7), eth.balance(FRIEND));
        });
  }

  @Test
  void blocksComeAtAnInterval() throws Exception {
    onEach(
        (node, chain, eth) -> {
          chain.interval(Duration.ofSeconds(1));
          Nodes.until(() -> eth.blockNumber() >= 1);
          chain.interval(Duration.ZERO);
          assertThrows(
              IllegalArgumentException.class, () -> chain.interval(Duration.ofMillis(100)));
        });
  }

  @Test
  void blocksAreReplacedAndRemoved() throws Exception {
    onEach(
        (node, chain, eth) -> {
          chain.mine(2);
          Hash sent = chain.send(gift(node));
          Nodes.until(() -> eth.receipt(sent).isPresent());
          Hash second = block(eth, 2).hash();
          Hash third = block(eth, 3).hash();
          chain.reorg(1);
          assertEquals(second, block(eth, 2).hash());
          assertNotEquals(third, block(eth, 3).hash());
          assertEquals(Wei.ZERO, eth.balance(FRIEND));
          chain.reorg(2, List.of(new Replacement(gift(node), 1)));
          assertEquals(3, eth.blockNumber());
          assertEquals(1, block(eth, 3).hashes().size());
          assertEquals(Wei.of(7), eth.balance(FRIEND));
          chain.rollback(2);
          assertEquals(1, eth.blockNumber());
          assertEquals(Wei.ZERO, eth.balance(FRIEND));
          List<Replacement> beyond = List.of(new Replacement(gift(node), 1));
          assertThrows(IllegalArgumentException.class, () -> chain.reorg(1, beyond));
          assertThrows(IllegalArgumentException.class, () -> chain.reorg(0));
          Call nobody = Call.to(FRIEND);
          assertThrows(IllegalArgumentException.class, () -> new Replacement(nobody, 0));
          assertThrows(IllegalArgumentException.class, () -> new Replacement(gift(node), -1));
        });
  }

  @Test
  void aStateIsTakenToAnotherChain() throws Exception {
    onEach(
        (node, chain, eth) -> {
          chain.setBalance(FRIEND, Wei.ether("10"));
          Bytes state = chain.dumpState();
          chain.setBalance(FRIEND, Wei.ZERO);
          chain.loadState(state);
          assertEquals(Wei.ether("10"), eth.balance(FRIEND));
          try (TestClient other = TestClient.connect(node.httpUrl())) {
            assertEquals(Wei.ether("10"), other.eth().balance(FRIEND));
          }
        });
  }
}
