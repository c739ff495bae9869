package deponent.rpc;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import deponent.eth.Bytes;
import deponent.eth.EthException;
import deponent.eth.Hash;
import deponent.eth.JsonReader;
import deponent.eth.Keccak256;
import deponent.eth.ProtocolException;
import deponent.eth.RpcException;
import deponent.eth.TransportException;
import deponent.eth.TransportException.Kind;
import deponent.sets.Sets;
import java.io.ByteArrayOutputStream;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.zip.GZIPOutputStream;
import org.junit.jupiter.api.Test;

class HttpTest {
  private static final Request<Long> NUMBER =
      Request.of("eth_blockNumber", Params.NONE, JsonReader::nextQuantity).repeatable();

  private static final Request<Long> ONCE =
      Request.of("once", Params.NONE, JsonReader::nextQuantity);

  private static final Duration LONG = Duration.ofSeconds(60);

  private static ProviderBuilder at(Server server) {
    return Provider.at(server.at("http://127.0.0.1"))
        .timeout(LONG)
        .retry(new Retry(4, Duration.ofMillis(1), Duration.ofMillis(5)));
  }

  @Test
  void bodiesOfEachKindAreReadAndConnectionsKept() throws Exception {
    Random random = Sets.random();
    BlockingQueue<byte[]> results = new LinkedBlockingQueue<>();
    Server.Script script =
        (peer, n) -> {
          for (int i = 0; ; i++) {
            String request = peer.body();
            byte[] body =
                Server.Peer.result(request, "\"" + Bytes.of(results.take()) + "\"")
                    .getBytes(StandardCharsets.UTF_8);
            switch (i % 4) {
              case 0 -> peer.answer(new String(body, StandardCharsets.UTF_8));
              case 1 -> chunks(peer, body, 1 + random.nextInt(body.length), "");
              case 2 -> {
                ByteArrayOutputStream packed = new ByteArrayOutputStream();
                try (GZIPOutputStream gzip = new GZIPOutputStream(packed)) {
                  gzip.write(body);
                }
                chunks(peer, packed.toByteArray(), 1_000, "Content-Encoding: gzip\r\n");
              }
              default -> {
                peer.write("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\nConnection: close\n\n");
                peer.out.write(body);
                return;
              }
            }
          }
        };
    try (Server server = Server.tcp(script);
        Provider provider = at(server).connect()) {
      Request<Bytes> get = Request.of("eth_getX", Params.NONE, JsonReader::nextBytes).repeatable();
      for (int i = 0; i < 40; i++) {
        byte[] result = new byte[i < 8 ? i : random.nextInt(300_000)];
        random.nextBytes(result);
        results.add(result);
        assertEquals(Bytes.of(result), provider.request(get));
      }
      assertEquals(10, server.accepted.get());
    }
  }

  private static void chunks(Server.Peer peer, byte[] body, int each, String headers)
      throws Exception {
    peer.write("HTTP/1.1 200 OK\r\n" + headers + "Transfer-Encoding: chunked\r\n\r\n");
    for (int from = 0; from < body.length; from += each) {
      int length = Math.min(each, body.length - from);
      peer.write(Integer.toHexString(length) + ";a=b\r\n");
      peer.out.write(body, from, length);
      peer.write("\r\n");
    }
    peer.write("0\r\nTrailer: x\r\n\r\n");
  }

  @Test
  void batchesAndFuturesAreAnswered() throws Exception {
    Server.Script script =
        (peer, n) -> {
          while (true) {
            String request = peer.body();
            if (request.startsWith("[")) {
              List<String> answers = new ArrayList<>();
              for (String one : request.split("\\},\\{")) {
                answers.add(0, Server.Peer.result(one, "\"0x" + Server.Peer.id(one) + "\""));
              }
              answers.remove(0);
              peer.answer("[" + String.join(",", answers) + "]");
            } else {
              peer.answer(Server.Peer.result(request, "\"0x2a\""));
            }
          }
        };
    try (Server server = Server.tcp(script);
        Provider provider = at(server).connect()) {
      Batch batch = provider.batch();
      List<CompletableFuture<Long>> results = new ArrayList<>();
      for (int i = 0; i < 10; i++) {
        results.add(batch.add(NUMBER));
      }
      batch.send();
      for (int i = 0; i < 9; i++) {
        assertEquals(i + 1, results.get(i).get());
      }
      // The server left the last one out.
      assertTrue(results.get(9).handle((value, failure) -> failure).get() != null);
      CompletableFuture<Long> first = batch.add(NUMBER);
      CompletableFuture<Long> depended = batch.add(NUMBER).thenApply(number -> number + 1);
      CompletableFuture<Long> left = batch.add(NUMBER);
      batch.sendAndWait();
      assertEquals(1, first.resultNow());
      assertEquals(3, depended.get());
      assertInstanceOf(ProtocolException.class, left.exceptionNow());
      List<CompletableFuture<Long>> many = new ArrayList<>();
      for (int i = 0; i < 500; i++) {
        many.add(provider.requestAsync(NUMBER));
      }
      for (CompletableFuture<Long> one : many) {
        assertEquals(42, one.get());
      }
      assertThrows(
          UnsupportedOperationException.class,
          () ->
              provider.subscribe(
                  Request.of("eth_subscribe", Params.NONE, JsonReader::nextString),
                  JsonReader::nextLong));
    }
  }

  @Test
  void aRequestOfABatchThatEndsEarlyLeavesTheOthersAlone() throws Exception {
    CountDownLatch arrived = new CountDownLatch(1);
    CountDownLatch cancelled = new CountDownLatch(1);
    Server.Script script =
        (peer, n) -> {
          String request = peer.body();
          arrived.countDown();
          cancelled.await();
          String[] two = request.split("\\},\\{");
          peer.answer(
              "["
                  + Server.Peer.result(two[0], "\"0x1\"")
                  + ","
                  + Server.Peer.result(two[1], "\"0x2\"")
                  + "]");
        };
    try (Server server = Server.tcp(script);
        Provider provider = at(server).connect()) {
      Batch batch = provider.batch();
      CompletableFuture<Long> first = batch.add(NUMBER);
      Request<Long> spoilt = Request.of("m", json -> json.quantity(-1), JsonReader::nextQuantity);
      CompletableFuture<Long> none = batch.add(spoilt);
      CompletableFuture<Long> second = batch.add(NUMBER);
      batch.send();
      arrived.await();
      first.cancel(true);
      cancelled.countDown();
      assertEquals(2, second.get());
      ExecutionException failed = assertThrows(ExecutionException.class, none::get);
      assertInstanceOf(IllegalArgumentException.class, failed.getCause());
      assertThrows(IllegalArgumentException.class, () -> provider.request(spoilt));
    }
  }

  @Test
  void whatGoesWrongHasItsException() throws Exception {
    record Case(String answer, Class<? extends EthException> type, String kind) {}
    List<Case> cases =
        List.of(
            new Case(
                "HTTP/1.1 401 x\r\nContent-Length: 0\r\n\r\n", TransportException.class, "REFUSED"),
            new Case(
                "HTTP/1.1 403 x\r\nContent-Length: 0\r\n\r\n", TransportException.class, "REFUSED"),
            new Case(
                "HTTP/1.1 429 x\r\nContent-Length: 0\r\n\r\n", TransportException.class, "BUSY"),
            new Case("HTTP/1.1 500 x\r\nContent-Length: 3\r\n\r\nabc", ProtocolException.class, ""),
            new Case(
                "HTTP/1.1 400 x\r\nContent-Length: 47\r\n\r\n"
                    + "{\"id\":1,\"error\":{\"code\":-32600,\"message\":\"no\"}}",
                RpcException.class,
                ""),
            new Case(
                "HTTP/1.1 200 x\r\nContent-Length: 99\r\n\r\n{\"id\":1",
                TransportException.class,
                "CLOSED"),
            new Case("HTTP/1.1 200 x\r\nContent-Length: -1\r\n\r\n{}", ProtocolException.class, ""),
            new Case(
                "HTTP/1.1 200 x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
                ProtocolException.class,
                ""),
            new Case(
                "HTTP/1.1 200 x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}{}\r\n",
                ProtocolException.class,
                ""),
            new Case(
                "HTTP/1.1 200 x\r\nContent-Length: 6\r\n\r\n<html>", ProtocolException.class, ""),
            new Case("HTTP/1.1 200 x\r\nContent-Length: 2\r\n\r\n{}", ProtocolException.class, ""),
            new Case(
                "HTTP/1.1 200 x\r\nContent-Length: 4\r\n\r\n{}{}", ProtocolException.class, ""),
            new Case("HTTP/1.1 200 x\r\n" + "a: b\r\n".repeat(20_000), ProtocolException.class, ""),
            new Case("HTTP/2 200\r\n\r\n", ProtocolException.class, ""),
            new Case("", TransportException.class, "CLOSED"),
            new Case(
                "HTTP/1.1 200 x\r\nContent-Length: 3002\r\n\r\n[" + " ".repeat(3000) + "]",
                ProtocolException.class,
                ""));
    for (Case one : cases) {
      Server.Script script =
          (peer, n) -> {
            peer.body();
            peer.write(one.answer);
          };
      try (Server server = Server.tcp(script);
          Provider provider = at(server).answerBytes(2_000).connect()) {
        EthException failure =
            assertThrows(one.type, () -> provider.request(ONCE), one.answer.strip());
        if (failure instanceof TransportException transport) {
          assertEquals(one.kind, transport.kind().name(), one.answer);
        }
        assertEquals(1, server.accepted.get());
      }
    }
  }

  @Test
  void slowBytesAndSilenceEndAtTheDeadline() throws Exception {
    Server.Script script =
        (peer, n) -> {
          peer.body();
          peer.write("HTTP/1.1 200 x\r\nContent-Length: 100000\r\n\r\n");
          while (n % 2 == 0) {
            peer.write(" ");
            new CountDownLatch(1).await(20, TimeUnit.MILLISECONDS);
          }
          peer.next();
        };
    try (Server server = Server.tcp(script);
        Provider provider = at(server).connect()) {
      for (int i = 0; i < 2; i++) {
        TransportException late =
            assertThrows(
                TransportException.class,
                () -> provider.request(ONCE.timeout(Duration.ofMillis(300))));
        assertEquals(Kind.TIMEOUT, late.kind());
        assertTrue(late.mayHaveRun());
      }
      CompletableFuture<Long> future = provider.requestAsync(ONCE);
      assertFalse(future.isDone());
      provider.close();
      assertTrue(future.handle((value, failure) -> failure).get() != null);
    }
  }

  @Test
  void anInterruptEndsTheWaitOnAnyThread() throws Exception {
    BlockingQueue<String> arrived = new LinkedBlockingQueue<>();
    Server.Script script =
        (peer, n) -> {
          while (true) {
            String request = peer.body();
            arrived.add(request);
            if (request.contains("eth_blockNumber")) {
              peer.answer(Server.Peer.result(request, "\"0x2a\""));
            }
          }
        };
    try (Server server = Server.tcp(script);
        Provider provider = at(server).connect()) {
      Request<Long> silent = Request.of("silent", Params.NONE, JsonReader::nextQuantity);
      for (Thread.Builder builder : List.of(Thread.ofPlatform(), Thread.ofVirtual())) {
        CompletableFuture<TransportException> ended = new CompletableFuture<>();
        CompletableFuture<Boolean> set = new CompletableFuture<>();
        Thread thread =
            builder.start(
                () -> {
                  ended.complete(
                      assertThrows(
                          TransportException.class, () -> provider.request(silent.repeatable())));
                  set.complete(Thread.currentThread().isInterrupted());
                });
        arrived.take();
        thread.interrupt();
        assertEquals(Kind.TIMEOUT, ended.get().kind());
        assertTrue(ended.get().mayHaveRun());
        assertTrue(set.get());
        assertEquals(42, provider.request(NUMBER));
        arrived.take();
      }
      Thread.currentThread().interrupt();
      assertThrows(TransportException.class, () -> provider.request(NUMBER));
      assertTrue(Thread.interrupted());
      assertEquals(42, provider.request(NUMBER));
    }
  }

  @Test
  void aTransactionIsHashedWithoutItsBlobs() {
    Hash hash = Keccak256.hash(Bytes.of("0x03c20102").toBytes());
    assertEquals(hash, Connected.hashOf(Bytes.of("0x03c20102").toBytes()));
    assertEquals(hash, Connected.hashOf(Bytes.of("0x03c5c20102c0c0").toBytes()));
    assertEquals(hash, Connected.hashOf(Bytes.of("0x03c6c2010201c0c0").toBytes()));
  }

  @Test
  void readsAreTriedAgainAndNothingElse() throws Exception {
    BlockingQueue<String> throttled = new LinkedBlockingQueue<>();
    Listener listener =
        new Listener() {
          @Override
          public void throttled(String method, long nanos) {
            throttled.add(method);
          }
        };
    String raw = "0x02c0";
    Server.Script script =
        (peer, n) -> {
          while (true) {
            String request = peer.body();
            String id = Server.Peer.id(request);
            if (request.contains("eth_sendRaw")) {
              if (n < 4) {
                return;
              }
              String error = "{\"code\":-32000,\"message\":\"already known\"}";
              peer.answer("{\"id\":" + id + ",\"error\":" + error + "}");
            } else if (n == 1) {
              peer.write(
                  "HTTP/1.1 429 x\r\nRetry-After: 0\r\nContent-Length: 0\r\n"
                      + "Connection: close\r\n\r\n");
              return;
            } else if (n == 2) {
              String error = "{\"code\":-32005,\"message\":\"slow down\"}";
              peer.answer("{\"id\":" + id + ",\"error\":" + error + "}");
              return;
            } else {
              peer.answer(Server.Peer.result(request, "\"0x2a\""));
            }
          }
        };
    try (Server server = Server.tcp(script);
        Provider provider = at(server).listener(listener).connect()) {
      assertEquals(42, provider.request(NUMBER));
      assertEquals(List.of("eth_blockNumber", "eth_blockNumber"), List.copyOf(throttled));
      // The kept connection is closed before the answer; the next one says it is known.
      Request<String> send =
          Request.of("eth_sendRawTransaction", json -> json.value(raw), JsonReader::nextString)
              .repeatable();
      String hash = Keccak256.hash(Bytes.of(raw).toBytes()).toString();
      assertEquals(hash, provider.request(send));
    }
    try (Server server = Server.tcp((peer, n) -> peer.body());
        Provider provider = at(server).connect()) {
      assertThrows(TransportException.class, () -> provider.request(ONCE));
      assertEquals(1, server.accepted.get());
      assertThrows(ExecutionException.class, () -> provider.requestAsync(NUMBER).get());
      assertEquals(5, server.accepted.get());
    }
  }

  @Test
  void aProxyIsAskedForATunnel() throws Exception {
    BlockingQueue<String> asked = new LinkedBlockingQueue<>();
    Server.Script script =
        (peer, n) -> {
          asked.add(peer.head());
          peer.write("HTTP/1.1 200 Connection established\r\n\r\n");
          while (true) {
            peer.answer(Server.Peer.result(peer.body(), "\"0x2a\""));
          }
        };
    try (Server server = Server.tcp(script)) {
      int port = Integer.parseInt(server.at("").substring(1));
      InetSocketAddress proxy = InetSocketAddress.createUnresolved("127.0.0.1", port);
      try (Provider provider =
          Provider.at("http://node.invalid:8545").timeout(LONG).proxy(proxy).connect()) {
        assertEquals(42, provider.request(NUMBER));
        assertTrue(asked.take().startsWith("CONNECT node.invalid:8545 HTTP/1.1\r\n"));
      }
    }
  }
}
