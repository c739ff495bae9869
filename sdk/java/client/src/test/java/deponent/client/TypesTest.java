package deponent.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import deponent.eth.Address;
import deponent.eth.Authorization;
import deponent.eth.BlobSidecar;
import deponent.eth.Bytes;
import deponent.eth.Hash;
import deponent.eth.ReplacedException;
import deponent.eth.Wei;
import deponent.wallet.Blobs;
import deponent.wallet.PrivateKey;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import org.junit.jupiter.api.Test;

/** Transactions with blobs (EIP-4844, EIP-7594) and with authorizations (EIP-7702). */
class TypesTest {
  private static final Address FRIEND = Address.of("0x00000000000000000000000000000000000f00d5");

  /** anvil's own fork is an older one. */
  private static final List<String> OSAKA = List.of("--hardfork", "osaka");

  private static final Bytes DELEGATION = Bytes.of("0xef0100");

  /** A blob, whose proofs take a while. */
  private static final BlobSidecar ONE = blobs(1_000);

  private static BlobSidecar blobs(int bytes) {
    return Blobs.sidecar("Hello".repeat(bytes / 5).getBytes(StandardCharsets.US_ASCII));
  }

  @Test
  void blobsAreSentWithTheirCellProofs() throws Exception {
    BlobSidecar two = blobs(200_000);
    Nodes.each(
        OSAKA,
        node -> {
          try (Client eth = node.client("ws")) {
            Account me = eth.account(Nodes.key(0));
            PendingTransaction sent = me.sendBlobs(Call.to(FRIEND), ONE);
            Receipt receipt = sent.await(1, Nodes.LONG);
            assertEquals(3, receipt.type());
            assertEquals(131_072, receipt.blobGasUsed().orElseThrow());
            ChainTransaction there = eth.transaction(sent.hash()).orElseThrow();
            assertEquals(ONE.versionedHashes(), there.blobVersionedHashes());
            Call dear = Call.to(FRIEND).blobs(List.of(), Wei.gwei("3")).value(Wei.of(5));
            Receipt both = me.sendBlobs(dear, two).await(1, Nodes.LONG);
            assertEquals(2 * 131_072, both.blobGasUsed().orElseThrow());
            there = eth.transaction(both.transactionHash()).orElseThrow();
            assertEquals(Optional.of(Wei.gwei("3")), there.maxFeePerBlobGas());
            Call alone = Call.to(FRIEND).blobs(ONE.versionedHashes(), Wei.of(1));
            assertThrows(IllegalArgumentException.class, () -> me.send(alone));
            Call create = Call.create(Bytes.of("0x00"));
            assertThrows(RuntimeException.class, () -> me.sendBlobs(create, ONE));
            assertEquals(2, eth.transactionCount(me.address(), BlockId.PENDING));
          }
        });
  }

  @Test
  void blobsAreReplacedByBlobs() throws Exception {
    Nodes.each(
        List.of("--hardfork", "osaka", "--no-mining"),
        node -> {
          try (Client eth = node.client("ws")) {
            Account me = eth.account(Nodes.key(0));
            PendingTransaction slow = me.sendBlobs(Call.to(FRIEND).value(Wei.of(5)), ONE);
            PendingTransaction fast = slow.speedUp();
            PendingTransaction cancelled = slow.cancel();
            CompletableFuture<Receipt> waiting = fast.awaitAsync(1, Nodes.LONG);
            Nodes.mine(eth);
            Receipt receipt = cancelled.await(1, Nodes.LONG);
            assertEquals(3, receipt.type());
            assertEquals(Wei.ZERO, eth.balance(FRIEND));
            ExecutionException failed = assertThrows(ExecutionException.class, waiting::get);
            ReplacedException replaced = (ReplacedException) failed.getCause();
            assertEquals(Optional.of(cancelled.hash()), replaced.replacement());
          }
        });
  }

  @Test
  void anAccountTakesTheCodeOfAContract() throws Exception {
    Nodes.each(
        OSAKA,
        node -> {
          try (Client eth = node.client("ws")) {
            Account me = eth.account(Nodes.key(0));
            Address till = me.deploy(Till.with(100)).await().contractAddress().orElseThrow();
            assertTrue(me.delegate(till).await(1, Nodes.LONG).succeeded());
            Bytes code = Bytes.concat(DELEGATION, Bytes.of(till.toBytes()));
            assertEquals(code, eth.code(me.address()));
            // The authorization took a nonce, too.
            assertEquals(3, eth.transactionCount(me.address()));
            PendingTransaction next = me.send(Call.to(FRIEND).value(Wei.of(1)));
            assertEquals(3, next.signed().orElseThrow().transaction().nonce());
            next.await(1, Nodes.LONG);
            me.delegate(Address.ZERO).await(1, Nodes.LONG);
            assertEquals(Bytes.EMPTY, eth.code(me.address()));
            assertEquals(6, eth.transactionCount(me.address()));
          }
        });
  }

  @Test
  void anotherPaysForAnAuthorization() throws Exception {
    Nodes.each(
        OSAKA,
        node -> {
          try (Client eth = node.client("http")) {
            Account me = eth.account(Nodes.key(0));
            Address till = me.deploy(Till.with(0)).await().contractAddress().orElseThrow();
            PrivateKey poor = PrivateKey.random();
            Authorization.Signed signed = poor.sign(Authorization.of(eth.chainId(), till, 0));
            Call pay =
                Call.to(poor.address())
                    .data(Till.ABI.function("pay"), "thanks")
                    .value(Wei.of(9))
                    .authorizations(List.of(signed));
            Receipt receipt = me.send(pay).await(1, Nodes.LONG);
            assertEquals(4, receipt.type());
            // The code ran as the account's own.
            assertEquals(poor.address(), receipt.logs().get(0).address());
            assertEquals(Wei.of(9), eth.balance(poor.address()));
            Hash fees = me.fees(Fees.legacy()).send(pay.authorizations(List.of(signed))).hash();
            assertEquals(4, eth.transaction(fees).orElseThrow().type());
          }
        });
  }
}
