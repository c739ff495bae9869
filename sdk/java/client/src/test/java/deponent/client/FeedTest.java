package deponent.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import deponent.client.Update.Added;
import deponent.client.Update.Gap;
import deponent.client.Update.Removed;
import deponent.eth.Hash;
import deponent.eth.RpcException;
import deponent.rpc.Backoff;
import deponent.rpc.Provider;
import deponent.sets.Sets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.function.Supplier;
import org.junit.jupiter.api.Test;

/** Feeds of a chain that reorganises, by a server that drops connections and refuses ranges. */
class FeedTest {
  private static final Duration LONG = Duration.ofSeconds(120);

  private static Provider connect(String address) {
    Backoff quick = new Backoff(Duration.ofMillis(5), Duration.ofMillis(20));
    return Provider.at(address).timeout(LONG).reconnect(quick).connect();
  }

  private static Feed<Log> logs(Provider provider, long from) {
    return Feed.open(provider, new LogSource(LogFilter.ALL), BlockId.of(from));
  }

  private static String name(Log log) {
    return log.blockHash() + "/" + log.logIndex();
  }

  /** What is there after the updates: the slow, obvious list. */
  private static final class Booked {
    final List<String> logs = new ArrayList<>();
    int removed;

    void take(Update<Log> update) {
      switch (update) {
        case Added<Log>(Log log) -> logs.add(name(log));
        case Removed<Log>(Log log) -> {
          removed++;
          assertEquals(logs.removeLast(), name(log));
        }
        case Gap<Log> gap -> throw new AssertionError(gap.toString());
      }
    }

    void takeUntil(Feed<Log> feed, Supplier<List<String>> expected) {
      while (!logs.equals(expected.get())) {
        Optional<Update<Log>> update = feed.next(LONG);
        assertTrue(update.isPresent(), () -> "no update for " + LONG);
        take(update.get());
      }
    }
  }

  /** Changes a chain at random, while a feed follows it. */
  private static void follow(String scheme, int rounds) throws Exception {
    Random random = Sets.random();
    FakeChain chain = new FakeChain(new Random(random.nextLong()));
    for (int i = random.nextInt(300); i > 0; i--) {
      chain.grow(random.nextInt(3));
    }
    chain.mostBlocks = 1 + random.nextInt(100);
    chain.mostLogs = 10 + random.nextInt(100);
    chain.drops = 10;
    long from = random.nextLong(chain.head() + 1);
    try (Wire wire = new Wire(chain);
        Provider provider = connect(wire.at(scheme));
        Feed<Log> feed = opened(provider, from)) {
      Semaphore caughtUp = new Semaphore(0);
      CompletableFuture<Void> changes =
          CompletableFuture.runAsync(
              () -> {
                for (int i = 1; i <= rounds; i++) {
                  change(chain, wire, random);
                  if (i % 20 == 0) {
                    chain.grow(1);
                    caughtUp.drainPermits();
                    caughtUp.acquireUninterruptibly();
                  }
                }
                chain.drops = 0;
              });
      Booked booked = new Booked();
      while (!changes.isDone()) {
        feed.next(Duration.ofMillis(5)).ifPresent(booked::take);
        if (booked.logs.equals(chain.logs(from))) {
          caughtUp.release();
        }
      }
      changes.get();
      // It may have become shorter than where the feed begins.
      while (chain.head() < from) {
        chain.grow(0);
      }
      chain.grow(2);
      booked.takeUntil(feed, () -> chain.logs(from));
      int before = booked.removed;
      chain.reorganise(1, 3, 0, 1);
      booked.takeUntil(feed, () -> chain.logs(from));
      assertEquals(before + 2, booked.removed);
    }
  }

  private static Feed<Log> opened(Provider provider, long from) {
    while (true) {
      try {
        return logs(provider, from);
      } catch (deponent.eth.TransportException dropped) {
        // The server drops connections from the beginning.
      }
    }
  }

  private static void change(FakeChain chain, Wire wire, Random random) {
    int[] logs = new int[random.nextInt(6)];
    for (int i = 0; i < logs.length; i++) {
      logs[i] = Math.max(0, random.nextInt(6) - 2);
    }
    switch (random.nextInt(8)) {
      case 0 -> chain.reorganise(1 + random.nextInt(5), logs);
      case 1 -> chain.reorganise(random.nextInt(30), logs);
      case 2 -> wire.drop();
      default -> chain.grow(logs);
    }
    // Some changes come together, others one by one.
    if (random.nextInt(3) == 0) {
      java.util.concurrent.locks.LockSupport.parkNanos(random.nextInt(20_000_000));
    }
  }

  @Test
  void logsAreThoseOfTheChainOverWebSocket() throws Exception {
    for (int i = 0; i < 5; i++) {
      follow("ws", 300);
    }
  }

  @Test
  void logsAreThoseOfTheChainOverHttp() throws Exception {
    for (int i = 0; i < 3; i++) {
      follow("http", 100);
    }
  }

  @Test
  void aFeedWithoutABeginningHasWhatComes() throws Exception {
    FakeChain chain = new FakeChain(Sets.random());
    chain.grow(3, 3);
    try (Wire wire = new Wire(chain);
        Provider provider = connect(wire.at("ws"));
        Feed<Log> feed = Feed.open(provider, new LogSource(LogFilter.ALL), null)) {
      assertEquals(Optional.empty(), feed.next(Duration.ZERO));
      chain.grow(2, 0, 1);
      Booked booked = new Booked();
      booked.takeUntil(feed, () -> chain.logs(3));
      chain.reorganise(2, 0, 0, 4);
      booked.takeUntil(feed, () -> chain.logs(3));
      assertEquals(1, booked.removed);
    }
  }

  @Test
  void tagsAreTakenAndEndsAreNot() throws Exception {
    FakeChain chain = new FakeChain(Sets.random());
    chain.grow(3, 3);
    try (Wire wire = new Wire(chain);
        Client client = Client.of(connect(wire.at("http")))) {
      try (Feed<Log> feed = client.follow(LogFilter.ALL.fromBlock(BlockId.EARLIEST))) {
        new Booked().takeUntil(feed, () -> chain.logs(0));
      }
      try (Feed<Log> feed = client.follow(LogFilter.ALL.fromBlock(BlockId.LATEST))) {
        new Booked().takeUntil(feed, () -> chain.logs(2));
      }
      try (Feed<BlockHeader> feed = client.followHeads(2)) {
        switch (feed.next(LONG).orElseThrow()) {
          case Added<BlockHeader>(BlockHeader header) ->
              assertEquals(chain.hashes(2).getFirst(), header.hash());
          case Update<BlockHeader> other -> throw new AssertionError(other.toString());
        }
      }
      try (Feed<BlockHeader> feed = client.followHeads()) {
        assertEquals(Optional.empty(), feed.next(Duration.ZERO));
      }
      LogFilter ends = LogFilter.ALL.toBlock(5);
      assertThrows(IllegalArgumentException.class, () -> client.follow(ends));
      LogFilter one = LogFilter.ALL.atBlock(Hash.ZERO);
      assertThrows(IllegalArgumentException.class, () -> client.follow(one));
    }
  }

  @Test
  void aFeedOfBlocksToComeWaitsForThem() throws Exception {
    FakeChain chain = new FakeChain(Sets.random());
    chain.grow(3, 3);
    try (Wire wire = new Wire(chain);
        Provider provider = connect(wire.at("ws"));
        Feed<Log> feed = logs(provider, 5)) {
      chain.grow(1);
      chain.reorganise(3, 7, 7, 7);
      chain.grow(1, 1, 1);
      new Booked().takeUntil(feed, () -> chain.logs(5));
    }
  }

  @Test
  void headersAreThoseOfTheChain() throws Exception {
    Random random = Sets.random();
    FakeChain chain = new FakeChain(new Random(random.nextLong()));
    chain.grow(new int[150]);
    try (Wire wire = new Wire(chain);
        Provider provider = connect(wire.at("ws"));
        Feed<BlockHeader> feed = Feed.open(provider, new HeadSource(), BlockId.of(2))) {
      List<Hash> seen = new ArrayList<>();
      for (int i = 0; i < 50; i++) {
        if (random.nextInt(5) == 0) {
          wire.drop();
        }
        chain.reorganise(random.nextInt(4), new int[random.nextInt(20)]);
        chain.grow(0);
        while (!seen.equals(chain.hashes(2))) {
          switch (feed.next(LONG).orElseThrow()) {
            case Added<BlockHeader>(BlockHeader header) -> seen.add(header.hash());
            case Removed<BlockHeader>(BlockHeader header) ->
                assertEquals(seen.removeLast(), header.hash());
            case Gap<BlockHeader> gap -> throw new AssertionError(gap.toString());
          }
        }
      }
    }
  }

  @Test
  void manyBlocksWithoutLogsArePassed() throws Exception {
    FakeChain chain = new FakeChain(Sets.random());
    chain.grow(1);
    chain.grow(new int[200]);
    chain.grow(1);
    chain.mostBlocks = 3;
    try (Wire wire = new Wire(chain);
        Provider provider = connect(wire.at("ws"));
        Feed<Log> feed = logs(provider, 0)) {
      new Booked().takeUntil(feed, () -> chain.logs(0));
      assertTrue(chain.asked < 150, chain.asked + " requests");
    }
  }

  @Test
  void aFeedThatIsNotReadAsksForNothing() throws Exception {
    FakeChain chain = new FakeChain(Sets.random());
    int[] logs = new int[2_000];
    Arrays.fill(logs, 1);
    chain.grow(logs);
    chain.mostLogs = 20;
    try (Wire wire = new Wire(chain);
        Provider provider = connect(wire.at("ws"));
        Feed<Log> feed = logs(provider, 0)) {
      Booked booked = new Booked();
      booked.take(feed.next(LONG).orElseThrow());
      int asked = chain.asked;
      assertTrue(asked < 10, asked + " requests");
      // What was read is taken without another request.
      booked.take(feed.next(LONG).orElseThrow());
      chain.grow(logs);
      assertEquals(asked, chain.asked);
      booked.takeUntil(feed, () -> chain.logs(0));
    }
  }

  @Test
  void whatTheServerHasNoMoreIsAGap() throws Exception {
    FakeChain chain = new FakeChain(Sets.random());
    chain.grow(new int[5_000]);
    chain.grow(1, 2);
    chain.pruned = 3_333;
    try (Wire wire = new Wire(chain);
        Provider provider = connect(wire.at("ws"));
        Feed<Log> feed = logs(provider, 10)) {
      Gap<Log> gap = new Gap<>(10, 3_332, "the server refuses them: pruned history unavailable");
      assertEquals(gap, feed.next(LONG).orElseThrow());
      new Booked().takeUntil(feed, () -> chain.logs(3_333));
      assertTrue(chain.asked < 60, chain.asked + " requests");
    }
  }

  @Test
  void aChainThatBecomesShorterIsFollowed() throws Exception {
    FakeChain chain = new FakeChain(Sets.random());
    chain.grow(new int[20]);
    try (Wire wire = new Wire(chain);
        Provider provider = connect(wire.at("http"));
        Feed<BlockHeader> feed = Feed.open(provider, new HeadSource(), BlockId.of(2))) {
      chain.reorganise(15, 0, 0);
      List<Hash> seen = new ArrayList<>();
      while (!seen.equals(chain.hashes(2))) {
        switch (feed.next(LONG).orElseThrow()) {
          case Added<BlockHeader>(BlockHeader header) -> seen.add(header.hash());
          case Update<BlockHeader> other -> throw new AssertionError(other.toString());
        }
      }
      chain.grow(new int[20]);
      try (Feed<Log> logs = logs(provider, 15)) {
        chain.reorganise(15, 1);
        assertEquals(Optional.empty(), logs.next(Duration.ZERO));
        chain.grow(1, 1, 1, 1);
        new Booked().takeUntil(logs, () -> chain.logs(15));
      }
    }
  }

  private static Gap<Log> gap(Feed<Log> feed) {
    Update<Log> update = feed.next(LONG).orElseThrow();
    if (update instanceof Gap<Log> gap) {
      return gap;
    }
    throw new AssertionError(update.toString());
  }

  @Test
  void whatIsKeptNoMoreIsAGap() throws Exception {
    FakeChain chain = new FakeChain(Sets.random());
    chain.grow(1, 1, 1, 5, 1, 1, 1, 1);
    LogSource all = new LogSource(LogFilter.ALL);
    try (Wire wire = new Wire(chain);
        Provider provider = connect(wire.at("ws"));
        Feed<Log> feed = Feed.open(provider, all, BlockId.of(1), 100, 7)) {
      Booked booked = new Booked();
      booked.takeUntil(feed, () -> chain.logs(1));
      // Blocks 5 to 8 are kept, and 4 is not.
      chain.reorganise(6, 2, 2, 2, 2, 2, 2, 2);
      for (int i = 0; i < 4; i++) {
        booked.take(feed.next(LONG).orElseThrow());
      }
      Gap<Log> gap = gap(feed);
      assertEquals(3, gap.from());
      assertEquals(4, gap.to());
      for (String log : chain.logs(5)) {
        switch (feed.next(LONG).orElseThrow()) {
          case Added<Log>(Log added) -> assertEquals(log, name(added));
          case Update<Log> other -> throw new AssertionError(other.toString());
        }
      }
    }
    try (Wire wire = new Wire(chain);
        Provider provider = connect(wire.at("ws"));
        Feed<Log> feed = Feed.open(provider, all, BlockId.of(1), 3, 100)) {
      Booked booked = new Booked();
      booked.takeUntil(feed, () -> chain.logs(1));
      chain.reorganise(5, 1, 1, 1, 1, 1, 1);
      for (int i = 0; i < 6; i++) {
        booked.take(feed.next(LONG).orElseThrow());
      }
      Gap<Log> gap = gap(feed);
      assertEquals(1, gap.from());
      assertEquals(chain.head() - 4, gap.to());
    }
  }

  @Test
  void aServerThatRefusesEverythingIsAnError() throws Exception {
    FakeChain chain = new FakeChain(Sets.random());
    chain.grow(1, 1);
    chain.pruned = 10;
    try (Wire wire = new Wire(chain);
        Provider provider = connect(wire.at("ws"));
        Feed<Log> feed = logs(provider, 0)) {
      RpcException refused = assertThrows(RpcException.class, () -> feed.next(LONG));
      assertEquals(4444, refused.code());
      chain.pruned = 0;
      new Booked().takeUntil(feed, () -> chain.logs(0));
    }
  }

  @Test
  void closingEndsWhoWaits() throws Exception {
    for (String scheme : List.of("ws", "http")) {
      FakeChain chain = new FakeChain(Sets.random());
      try (Wire wire = new Wire(chain)) {
        Provider provider = connect(wire.at(scheme));
        Feed<Log> waiting = logs(provider, 0);
        CompletableFuture<Boolean> more =
            CompletableFuture.supplyAsync(() -> waiting.iterator().hasNext());
        waiting.close();
        assertFalse(more.get());
        Feed<Log> orphan = logs(provider, 0);
        CompletableFuture<Boolean> none =
            CompletableFuture.supplyAsync(() -> orphan.iterator().hasNext());
        provider.close();
        assertFalse(none.get());
        assertEquals(Optional.empty(), orphan.next(LONG));
      }
    }
  }

  @Test
  void closingEndsARequest() throws Exception {
    CountDownLatch asked = new CountDownLatch(1);
    CountDownLatch ended = new CountDownLatch(1);
    FakeChain chain = new FakeChain(Sets.random());
    chain.grow(1);
    Wire.Answers stalls =
        (method, params, peer) -> {
          if (method.equals("eth_getLogs")) {
            asked.countDown();
            try {
              ended.await();
            } catch (InterruptedException interrupted) {
              throw new java.io.IOException(interrupted);
            }
          }
          return chain.answer(method, params, peer);
        };
    try (Wire wire = new Wire(stalls);
        Provider provider = connect(wire.at("ws"))) {
      Feed<Log> feed = logs(provider, 0);
      CompletableFuture<Boolean> more =
          CompletableFuture.supplyAsync(() -> feed.iterator().hasNext());
      asked.await();
      feed.close();
      assertFalse(more.get());
      ended.countDown();
    }
  }
}
