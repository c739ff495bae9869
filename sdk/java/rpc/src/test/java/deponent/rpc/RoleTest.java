package deponent.rpc;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import deponent.eth.JsonReader;
import deponent.eth.ProtocolException;
import deponent.eth.TransportException;
import deponent.eth.TransportException.Kind;
import deponent.sets.Sets;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentSkipListSet;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.Test;

/** Callers that read their answers themselves, beside the connection's thread that reads all. */
class RoleTest {
  private static final Duration LONG = Duration.ofSeconds(120);

  private static final Request<Long> NUMBER =
      Request.of("eth_blockNumber", Params.NONE, JsonReader::nextQuantity).repeatable();

  private static final Request<String> OPEN =
      Request.of("eth_subscribe", json -> json.value("newHeads"), JsonReader::nextString);

  private static final Backoff QUICK = new Backoff(Duration.ofMillis(5), Duration.ofMillis(20));

  /** Callers read whenever they can, or never. */
  private static Provider connect(Server server, boolean callersRead) {
    ProviderBuilder builder = Provider.at(server.at("ws://127.0.0.1")).timeout(LONG);
    builder.loneCallers = callersRead ? 0 : Integer.MAX_VALUE;
    return builder.reconnect(QUICK).connect();
  }

  private static Request<String> ask(String method, long number) {
    return Request.of(method, json -> json.value(number), JsonReader::nextString).repeatable();
  }

  /** The answer to {@code ask} with a number: the longer, the more the number's last digits are. */
  private static String answer(long number) {
    int length = number % 50 == 49 ? 70_000 : number % 10 == 9 ? 5_000 : (int) (number % 10);
    return number + "x".repeat(length);
  }

  // The server: what is asked decides what is answered, chance how.

  private static final class Node implements Server.Script {
    private final Random random;
    private final Set<Long> dropped = ConcurrentHashMap.newKeySet();

    Node(long seed) {
      random = new Random(seed);
    }

    @Override
    public void serve(Server.Peer peer, int connection) throws Exception {
      peer.upgrade();
      List<String> held = new ArrayList<>();
      int pings = 0;
      while (true) {
        String text = peer.text();
        List<String> answers = new ArrayList<>();
        for (String request : text.split("(?<=\\]\\}),")) {
          long number = number(request);
          if (request.contains("\"drop\"") && dropped.add(number)) {
            return;
          }
          if (request.contains("\"emit\"")) {
            peer.send(
                "{\"method\":\"eth_subscription\",\"params\":{\"subscription\":\"0x7\",\"result\":"
                    + number
                    + "}}");
          }
          String result = request.contains("subscribe\"") ? "0x7" : answer(number);
          answers.add(random.nextInt(answers.size() + 1), answered(request, result));
        }
        boolean batch = text.startsWith("[");
        held.add(batch ? "[" + String.join(",", answers) + "]" : answers.get(0));
        // Answers change places while more requests are here.
        if (held.size() < 6 && moreText(peer)) {
          continue;
        }
        while (text.contains("\"pongs\"") && peer.pongs.get() < pings) {
          if (peer.frame()[0] == Outbox.PONG) {
            peer.pongs.incrementAndGet();
          }
        }
        while (!held.isEmpty()) {
          pings += send(peer, held.remove(random.nextInt(held.size())));
        }
      }
    }

    private static boolean moreText(Server.Peer peer) throws Exception {
      if (peer.in.available() == 0) {
        return false;
      }
      peer.in.mark(1);
      int first = peer.next();
      peer.in.reset();
      return (first & 15) == Outbox.TEXT;
    }

    private static long number(String request) {
      return Long.parseLong("0" + request.replaceAll(".*\"params\":\\[([0-9]*).*", "$1"));
    }

    private static String answered(String request, String result) {
      return Server.Peer.result(request, "\"" + result + "\"");
    }

    /** Sends in one of several ways, and returns how many pings went with it. */
    private int send(Server.Peer peer, String text) throws Exception {
      byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
      switch (random.nextInt(6)) {
        case 0 -> {
          int parts = 1 + random.nextInt(5);
          peer.fragments(bytes, parts, true);
          return parts - 1;
        }
        case 1 -> {
          byte[] ping = {1};
          peer.frame(0x80 | Outbox.PING, ping, 0, 1);
          peer.send(text);
          return 1;
        }
        case 2 -> {
          // In small writes, which may arrive one by one.
          java.io.ByteArrayOutputStream whole = new java.io.ByteArrayOutputStream();
          Server.Peer.frameTo(whole, 0x81, bytes, 0, bytes.length);
          byte[] frame = whole.toByteArray();
          for (int from = 0; from < frame.length; ) {
            int some = Math.min(frame.length - from, 1 + random.nextInt(frame.length));
            peer.out.write(frame, from, some);
            peer.out.flush();
            from += some;
          }
          return 0;
        }
        default -> {
          peer.send(text);
          return 0;
        }
      }
    }
  }

  // The client: rounds of callers, each with its own plan.

  /** One caller's plan: a kind, and the steps that it makes. */
  private record Plan(int kind, List<int[]> steps) {}

  private static List<List<Plan>> plans(Random random) {
    List<List<Plan>> rounds = new ArrayList<>();
    int number = 1;
    for (int round = 0; round < 60; round++) {
      List<Plan> plans = new ArrayList<>();
      int callers = random.nextInt(3) > 0 ? 1 : 2 + random.nextInt(4);
      for (int i = 0; i < callers; i++) {
        List<int[]> steps = new ArrayList<>();
        for (int step = 1 + random.nextInt(20); step > 0; step--) {
          int chance = random.nextInt(60);
          steps.add(new int[] {chance, number++});
        }
        plans.add(new Plan(random.nextInt(5), steps));
      }
      rounds.add(plans);
    }
    return rounds;
  }

  /** What one caller got, and what it caused a subscription to get. */
  private static List<String> follow(Provider provider, Plan plan, Set<Long> emitted)
      throws Exception {
    List<String> results = new ArrayList<>();
    List<CompletableFuture<String>> futures = new ArrayList<>();
    for (int[] step : plan.steps) {
      int number = step[1];
      String method = step[0] == 0 ? "drop" : step[0] < 6 ? "emit" : "ask";
      if (method.equals("emit")) {
        emitted.add((long) number);
      }
      if (step[0] == 59) {
        LockSupport.parkNanos(120_000_000);
      }
      Request<String> request = ask(method, number);
      switch (plan.kind) {
        case 0 -> results.add(provider.request(request));
        case 1 -> futures.add(provider.requestAsync(request).thenApply(text -> text + "!"));
        case 2 -> results.add(provider.requestAsync(request).join());
        case 3 -> {
          Batch batch = provider.batch();
          CompletableFuture<String> first = batch.add(request);
          CompletableFuture<String> second = batch.add(ask("ask", 7L * number));
          CompletableFuture<String> third = second.thenApply(text -> text + "?");
          batch.sendAndWait();
          assertTrue(first.isDone());
          results.add(first.join());
          results.add(third.join());
        }
        default -> {
          Batch batch = provider.batch();
          futures.add(batch.add(request));
          futures.add(batch.add(ask("ask", 10L * number)));
          results.add(provider.request(ask("ask", 3L * number)));
          batch.send();
        }
      }
    }
    for (CompletableFuture<String> future : futures) {
      results.add(future.get());
    }
    return results;
  }

  private static List<Object> run(long seed, boolean callersRead) throws Exception {
    List<Object> outcome = new ArrayList<>();
    List<List<Plan>> rounds = plans(new Random(seed));
    Random random = new Random(seed + 1);
    try (Server server = Server.tcp(new Node(seed + 2));
        Provider provider = connect(server, callersRead)) {
      Subscription<Long> values = null;
      Set<Long> emitted = new ConcurrentSkipListSet<>();
      for (List<Plan> plans : rounds) {
        boolean opens = random.nextInt(4) == 0;
        if (opens && values == null) {
          values = provider.subscribe(OPEN, JsonReader::nextLong);
          emitted.clear();
        }
        List<FutureTask<List<String>>> callers = new ArrayList<>();
        for (Plan plan : plans) {
          FutureTask<List<String>> caller = new FutureTask<>(() -> follow(provider, plan, emitted));
          callers.add(caller);
          if (plan.steps.size() % 3 == 0) {
            Thread.startVirtualThread(caller);
          } else {
            new Thread(caller).start();
          }
        }
        for (FutureTask<List<String>> caller : callers) {
          outcome.add(caller.get());
        }
        if (opens && values != null && random.nextBoolean()) {
          outcome.add(taken(values, emitted));
          values.close();
          values = null;
        }
      }
      // All pings were answered.
      provider.request(ask("pongs", 0));
    }
    return outcome;
  }

  /** The values of a subscription, which may come twice over a dropped connection. */
  private static Set<Long> taken(Subscription<Long> values, Set<Long> emitted) {
    Set<Long> seen = new TreeSet<>();
    while (!seen.containsAll(emitted)) {
      if (values.next(LONG).orElseThrow() instanceof Notice.Value<Long>(Long value)) {
        seen.add(value);
      }
    }
    return seen;
  }

  @Test
  void callersThatReadGetWhatTheConnectionsThreadGets() throws Exception {
    long seed = Sets.random().nextLong();
    List<Object> one = run(seed, false);
    List<Object> other = run(seed, true);
    assertEquals(one.size(), other.size());
    for (int i = 0; i < one.size(); i++) {
      assertEquals(one.get(i), other.get(i), "outcome " + i);
    }
  }

  /** Answers, stays silent, lies, drops or pings before it answers, as the method says. */
  private static void obey(Server.Peer peer, BlockingQueue<String> seen) throws Exception {
    peer.upgrade();
    while (true) {
      String request = peer.text();
      String method = request.replaceAll(".*\"method\":\"([a-zA-Z_]*).*", "$1");
      switch (method) {
        case "silent" -> {
          seen.add(method);
          continue;
        }
        case "lie" -> {
          peer.send("{\"id\":what}");
          byte[] close = peer.frame();
          seen.add(close[0] + " " + ((close[1] & 255) << 8 | close[2] & 255));
          return;
        }
        case "drop" -> {
          seen.add(method);
          if (seen.size() == 1) {
            return;
          }
        }
        case "ping" -> {
          byte[] ping = {1, 2};
          peer.frame(0x80 | Outbox.PING, ping, 0, 2);
          byte[] pong = peer.frame();
          seen.add(pong[0] + " " + pong.length);
        }
        default -> {}
      }
      peer.send(Server.Peer.result(request, "\"0x2a\""));
    }
  }

  private static Request<Long> of(String method) {
    return Request.of(method, Params.NONE, JsonReader::nextQuantity);
  }

  /** A provider whose role is free, since its last caller waited alone. */
  private static Provider read(Server server) {
    Provider provider = connect(server, true);
    for (int i = 0; i < 20; i++) {
      assertEquals(42, provider.request(NUMBER));
    }
    return provider;
  }

  @Test
  void aCallerThatReadsEndsAtItsDeadlineAndByAnInterrupt() throws Exception {
    BlockingQueue<String> seen = new LinkedBlockingQueue<>();
    try (Server server = Server.tcp((peer, n) -> obey(peer, seen));
        Provider provider = read(server)) {
      Request<Long> soon = of("silent").timeout(Duration.ofMillis(250));
      TransportException late =
          assertThrows(TransportException.class, () -> provider.request(soon));
      assertEquals(Kind.TIMEOUT, late.kind());
      assertTrue(late.mayHaveRun());
      assertEquals(42, provider.request(NUMBER));
      seen.clear();
      AtomicReference<TransportException> told = new AtomicReference<>();
      CompletableFuture<Boolean> interrupted = new CompletableFuture<>();
      Thread caller =
          new Thread(
              () -> {
                told.set(
                    assertThrows(TransportException.class, () -> provider.request(of("silent"))));
                interrupted.complete(Thread.currentThread().isInterrupted());
              });
      caller.start();
      assertEquals("silent", seen.take());
      caller.interrupt();
      assertTrue(interrupted.get());
      assertEquals(Kind.TIMEOUT, told.get().kind());
      assertEquals(42, provider.request(NUMBER));
      assertEquals(1, server.accepted.get());
    }
  }

  @Test
  void aBatchThatIsWaitedForEndsByItsDeadlinesAndByAnInterrupt() throws Exception {
    BlockingQueue<String> seen = new LinkedBlockingQueue<>();
    Server.Script script =
        (peer, n) -> {
          peer.upgrade();
          while (true) {
            String text = peer.text();
            if (text.startsWith("[")) {
              // The one that is asked for silence has no answer.
              String first = text.split("\\},\\{")[0];
              peer.send("[" + Server.Peer.result(first, "\"0x2a\"") + "]");
              seen.add("batch");
            } else {
              peer.send(Server.Peer.result(text, "\"0x2a\""));
            }
          }
        };
    for (boolean callersRead : new boolean[] {true, false}) {
      try (Server server = Server.tcp(script);
          Provider provider = connect(server, callersRead)) {
        assertEquals(42, provider.request(NUMBER));
        Batch batch = provider.batch();
        CompletableFuture<Long> answered = batch.add(NUMBER);
        CompletableFuture<Long> silent = batch.add(of("silent").timeout(Duration.ofMillis(250)));
        batch.sendAndWait();
        assertEquals(42, answered.resultNow());
        TransportException late = assertInstanceOf(TransportException.class, silent.exceptionNow());
        assertEquals(Kind.TIMEOUT, late.kind());
        assertEquals("batch", seen.take());

        CompletableFuture<Long> before = batch.add(NUMBER);
        CompletableFuture<Long> never = batch.add(of("silent"));
        CompletableFuture<Boolean> interrupted = new CompletableFuture<>();
        Thread caller =
            new Thread(
                () -> {
                  batch.sendAndWait();
                  interrupted.complete(Thread.currentThread().isInterrupted());
                });
        caller.start();
        assertEquals("batch", seen.take());
        caller.interrupt();
        assertTrue(interrupted.get());
        late = assertInstanceOf(TransportException.class, never.exceptionNow());
        assertEquals(Kind.TIMEOUT, late.kind());
        assertTrue(before.isDone());
        assertEquals(42, provider.request(NUMBER));
      }
    }
  }

  @Test
  void othersAreServedWhileACallerReads() throws Exception {
    BlockingQueue<String> seen = new LinkedBlockingQueue<>();
    try (Server server = Server.tcp((peer, n) -> obey(peer, seen));
        Provider provider = read(server)) {
      FutureTask<TransportException> waiter =
          new FutureTask<>(
              () -> assertThrows(TransportException.class, () -> provider.request(of("silent"))));
      new Thread(waiter).start();
      assertEquals("silent", seen.take());
      assertEquals(42, provider.request(NUMBER));
      assertEquals(42, provider.requestAsync(NUMBER).get());
      FutureTask<Long> light = new FutureTask<>(() -> provider.request(NUMBER));
      Thread.startVirtualThread(light);
      assertEquals(42, light.get());
      assertFalse(waiter.isDone());
      provider.close();
      assertEquals(Kind.CLOSED, waiter.get().kind());
    }
  }

  @Test
  void pingsLiesAndDropsAreForTheConnectionsThread() throws Exception {
    BlockingQueue<String> seen = new LinkedBlockingQueue<>();
    try (Server server = Server.tcp((peer, n) -> obey(peer, seen));
        Provider provider = read(server)) {
      assertEquals(42, provider.request(of("ping")));
      assertEquals(Outbox.PONG + " 3", seen.take());
      assertEquals(42, provider.request(NUMBER));
      assertEquals(42, provider.request(of("drop").repeatable()));
      assertEquals(2, seen.size());
      seen.clear();
      assertEquals(42, provider.request(NUMBER));
      assertThrows(ProtocolException.class, () -> provider.request(of("lie").repeatable()));
      assertEquals(Outbox.CLOSE + " 1002", seen.take());
      assertEquals(42, provider.request(NUMBER));
      Request<Long> inside = Request.of("m", Params.NONE, json -> provider.request(NUMBER));
      assertThrows(IllegalStateException.class, () -> provider.request(inside));
      ExecutionException failed =
          assertThrows(ExecutionException.class, () -> provider.requestAsync(inside).get());
      assertInstanceOf(IllegalStateException.class, failed.getCause());
      assertEquals(3, server.accepted.get());
    }
  }

  @Test
  void theConnectionsThreadComesBackWhenNobodyCalls() throws Exception {
    CountDownLatch called = new CountDownLatch(1);
    CompletableFuture<Byte> pong = new CompletableFuture<>();
    Server.Script script =
        (peer, n) -> {
          peer.upgrade();
          for (int i = 0; i < 20; i++) {
            peer.send(Server.Peer.result(peer.text(), "\"0x2a\""));
          }
          called.await();
          byte[] ping = {1};
          peer.frame(0x80 | Outbox.PING, ping, 0, 1);
          pong.complete(peer.frame()[0]);
          peer.next();
        };
    try (Server server = Server.tcp(script);
        Provider provider = read(server)) {
      called.countDown();
      assertEquals((byte) Outbox.PONG, pong.get());
      provider.close();
    }
  }
}
