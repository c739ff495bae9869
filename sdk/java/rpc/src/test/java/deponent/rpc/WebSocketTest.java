package deponent.rpc;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import deponent.eth.Bytes;
import deponent.eth.JsonReader;
import deponent.eth.ProtocolException;
import deponent.eth.RpcException;
import deponent.eth.TransportException;
import deponent.eth.TransportException.Kind;
import deponent.sets.Sets;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

class WebSocketTest {
  private static final Request<Long> NUMBER =
      Request.of("eth_blockNumber", Params.NONE, JsonReader::nextQuantity).repeatable();

  /** A request that must not run twice. */
  private static final Request<Long> ONCE =
      Request.of("once", Params.NONE, JsonReader::nextQuantity);

  private static final Duration LONG = Duration.ofSeconds(60);

  private static Provider connect(Server server) {
    return Provider.at(server.at("ws://127.0.0.1")).timeout(LONG).connect();
  }

  private static void echo(Server.Peer peer) throws Exception {
    peer.upgrade();
    while (true) {
      peer.send(Server.Peer.result(peer.text(), "\"0x2a\""));
    }
  }

  @Test
  void aCallIsAnsweredOverWebSocketAndUnixSocket() throws Exception {
    try (Server server = Server.tcp((peer, n) -> echo(peer));
        Provider provider = connect(server)) {
      assertEquals(42, provider.request(NUMBER));
      assertEquals(42, provider.requestAsync(NUMBER).get());
    }
    Server.Script lines =
        (peer, n) -> {
          while (true) {
            // Two values without anything between, and one over several writes.
            String answer = Server.Peer.result(peer.line(), "\"0x2a\"");
            peer.write("{\"method\":\"x\",\"params\":[1]}" + answer.substring(0, 9));
            peer.write(answer.substring(9));
          }
        };
    try (Server server = Server.unix(lines);
        Provider provider = Provider.at(server.at("unix:")).timeout(LONG).connect()) {
      for (int i = 0; i < 100; i++) {
        assertEquals(42, provider.request(NUMBER));
      }
    }
  }

  @Test
  void requestsAreJsonWithTheirParametersAndMasked() throws Exception {
    BlockingQueue<String> seen = new LinkedBlockingQueue<>();
    Server.Script script =
        (peer, n) -> {
          peer.upgrade();
          while (true) {
            String request = peer.text();
            seen.add(request);
            peer.send(Server.Peer.result(request, "\"0x1\""));
          }
        };
    try (Server server = Server.tcp(script);
        Provider provider = connect(server)) {
      Params params = json -> json.value("a\u20ac").beginObject().name("b").value(1).endObject();
      provider.request(Request.of("m", params, JsonReader::nextQuantity));
      String expected = "\"method\":\"m\",\"params\":[\"a\u20ac\",{\"b\":1}]}";
      assertTrue(seen.take().endsWith(expected));
      for (int length : new int[] {1, 50, 125, 126, 65_000, 65_536, 70_001, 1_000_000}) {
        String text = "x".repeat(length);
        provider.request(Request.of("m", json -> json.value(text), JsonReader::nextQuantity));
        assertTrue(seen.take().endsWith("\"params\":[\"" + text + "\"]}"), "length " + length);
      }
    }
  }

  @Test
  void messagesOfAllLengthsArriveInAnyFragmentsWithPingsBetween() throws Exception {
    Random random = Sets.random();
    BlockingQueue<byte[]> results = new LinkedBlockingQueue<>();
    BlockingQueue<Integer> parts = new LinkedBlockingQueue<>();
    BlockingQueue<Integer> pongs = new LinkedBlockingQueue<>();
    Server.Script script =
        (peer, n) -> {
          peer.upgrade();
          while (true) {
            String request = peer.text();
            if (request.contains("pongs")) {
              pongs.add(peer.pongs.get());
              peer.send(Server.Peer.result(request, "\"0x1\""));
              continue;
            }
            String hex = "\"" + Bytes.of(results.take()) + "\"";
            byte[] text = Server.Peer.result(request, hex).getBytes(StandardCharsets.UTF_8);
            peer.fragments(text, parts.take(), true);
          }
        };
    try (Server server = Server.tcp(script);
        Provider provider = connect(server)) {
      Request<Bytes> get = Request.of("eth_getX", Params.NONE, JsonReader::nextBytes).repeatable();
      int sent = 0;
      for (int size : new int[] {0, 20, 40, 41, 42, 43, 44, 32_700, 32_750, 32_768, 3_000_000}) {
        for (int count : new int[] {1, 2, 7, 1 + random.nextInt(1_000)}) {
          byte[] result = new byte[size];
          random.nextBytes(result);
          results.add(result);
          parts.add(count);
          assertEquals(Bytes.of(result), provider.request(get), size + " in " + count);
          sent++;
        }
      }
      assertTrue(sent > 40);
      provider.request(Request.of("pongs", Params.NONE, JsonReader::nextQuantity));
      assertTrue(pongs.take() > 1_000);
    }
  }

  @Test
  void membersComeInAnyOrderAndAnswersToNobodyArePassedOver() throws Exception {
    Server.Script script =
        (peer, n) -> {
          peer.upgrade();
          String first = Server.Peer.id(peer.text());
          peer.send("{\"id\":77777,\"result\":[{\"a\":1}]}");
          peer.send("{\"result\":{\"a\":[]},\"id\":null}");
          peer.send("{\"error\":null,\"x\":{},\"result\":\"0x5\",\"id\":" + first + "}");
          // The slot's next use has another id.
          String second = Server.Peer.id(peer.text());
          peer.send("{\"id\":" + first + ",\"result\":\"0x6\"}");
          peer.send("[{\"id\":" + second + ",\"result\":\"0x7\"}]");
          String third = Server.Peer.id(peer.text());
          peer.send("{\"id\":" + third + "}");
          String fourth = Server.Peer.id(peer.text());
          String error = "{\"data\":{\"b\":[1]},\"code\":-32000,\"message\":\"no\"}";
          peer.send("{\"id\":" + fourth + ",\"result\":null,\"error\":" + error + "}");
          peer.send("{\"id\":null,\"error\":{\"code\":-32700,\"message\":\"what\"}}");
          String fifth = Server.Peer.id(peer.text());
          peer.send("{\"id\":null,\"error\":{\"code\":-32700,\"message\":\"what\"}}");
          peer.next();
        };
    try (Server server = Server.tcp(script);
        Provider provider = connect(server)) {
      assertEquals(5, provider.request(NUMBER));
      assertEquals(7, provider.request(NUMBER));
      assertThrows(ProtocolException.class, () -> provider.request(NUMBER));
      RpcException error = assertThrows(RpcException.class, () -> provider.request(NUMBER));
      assertEquals(-32000, error.code());
      assertEquals("no", error.getMessage());
      assertEquals("{\"b\":[1]}", error.data());
      assertEquals(-32700, assertThrows(RpcException.class, () -> provider.request(NUMBER)).code());
    }
  }

  @Test
  void aResultOfAnotherFormFailsItsCallAlone() throws Exception {
    String[] results = {
      "{\"a\":[1,{\"b\":\"}]\"}],\"c\":null}",
      "[[[]],1]",
      "\"0xabc\"",
      "\"0x0g\\\"\"",
      "true",
      "null"
    };
    Server.Script script =
        (peer, n) -> {
          peer.upgrade();
          for (String result : results) {
            String request = peer.text();
            String second = "{\"id\":" + Server.Peer.id(request) + "}";
            peer.send("[" + Server.Peer.result(request, result) + "," + second + "]");
          }
          peer.send(Server.Peer.result(peer.text(), "\"0x01\""));
          peer.next();
        };
    try (Server server = Server.tcp(script);
        Provider provider = connect(server)) {
      Request<Bytes> get = Request.of("get", Params.NONE, JsonReader::nextBytes);
      for (int i = 0; i < results.length; i++) {
        ProtocolException wrong =
            assertThrows(ProtocolException.class, () -> provider.request(get));
        assertTrue(wrong.getMessage().startsWith("get: JSON at byte "), wrong.getMessage());
      }
      assertEquals(Bytes.of("0x01"), provider.request(get));
      assertEquals(1, server.accepted.get());
    }
  }

  @Test
  void whatIsNoWebSocketEndsTheConnectionWithItsCode() throws Exception {
    record Lie(int code, int first, String payload) {}
    List<Lie> lies =
        List.of(
            new Lie(1002, 0xc1, "{}"),
            new Lie(1002, 0x83, "{}"),
            new Lie(1002, 0x80, "{}"),
            new Lie(1002, 0x8b, ""),
            new Lie(1002, 0x09, ""),
            new Lie(1002, 0x81, ""),
            new Lie(1002, 0x81, "{"),
            new Lie(1002, 0x81, "{\"id\":tru}"),
            new Lie(1002, 0x81, "{} {}"),
            new Lie(1002, 0x81, "7"),
            new Lie(1007, 0x81, "\u00ff"),
            new Lie(1009, 0x81, "[" + " ".repeat(2_000) + "]"));
    for (Lie lie : lies) {
      BlockingQueue<Integer> codes = new LinkedBlockingQueue<>();
      Server.Script script =
          (peer, n) -> {
            peer.upgrade();
            peer.text();
            byte[] payload = lie.payload.getBytes(StandardCharsets.ISO_8859_1);
            peer.frame(lie.first, payload, 0, payload.length);
            byte[] close = peer.frame();
            codes.add(close[0] == Outbox.CLOSE ? (close[1] & 255) << 8 | close[2] & 255 : -1);
          };
      try (Server server = Server.tcp(script);
          Provider provider =
              Provider.at(server.at("ws://127.0.0.1")).timeout(LONG).answerBytes(1_000).connect()) {
        assertThrows(ProtocolException.class, () -> provider.request(NUMBER), lie.toString());
        assertEquals(lie.code, codes.take(), lie.toString());
      }
    }
  }

  @Test
  void aHandshakeThatFailsSaysWhy() throws Exception {
    record Case(String answer, Class<? extends Exception> type, String kind) {}
    List<Case> cases =
        List.of(
            new Case("HTTP/1.1 403 Forbidden\r\n\r\n", TransportException.class, "REFUSED"),
            new Case("HTTP/1.1 401 x\r\n\r\n", TransportException.class, "REFUSED"),
            new Case("HTTP/1.1 429 x\r\n\r\n", TransportException.class, "BUSY"),
            new Case("HTTP/1.1 200 OK\r\n\r\n", ProtocolException.class, ""),
            new Case("SSH-2.0-x\r\n\r\n", ProtocolException.class, ""),
            new Case(
                "HTTP/1.1 101 x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                    + "Sec-WebSocket-Accept: x\r\n\r\n",
                ProtocolException.class,
                ""),
            new Case("", TransportException.class, "CONNECT"));
    for (Case one : cases) {
      Server.Script script =
          (peer, n) -> {
            peer.head();
            peer.write(one.answer);
          };
      try (Server server = Server.tcp(script)) {
        Exception failure = assertThrows(one.type, () -> connect(server).close(), one.answer);
        if (failure instanceof TransportException transport) {
          assertEquals(one.kind, transport.kind().name());
          assertFalse(transport.mayHaveRun());
        }
      }
    }
    String address;
    try (Server server = Server.tcp((peer, n) -> peer.head())) {
      address = server.at("ws://127.0.0.1");
    }
    TransportException none =
        assertThrows(TransportException.class, () -> Provider.at(address).connect());
    assertEquals(Kind.CONNECT, none.kind());
    // A peer that says nothing, and one that never ends its head.
    Server.Script silent =
        (peer, n) -> {
          while (true) {
            peer.next();
          }
        };
    Server.Script slow =
        (peer, n) -> {
          peer.head();
          peer.write("HTTP/1.1 101 x\r\n");
          while (true) {
            peer.write("a: b\r\n");
            new CountDownLatch(1).await(20, TimeUnit.MILLISECONDS);
          }
        };
    for (Server.Script script : List.of(silent, slow)) {
      try (Server server = Server.tcp(script)) {
        ProviderBuilder builder =
            Provider.at(server.at("ws://127.0.0.1")).timeout(Duration.ofMillis(300));
        TransportException late = assertThrows(TransportException.class, builder::connect);
        assertEquals(Kind.TIMEOUT, late.kind());
      }
    }
  }

  @Test
  void headersAreSentAndNoOriginUnlessOneIsSet() throws Exception {
    BlockingQueue<String> heads = new LinkedBlockingQueue<>();
    Server.Script script =
        (peer, n) -> {
          heads.add(peer.upgrade());
          peer.next();
        };
    try (Server server = Server.tcp(script)) {
      Provider.at(server.at("ws://127.0.0.1") + "/a?b=c").timeout(LONG).connect().close();
      String head = heads.take();
      assertTrue(head.startsWith("GET /a?b=c HTTP/1.1\r\nHost: 127.0.0.1:"), head);
      assertFalse(head.contains("Origin"), head);
      Provider.at(server.at("ws://127.0.0.1"))
          .timeout(LONG)
          .header("X-Key", "v")
          .bearer(() -> "token")
          .origin("https://here")
          .connect()
          .close();
      head = heads.take();
      assertTrue(head.contains("\r\nX-Key: v\r\n"), head);
      assertTrue(head.contains("\r\nAuthorization: Bearer token\r\n"), head);
      assertTrue(head.contains("\r\nOrigin: https://here\r\n"), head);
    }
    ProviderBuilder builder = Provider.at("ws://127.0.0.1");
    assertThrows(IllegalArgumentException.class, () -> builder.header("a", "b\r\nc"));
    assertThrows(IllegalArgumentException.class, () -> builder.header("a b", ""));
    for (String no : List.of("ftp://x", "localhost:8545", "127.0.0.1:8545", "eth.example")) {
      Exception thrown = assertThrows(IllegalArgumentException.class, () -> Provider.at(no));
      assertTrue(thrown.getMessage().contains("begins with ws://"), thrown.getMessage());
    }
    assertThrows(IllegalArgumentException.class, () -> Provider.at("unix:relative"));
  }

  @Test
  void aServerThatStallsEndsInATimeoutAndInBackPressure() throws Exception {
    Server.Script script =
        (peer, n) -> {
          peer.upgrade();
          while (true) {
            String request = peer.text();
            if (request.contains("eth_blockNumber")) {
              peer.send(Server.Peer.result(request, "\"0x2a\""));
            }
          }
        };
    try (Server server = Server.tcp(script);
        Provider provider =
            Provider.at(server.at("ws://127.0.0.1")).timeout(LONG).inFlight(2).connect()) {
      Request<Long> soon = ONCE.timeout(Duration.ofMillis(100));
      TransportException late =
          assertThrows(TransportException.class, () -> provider.request(soon));
      assertEquals(Kind.TIMEOUT, late.kind());
      assertTrue(late.mayHaveRun());
      ExecutionException lateToo =
          assertThrows(ExecutionException.class, () -> provider.requestAsync(soon).get());
      assertInstanceOf(TransportException.class, lateToo.getCause());
      CompletableFuture<Long> first = provider.requestAsync(ONCE);
      CompletableFuture<Long> second = provider.requestAsync(ONCE);
      TransportException busy =
          assertThrows(TransportException.class, () -> provider.request(soon));
      assertEquals(Kind.BUSY, busy.kind());
      assertFalse(busy.mayHaveRun());
      first.cancel(true);
      assertEquals(42, provider.request(NUMBER));
      Thread.currentThread().interrupt();
      assertThrows(TransportException.class, () -> provider.request(ONCE));
      assertTrue(Thread.interrupted());
      assertEquals(42, provider.request(NUMBER));
      assertFalse(second.isDone());
    }
  }

  @Test
  void aBatchIsOneArrayAndItsAnswersComeInAnyOrder() throws Exception {
    Server.Script script =
        (peer, n) -> {
          peer.upgrade();
          String request = peer.text();
          if (!request.startsWith("[{") || !request.endsWith("}]")) {
            throw new IllegalStateException(request);
          }
          List<String> answers = new ArrayList<>();
          for (String one : request.split("\\},\\{")) {
            String number = one.replaceAll(".*\"params\":\\[([0-9]+)\\].*", "$1");
            answers.add(0, Server.Peer.result(one, "\"0x" + number + "\""));
          }
          peer.send("[" + String.join(",", answers) + "]");
          peer.next();
        };
    try (Server server = Server.tcp(script);
        Provider provider = connect(server)) {
      Batch batch = provider.batch();
      List<CompletableFuture<Long>> results = new ArrayList<>();
      List<CompletableFuture<Long>> spoilt = new ArrayList<>();
      for (int i = 0; i < 100; i++) {
        long number = i;
        results.add(
            batch.add(Request.of("m", json -> json.value(number), JsonReader::nextQuantity)));
        if (i % 40 == 0) {
          // One that cannot be written does not spoil the others.
          spoilt.add(
              batch.add(Request.of("m", json -> json.quantity(-1), JsonReader::nextQuantity)));
        }
      }
      batch.send();
      for (int i = 0; i < 100; i++) {
        assertEquals(Long.parseLong("" + i, 16), results.get(i).get());
      }
      for (CompletableFuture<Long> one : spoilt) {
        ExecutionException failed = assertThrows(ExecutionException.class, one::get);
        assertInstanceOf(IllegalArgumentException.class, failed.getCause());
      }
    }
  }

  @Test
  void callbacksBlockNoReaderAndTheReaderRefusesToWaitForItself() throws Exception {
    CountDownLatch registered = new CountDownLatch(1);
    Server.Script script =
        (peer, n) -> {
          peer.upgrade();
          while (true) {
            String request = peer.text();
            // A callback of a future that is complete would run on the caller's thread.
            registered.await();
            peer.send(Server.Peer.result(request, "\"0x2a\""));
          }
        };
    try (Server server = Server.tcp(script);
        Provider provider = connect(server)) {
      CountDownLatch go = new CountDownLatch(1);
      BlockingQueue<Object> seen = new ArrayBlockingQueue<>(2);
      CompletableFuture<Void> blocked =
          provider
              .requestAsync(NUMBER)
              .thenAccept(
                  number -> {
                    try {
                      go.await();
                      seen.add(provider.request(NUMBER));
                    } catch (InterruptedException no) {
                      seen.add(no);
                    }
                  });
      registered.countDown();
      for (int i = 0; i < 100; i++) {
        assertEquals(42, provider.request(NUMBER));
      }
      go.countDown();
      blocked.get();
      assertEquals(42L, seen.take());
      Request<Long> inside = Request.of("m", Params.NONE, json -> provider.request(NUMBER));
      assertThrows(IllegalStateException.class, () -> provider.request(inside));
      assertEquals(42, provider.request(NUMBER));
    }
  }
}
