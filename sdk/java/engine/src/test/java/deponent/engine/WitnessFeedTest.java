package deponent.engine;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import deponent.engine.WitnessNotice.Status;
import deponent.eth.Hash;
import deponent.eth.JsonReader;
import deponent.eth.MalformedException;
import deponent.sets.Node;
import java.io.Closeable;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.Test;

/** Witnesses are followed, also over connections that break. */
class WitnessFeedTest {
  private static final Duration LONG = EngineNodesTest.LONG;

  /** A way to a port that can be cut. */
  private static final class Way implements Closeable {
    private final ServerSocket socket = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
    private final List<Socket> open = new CopyOnWriteArrayList<>();
    private volatile boolean shut;

    Way(String to) throws IOException {
      int port = Integer.parseInt(to.substring(to.lastIndexOf(':') + 1));
      Thread.startVirtualThread(
          () -> {
            try {
              while (true) {
                connect(socket.accept(), port);
              }
            } catch (IOException closed) {
              // The test has ended.
            }
          });
    }

    private void connect(Socket from, int port) throws IOException {
      if (shut) {
        from.close();
        return;
      }
      Socket to = new Socket(InetAddress.getLoopbackAddress(), port);
      open.add(from);
      open.add(to);
      Thread.startVirtualThread(() -> pass(from, to));
      Thread.startVirtualThread(() -> pass(to, from));
    }

    private static void pass(Socket from, Socket to) {
      try (from;
          to) {
        from.getInputStream().transferTo(to.getOutputStream());
      } catch (IOException closed) {
        // One of both sides has gone away, or the way was cut.
      }
    }

    String address() {
      return "http://127.0.0.1:" + socket.getLocalPort();
    }

    /** Cuts all connections, and opens none until {@code false}. */
    void shut(boolean isShut) throws IOException {
      shut = isShut;
      for (Socket one : open) {
        one.close();
      }
    }

    @Override
    public void close() throws IOException {
      socket.close();
      shut(true);
    }
  }

  /** Makes a block the head, and returns its hash. */
  private static Hash extend(EngineClient client, long time) {
    Hash parent = EngineNodesTest.head(client);
    NewPayload payload =
        EngineNodesTest.build(client, parent, EngineNodesTest.attributes(Fork.OSAKA, time));
    Hash hash = payload.payload().blockHash();
    client.newPayload(payload);
    client.forkchoiceUpdated(new ForkchoiceState(hash, parent, Hash.ZERO), null);
    return hash;
  }

  /** Takes notices up to the one that a block is canonical. */
  private static List<WitnessNotice> upTo(WitnessFeed feed, Hash block) {
    List<WitnessNotice> taken = new ArrayList<>();
    do {
      taken.add(feed.next(LONG).orElseThrow());
    } while (!taken.getLast().hash().equals(block) || taken.getLast().status() != Status.CANONICAL);
    return taken;
  }

  private static List<Hash> canonical(List<WitnessNotice> notices) {
    return notices.stream()
        .filter(notice -> notice.status() == Status.CANONICAL)
        .map(WitnessNotice::hash)
        .distinct()
        .toList();
  }

  @Test
  void noBlockIsMissedOverConnectionsThatBreak() throws Exception {
    try (Node node = Node.ours(EngineNodesTest.genesisOfOsaka())) {
      if (node == null) {
        return;
      }
      try (EngineClient client = EngineNodesTest.at(node, node.socket).connect();
          Way way = new Way(node.engine);
          EngineClient through = EngineNodesTest.at(node, way.address()).connect();
          WitnessFeed feed = through.followWitnesses(null)) {
        List<Hash> blocks = new ArrayList<>(List.of(extend(client, 1)));
        List<WitnessNotice> taken = new ArrayList<>(upTo(feed, blocks.get(0)));
        WitnessNotice first = taken.get(0);
        assertEquals(Status.VALID, first.status());
        assertEquals(1, first.number());
        assertTrue(first.counts().orElseThrow().nodes() > 0);
        assertTrue(first.sizes().orElseThrow().ssz() > 0);
        for (int round = 0; round < 3; round++) {
          way.shut(true);
          blocks.add(extend(client, 10 * round + 2));
          blocks.add(extend(client, 10 * round + 3));
          way.shut(false);
          blocks.add(extend(client, 10 * round + 4));
          taken.addAll(upTo(feed, blocks.getLast()));
        }
        assertEquals(blocks, canonical(taken));
        replayed(client, blocks);
      }
    }
  }

  /** Over the socket, from a block on that the reader names. */
  private static void replayed(EngineClient client, List<Hash> blocks) {
    WitnessFeed feed = client.followWitnesses(blocks.get(3));
    assertEquals(blocks.subList(4, blocks.size()), canonical(upTo(feed, blocks.getLast())));
    int count = 0;
    Hash next = extend(client, 1_000);
    for (WitnessNotice notice : feed) {
      if (notice.hash().equals(next)) {
        feed.close();
      }
      assertTrue(count++ < 1_000);
    }
    assertEquals(Optional.empty(), feed.next(LONG));
    EngineNodesTest.code(4444, () -> client.followWitnesses(Hash.of("0x" + "77".repeat(32))));
  }

  @Test
  void noticesOfOtherFormsAreRefused() {
    String hash = "\"" + Hash.ZERO + "\"";
    String whole =
        "{\"more\":[7],\"hash\":%s,\"number\":\"0x7\",\"parentHash\":%s,\"status\":\"reorged\"}"
            .formatted(hash, hash);
    WitnessNotice read = WitnessNotice.read(new JsonReader(whole));
    assertEquals(
        new WitnessNotice(
            Hash.ZERO, 7, Hash.ZERO, Status.REORGED, Optional.empty(), Optional.empty()),
        read);
    for (String other :
        List.of(
            "{}",
            "[]",
            whole.replace("reorged", "gone"),
            whole.replace("\"number\":\"0x7\",", ""),
            whole.replace("\"0x7\"", "true"))) {
      assertThrows(
          MalformedException.class, () -> WitnessNotice.read(new JsonReader(other)), other);
    }
  }
}
