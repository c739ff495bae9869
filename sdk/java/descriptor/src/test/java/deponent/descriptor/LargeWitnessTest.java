package deponent.descriptor;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import deponent.engine.EngineClient;
import deponent.engine.Items;
import deponent.engine.NewPayload;
import deponent.engine.PayloadStatus;
import deponent.engine.Wire;
import deponent.engine.Witness;
import deponent.eth.Hash;
import deponent.sets.Node;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.Test;

/** A witness of 100 MB over the Unix socket, all items of which are looked at. */
class LargeWitnessTest {
  private static final int CONTRACTS = 4_100;

  /** Of each wire; the first ones warm up. */
  private static final int ROUNDS =
      Integer.parseInt(System.getenv().getOrDefault("DEPONENT_WITNESS_ROUNDS", "3"));

  @Test
  void aWitnessOf100MegabytesIsIterated() throws Exception {
    try (Node node = Node.ours(Codes.genesis(CONTRACTS));
        EngineClient ssz = client(node, Wire.SSZ);
        EngineClient descriptor = client(node, Wire.DESCRIPTOR)) {
      if (node == null) {
        return;
      }
      NewPayload payload = Codes.block(ssz);
      Hash hash = payload.payload().blockHash();
      assertEquals(new PayloadStatus.Valid(hash), ssz.newPayload(payload));
      long expected;
      try (Witness witness = ssz.witness(hash)) {
        assertTrue(witness.contentBytes() > 98_000_000, witness.toString());
        expected = looked(witness);
      }
      double[][] millis = new double[2][ROUNDS];
      for (int round = 0; round < ROUNDS; round++) {
        for (EngineClient client : List.of(ssz, descriptor)) {
          long begun = System.nanoTime();
          try (Witness witness = client.witness(hash)) {
            assertEquals(expected, looked(witness));
          }
          millis[client == ssz ? 0 : 1][round] = (System.nanoTime() - begun) / 1e6;
        }
      }
      print(ssz.wire() + " over a Unix socket", millis[0]);
      print(descriptor.wire().toString(), millis[1]);
    }
  }

  private static EngineClient client(Node node, Wire wire) {
    String address = node == null ? "http://127.0.0.1:1" : node.socket;
    return EngineClient.at(address).wire(wire).timeout(Duration.ofSeconds(300)).connect();
  }

  /** A sum over the ends of all items. */
  private static long looked(Witness witness) {
    long sum = 0;
    for (Items items : List.of(witness.nodes(), witness.codes(), witness.headers())) {
      for (ByteBuffer item : items) {
        sum = 31 * sum + item.get(0) + item.get(item.limit() - 1) + item.limit();
      }
    }
    return sum;
  }

  private static void print(String wire, double[] millis) {
    Arrays.sort(millis);
    System.out.printf(
        "a witness of 98 MB, %s: %.1f ms at best, median %.1f of %d%n",
        wire, millis[0], millis[millis.length / 2], millis.length);
  }
}
