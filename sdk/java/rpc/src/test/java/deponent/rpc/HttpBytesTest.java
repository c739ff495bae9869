package deponent.rpc;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import deponent.eth.EthException;
import deponent.eth.ProtocolException;
import deponent.eth.TransportException;
import deponent.eth.TransportException.Kind;
import deponent.sets.Sets;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.LinkedBlockingQueue;
import org.junit.jupiter.api.Test;

/** Bytes over HTTP: {@link Http}. */
class HttpBytesTest {
  private static final Duration LONG = Duration.ofSeconds(120);

  private static Http at(Server server, String scheme) {
    return Provider.at(server.at(scheme))
        .timeout(LONG)
        .retry(new Retry(3, Duration.ofMillis(1), Duration.ofMillis(5)))
        .http();
  }

  private static Http.Ask ask(byte[] body, boolean repeatable) {
    List<String> headers = List.of("X-A: b");
    return new Http.Ask(
        "ask", "POST", "/x?y=1", headers, body, 1L << 30, Optional.empty(), repeatable);
  }

  private static void respond(Server.Peer peer, byte[] body, int chunk) throws IOException {
    if (chunk == 0) {
      peer.write("HTTP/1.1 200 OK\r\nX-N: " + body.length + "\r\nContent-Length: ");
      peer.write(body.length + "\r\n\r\n");
      peer.out.write(body);
      return;
    }
    peer.write("HTTP/1.1 200 OK\r\nX-N: " + body.length + "\r\nTransfer-Encoding: chunked\r\n\r\n");
    for (int at = 0; at < body.length; at += chunk) {
      int length = Math.min(chunk, body.length - at);
      peer.write(Integer.toHexString(length) + "\r\n");
      peer.out.write(body, at, length);
      peer.write("\r\n");
    }
    peer.write("0\r\n\r\n");
  }

  @Test
  void bodiesOfAllLengthsComeAsTheyWere() throws Exception {
    Random random = Sets.random();
    LinkedBlockingQueue<byte[]> bodies = new LinkedBlockingQueue<>();
    LinkedBlockingQueue<String> seen = new LinkedBlockingQueue<>();
    Server.Script script =
        (peer, n) -> {
          for (int i = 0; ; i++) {
            seen.add(peer.head());
            byte[] body = bodies.take();
            respond(peer, body, i % 3 == 0 ? 1 + body.length / 3 : 0);
          }
        };
    try (Server tcp = Server.tcp(script);
        Server unix = Server.unix(script);
        Http overTcp = at(tcp, "http://127.0.0.1");
        Http overUnix = at(unix, "unix:")) {
      for (Http http : List.of(overTcp, overUnix)) {
        for (int size : new int[] {0, 1, 9_000, 65_535, 65_536, 65_537, 3 << 20, (1 << 26) + 7}) {
          byte[] body = new byte[size];
          random.nextBytes(body);
          bodies.add(body);
          Http.Answer answer = http.exchange(ask(null, true));
          assertArrayEquals(body, answer.copy(Integer.MAX_VALUE));
          assertEquals(size, answer.bytes());
          assertEquals(Optional.of("" + size), answer.header("X-N"));
          assertEquals(size > 1 << 26 ? 2 : size == 0 ? 0 : 1, answer.body().size());
          for (ByteBuffer piece : answer.body()) {
            assertTrue(piece.isDirect() || piece.remaining() < 1 << 16);
          }
          assertArrayEquals(Arrays.copyOf(body, Math.min(9, size)), answer.copy(9));
        }
      }
      assertEquals(1, tcp.accepted.get());
      assertEquals(1, unix.accepted.get());
    }
    String head = seen.take();
    assertTrue(head.startsWith("POST /x?y=1 HTTP/1.1\r\nHost: 127.0.0.1:"), head);
    assertTrue(head.contains("\r\nX-A: b\r\n"), head);
  }

  @Test
  void bodiesAreSentWhole() throws Exception {
    Random random = Sets.random();
    Server.Script script =
        (peer, n) -> {
          while (true) {
            String length = peer.head().replaceAll("(?s).*Content-Length: ([0-9]+).*", "$1");
            respond(peer, peer.in.readNBytes(Integer.parseInt(length)), 0);
          }
        };
    try (Server server = Server.unix(script);
        Http http = at(server, "unix:")) {
      for (int size : new int[] {0, 1, 100_000, (1 << 20) + 1, 5 << 20}) {
        byte[] body = new byte[size];
        random.nextBytes(body);
        assertArrayEquals(body, http.exchange(ask(body, false)).copy(Integer.MAX_VALUE));
      }
    }
  }

  @Test
  void whatMayBeRepeatedIsUpToTheRetrysTries() throws Exception {
    for (String begun : List.of("", "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n0123")) {
      Server.Script script =
          (peer, n) -> {
            peer.head();
            peer.write(begun);
          };
      try (Server server = Server.tcp(script);
          Http http = at(server, "http://127.0.0.1")) {
        for (boolean repeatable : new boolean[] {true, false}) {
          int before = server.accepted.get();
          TransportException lost =
              assertThrows(
                  TransportException.class, () -> http.exchange(ask(new byte[9], repeatable)));
          assertEquals(Kind.CLOSED, lost.kind());
          assertTrue(lost.mayHaveRun());
          assertEquals(repeatable ? 3 : 1, server.accepted.get() - before);
        }
      }
    }
  }

  @Test
  void aPeerThatLiesOrStallsIsATypedException() throws Exception {
    check("\u0001\u0002garbage\n\n\n", ProtocolException.class);
    check("HTTP/1.1 200 OK\r\nContent-Length: 2000000000\r\n\r\n", ProtocolException.class);
    check("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", ProtocolException.class);
    check("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", ProtocolException.class);
    Server.Script stalls =
        (peer, n) -> {
          peer.head();
          peer.write("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n1");
          peer.next();
        };
    try (Server server = Server.unix(stalls);
        Http http = Provider.at(server.at("unix:")).timeout(Duration.ofMillis(300)).http()) {
      TransportException late =
          assertThrows(TransportException.class, () -> http.exchange(ask(null, true)));
      assertEquals(Kind.TIMEOUT, late.kind());
    }
  }

  private static void check(String answer, Class<? extends EthException> expected)
      throws Exception {
    Server.Script script =
        (peer, n) -> {
          peer.head();
          peer.write(answer);
          peer.next();
        };
    try (Server server = Server.tcp(script);
        Http http = at(server, "http://127.0.0.1")) {
      assertThrows(expected, () -> http.exchange(ask(null, true)));
    }
  }

  @Test
  void closingEndsWhatWaits() throws Exception {
    CountDownLatch asked = new CountDownLatch(1);
    Server.Script script =
        (peer, n) -> {
          peer.head();
          asked.countDown();
          peer.next();
        };
    try (Server server = Server.tcp(script)) {
      Http http = at(server, "http://127.0.0.1");
      CompletableFuture<Http.Answer> waits =
          CompletableFuture.supplyAsync(() -> http.exchange(ask(null, true)));
      asked.await();
      http.close();
      ExecutionException ended = assertThrows(ExecutionException.class, waits::get);
      TransportException why = assertInstanceOf(TransportException.class, ended.getCause());
      assertEquals(Kind.CLOSED, why.kind());
      assertThrows(TransportException.class, () -> http.exchange(ask(null, true)));
    }
  }

  @Test
  void aRefusalSaysWhy() throws Exception {
    Server.Script script =
        (peer, n) -> {
          peer.head();
          peer.write("HTTP/1.1 401 Unauthorized\r\nContent-Length: 8\r\n\r\nno token");
          peer.next();
        };
    try (Server server = Server.tcp(script);
        Http http = at(server, "http://127.0.0.1")) {
      Http.Answer answer = http.exchange(Http.Ask.get("x", "/"));
      assertEquals(401, answer.status());
      TransportException why = assertInstanceOf(TransportException.class, answer.failure());
      assertEquals(Kind.REFUSED, why.kind());
      assertTrue(why.getMessage().contains("no token"), why.getMessage());
    }
    assertThrows(IllegalArgumentException.class, () -> Http.Ask.get("x", "no/slash"));
    assertThrows(IllegalArgumentException.class, () -> Http.Ask.get("x", "/a\r\nb: c"));
    assertThrows(IllegalArgumentException.class, () -> Provider.at("ws://127.0.0.1").http());
  }
}
