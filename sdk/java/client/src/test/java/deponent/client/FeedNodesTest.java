package deponent.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import deponent.client.Update.Added;
import deponent.client.Update.Gap;
import deponent.client.Update.Removed;
import deponent.eth.JsonReader;
import deponent.rpc.Backoff;
import deponent.rpc.Params;
import deponent.rpc.Provider;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Feeds of real chains that reorganise, over connections that are cut. */
class FeedNodesTest {
  /** A contract without code, whose creation writes a log without topics. */
  private static final String LOGS = "0x60006000a000";

  private static String name(Log log) {
    return log.blockHash() + "/" + log.logIndex();
  }

  /** Has a log written, in a block of its own. */
  private static void log(Client eth, String from) {
    Nodes.ask(
        eth,
        "eth_sendTransaction",
        json ->
            json.beginObject()
                .name("from")
                .value(from)
                .name("gas")
                .quantity(100_000)
                .name("data")
                .value(LOGS)
                .endObject());
    // Where it is not mined by itself at once, it is now.
    Nodes.mine(eth);
  }

  private static String account(Client eth) {
    JsonReader json = new JsonReader(Nodes.ask(eth, "eth_accounts", Params.NONE));
    json.beginArray();
    return json.nextString();
  }

  private static List<String> logs(Client eth) {
    LogFilter all = LogFilter.ALL.fromBlock(0).toBlock(BlockId.LATEST);
    return eth.logs(all).stream().map(FeedNodesTest::name).toList();
  }

  /** Takes updates until what is there is what the chain has. */
  private static int follow(Feed<Log> feed, Client eth, List<String> booked) {
    int removed = 0;
    while (!booked.equals(logs(eth))) {
      switch (feed.next(Nodes.LONG).orElseThrow()) {
        case Added<Log>(Log log) -> booked.add(name(log));
        case Removed<Log>(Log log) -> {
          removed++;
          assertEquals(booked.removeLast(), name(log));
        }
        case Gap<Log> gap -> throw new AssertionError(gap.toString());
      }
    }
    return removed;
  }

  private static void follows(Nodes.Node node, String scheme) throws Exception {
    Backoff quick = new Backoff(Duration.ofMillis(5), Duration.ofMillis(20));
    try (Client eth = node.client(scheme);
        Cut cut = new Cut(node.port);
        Client far =
            Client.of(
                Provider.at(scheme + "://127.0.0.1:" + cut.port())
                    .timeout(Nodes.LONG)
                    .reconnect(quick)
                    .connect());
        Feed<Log> feed = far.follow(LogFilter.ALL.fromBlock(0))) {
      List<String> booked = new ArrayList<>();
      String me = account(eth);
      log(eth, me);
      log(eth, me);
      assertEquals(0, follow(feed, eth, booked));
      assertFalse(booked.isEmpty());
      // Logs that come while the connection is away.
      cut.cut();
      log(eth, me);
      assertEquals(0, follow(feed, eth, booked));
      // The last blocks are replaced by empty ones.
      Params depth = json -> json.value(3).beginArray().endArray();
      Nodes.ask(eth, "anvil_reorg", depth);
      Nodes.mine(eth);
      assertTrue(follow(feed, eth, booked) > 0);
      // The chain goes back, while the connection is away, and on elsewhere.
      String snapshot = Nodes.ask(eth, "evm_snapshot", Params.NONE);
      log(eth, me);
      follow(feed, eth, booked);
      cut.cut();
      Nodes.ask(eth, "evm_revert", json -> json.raw(snapshot));
      Nodes.mine(eth);
      log(eth, me);
      assertEquals(1, follow(feed, eth, booked));
    }
  }

  @Test
  void logsAreThoseOfTheChainOverWebSocket() throws Exception {
    Nodes.each(List.of(), node -> follows(node, "ws"));
  }

  @Test
  void logsAreThoseOfTheChainOverHttp() throws Exception {
    Nodes.each(List.of(), node -> follows(node, "http"));
  }
}
