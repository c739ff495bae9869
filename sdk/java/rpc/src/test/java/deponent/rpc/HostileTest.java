package deponent.rpc;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import deponent.eth.Bytes;
import deponent.eth.EthException;
import deponent.eth.JsonReader;
import deponent.eth.TransportException;
import deponent.eth.TransportException.Kind;
import deponent.sets.Sets;
import java.io.ByteArrayOutputStream;
import java.io.InputStream;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.zip.GZIPOutputStream;
import org.junit.jupiter.api.Test;

/** Servers that send garbage, reset connections, do not read, or send in small segments. */
class HostileTest {
  private static final Duration LONG = Duration.ofSeconds(120);

  private static final Request<Long> NUMBER =
      Request.of("eth_blockNumber", Params.NONE, JsonReader::nextQuantity);

  private static final Backoff QUICK = new Backoff(Duration.ofMillis(5), Duration.ofMillis(50));

  private static byte[] ascii(String text) {
    return text.getBytes(StandardCharsets.ISO_8859_1);
  }

  /** Changes up to four places: other, additional or missing bytes, or an early end. */
  private static byte[] spoilt(byte[] bytes, Random random) {
    byte[] now = bytes;
    for (int changes = random.nextInt(5); changes > 0 && now.length > 0; changes--) {
      int at = random.nextInt(now.length);
      int kind = random.nextInt(8);
      ByteArrayOutputStream out = new ByteArrayOutputStream();
      out.write(now, 0, at);
      if (kind < 6) {
        // In place, in addition, or not at all.
        if (kind != 5) {
          out.write(random.nextBoolean() ? random.nextInt(256) : now[at] ^ 1 << random.nextInt(8));
        }
        int from = kind == 4 ? at : at + 1;
        out.write(now, from, now.length - from);
      } else if (kind == 6) {
        out.writeBytes(new byte[random.nextInt(300)]);
        out.write(now, at, now.length - at);
      }
      now = out.toByteArray();
    }
    return now;
  }

  /** An answer with other messages around it. */
  private static String answers(String request, Random random) {
    String answer = Server.Peer.result(request, "\"0x2a\"");
    return switch (random.nextInt(4)) {
      case 0 -> "[" + answer + ",{\"id\":77,\"result\":[{\"a\":null}]}]";
      case 1 ->
          answer.replace(
              "\"result\":\"0x2a\"", "\"error\":{\"code\":3,\"message\":\"no\",\"data\":\"0x\"}");
      case 2 ->
          "{\"method\":\"eth_subscription\",\"params\":{\"subscription\":\"0x1\",\"result\":1}}";
      default -> answer;
    };
  }

  private static void webSocket(Server.Peer peer, Random random) throws Exception {
    if (random.nextInt(4) == 0) {
      String key = peer.head().replaceAll("(?s).*Sec-WebSocket-Key: (\\S+).*", "$1");
      peer.out.write(spoilt(ascii(Server.Peer.upgraded(key)), random));
      return;
    }
    peer.upgrade();
    String request = peer.text();
    ByteArrayOutputStream frames = new ByteArrayOutputStream();
    for (int i = random.nextInt(3); i >= 0; i--) {
      byte[] text = ascii(answers(request, random));
      int cut = random.nextBoolean() ? text.length : random.nextInt(text.length);
      Server.Peer.frameTo(frames, cut == text.length ? 0x81 : 1, text, 0, cut);
      if (cut < text.length) {
        Server.Peer.frameTo(frames, 0x89, text, 0, 9);
        Server.Peer.frameTo(frames, 0x80, text, cut, text.length - cut);
      }
    }
    peer.out.write(spoilt(frames.toByteArray(), random));
  }

  private static void http(Server.Peer peer, Random random) throws Exception {
    byte[] body = ascii(answers(peer.body(), random));
    String head = "HTTP/1.1 " + (random.nextInt(4) == 0 ? "500 No" : "200 OK") + "\r\nA: b\r\n";
    ByteArrayOutputStream all = new ByteArrayOutputStream();
    switch (random.nextInt(3)) {
      case 0 -> {
        all.writeBytes(ascii(head + "Content-Length: " + body.length + "\r\n\r\n"));
        all.writeBytes(body);
      }
      case 1 -> {
        all.writeBytes(ascii(head + "Transfer-Encoding: chunked\r\n\r\n"));
        for (int from = 0; from < body.length; from += 20) {
          int length = Math.min(20, body.length - from);
          all.writeBytes(ascii(Integer.toHexString(length) + "\r\n"));
          all.write(body, from, length);
          all.writeBytes(ascii("\r\n"));
        }
        all.writeBytes(ascii("0\r\n\r\n"));
      }
      default -> {
        ByteArrayOutputStream packed = new ByteArrayOutputStream();
        try (GZIPOutputStream gzip = new GZIPOutputStream(packed)) {
          gzip.write(body);
        }
        all.writeBytes(ascii(head + "Content-Encoding: gzip\r\nContent-Length: "));
        all.writeBytes(ascii(packed.size() + "\r\n\r\n"));
        all.writeBytes(packed.toByteArray());
      }
    }
    peer.out.write(spoilt(all.toByteArray(), random));
  }

  private static void threadsEnd() throws Exception {
    for (Thread thread : Thread.getAllStackTraces().keySet()) {
      if (thread.getName().startsWith("deponent-")) {
        thread.join(LONG);
        assertFalse(thread.isAlive(), thread.getName());
      }
    }
  }

  /** Asks once; whatever the server says, there is a result or a typed exception. */
  private static boolean asked(String address) {
    try (Provider provider =
        Provider.at(address).timeout(LONG).retry(Retry.NONE).reconnect(QUICK).connect()) {
      assertTrue(provider.request(NUMBER) >= 0);
      return true;
    } catch (EthException typed) {
      return false;
    }
  }

  @Test
  void garbageHasAResultOrATypedExceptionAndLeavesNoThread() throws Exception {
    Random random = Sets.random();
    int results = 0;
    try (Server ws = Server.tcp((peer, n) -> webSocket(peer, random));
        Server web = Server.tcp((peer, n) -> http(peer, random));
        Server unix =
            Server.unix(
                (peer, n) -> peer.out.write(spoilt(ascii(answers(peer.line(), random)), random)))) {
      for (int i = 0; i < 1_000; i++) {
        results += asked(ws.at("ws://127.0.0.1")) ? 1 : 0;
        results += asked(web.at("http://127.0.0.1")) ? 1 : 0;
        results += asked(unix.at("unix:")) ? 1 : 0;
      }
    }
    assertTrue(results > 300 && results < 2_500, results + " of 3,000 had a result");
    threadsEnd();
  }

  @Test
  void aResetIsALostConnection() throws Exception {
    Server.Script ws =
        (peer, n) -> {
          if (n == 1) {
            peer.head();
          } else {
            peer.upgrade();
            peer.text();
            peer.write(n == 2 ? "" : "\u0001\u0005{\"");
          }
          peer.reset();
        };
    try (Server server = Server.tcp(ws)) {
      ProviderBuilder builder =
          Provider.at(server.at("ws://127.0.0.1")).timeout(LONG).reconnect(QUICK);
      assertEquals(Kind.CONNECT, assertThrows(TransportException.class, builder::connect).kind());
      try (Provider provider = builder.connect()) {
        for (int i = 0; i < 2; i++) {
          TransportException lost =
              assertThrows(TransportException.class, () -> provider.request(NUMBER));
          assertEquals(Kind.CLOSED, lost.kind());
          assertTrue(lost.mayHaveRun());
        }
      }
    }
    Server.Script web =
        (peer, n) -> {
          peer.body();
          peer.write(n == 1 ? "" : "HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{");
          peer.reset();
        };
    try (Server server = Server.tcp(web);
        Provider provider = Provider.at(server.at("http://127.0.0.1")).timeout(LONG).connect()) {
      for (int i = 0; i < 2; i++) {
        TransportException lost =
            assertThrows(TransportException.class, () -> provider.request(NUMBER));
        assertEquals(Kind.CLOSED, lost.kind());
        assertTrue(lost.mayHaveRun());
      }
    }
    threadsEnd();
  }

  @Test
  void aServerThatDoesNotReadEndsAtTheDeadline() throws Exception {
    Bytes much = Bytes.of(new byte[15_000_000]);
    Request<Long> big =
        Request.of("m", json -> json.value(much), JsonReader::nextQuantity)
            .timeout(Duration.ofMillis(500));
    CountDownLatch over = new CountDownLatch(1);
    Server.Script ws =
        (peer, n) -> {
          peer.upgrade();
          if (n == 1) {
            over.await();
          }
          peer.send(Server.Peer.result(peer.text(), "\"0x2a\""));
          peer.next();
        };
    Server.Script web =
        (peer, n) -> {
          if (n == 1) {
            over.await();
          }
          peer.answer(Server.Peer.result(peer.body(), "\"0x2a\""));
        };
    Server.Script lines =
        (peer, n) -> {
          if (n == 1) {
            over.await();
          }
          peer.write(Server.Peer.result(peer.line(), "\"0x2a\""));
          peer.next();
        };
    try (Server one = Server.tcp(ws);
        Server two = Server.tcp(web);
        Server three = Server.unix(lines)) {
      for (String address :
          List.of(one.at("ws://127.0.0.1"), two.at("http://127.0.0.1"), three.at("unix:"))) {
        try (Provider provider =
            Provider.at(address).timeout(Duration.ofSeconds(2)).reconnect(QUICK).connect()) {
          TransportException late =
              assertThrows(TransportException.class, () -> provider.request(big), address);
          assertEquals(Kind.TIMEOUT, late.kind(), address);
          // The one that blocked the writer is closed, and another takes its place.
          assertEquals(42, provider.request(NUMBER.repeatable().timeout(LONG)), address);
        }
      }
    } finally {
      over.countDown();
    }
    threadsEnd();
  }

  @Test
  void ofPingsOfOneThatDoesNotReadTheLastIsAnswered() throws Exception {
    int pings = 300_000;
    CompletableFuture<Integer> answered = new CompletableFuture<>();
    Server.Script script =
        (peer, n) -> {
          peer.upgrade();
          byte[] payload = new byte[120];
          for (int i = 1; i <= pings; i++) {
            ByteBuffer.wrap(payload).putInt(i);
            peer.frame(0x89, payload, 0, payload.length);
          }
          int pongs = 0;
          for (int last = 0; last < pings; pongs++) {
            // The opcode, and then the payload.
            last = ByteBuffer.wrap(peer.frame()).getInt(1);
          }
          answered.complete(pongs);
          peer.text();
        };
    try (Server server = Server.tcp(script);
        Provider provider = Provider.at(server.at("ws://127.0.0.1")).timeout(LONG).connect()) {
      // Two buffers of the system hold some 80,000.
      int pongs = answered.get();
      assertTrue(pongs < pings * 2 / 3, pongs + " pongs");
    }
  }

  @Test
  void anAnswerInSmallSegmentsUnderNagleIsNotHeldUp() throws Exception {
    if (!System.getProperty("os.name").equals("Linux")) {
      System.out.println("not run: other systems have no TCP_QUICKACK");
      return;
    }
    int rounds = 15;
    Server.Script script =
        (peer, n) -> {
          peer.nagle();
          peer.upgrade();
          while (true) {
            byte[] answer = ascii(Server.Peer.result(peer.text(), "\"0x2a\""));
            ByteArrayOutputStream frame = new ByteArrayOutputStream();
            Server.Peer.frameTo(frame, 0x81, answer, 0, answer.length);
            for (byte one : frame.toByteArray()) {
              if (one == ':' || one == ',') {
                peer.out.flush();
              }
              peer.out.write(one);
            }
          }
        };
    long ours = 0;
    long twins = 0;
    try (Server server = Server.tcp(script);
        Provider provider = Provider.at(server.at("ws://127.0.0.1")).timeout(LONG).connect();
        Socket plain = new Socket("127.0.0.1", Integer.parseInt(server.at("").substring(1)))) {
      plain.setTcpNoDelay(true);
      plain.getOutputStream().write(ascii("GET / HTTP/1.1\r\nSec-WebSocket-Key: a\r\n\r\n"));
      InputStream in = plain.getInputStream();
      for (int ends = 0; ends < 2; ) {
        ends = in.read() == '\n' ? ends + (in.read() == '\r' ? 2 : 0) : 0;
      }
      in.read();
      ByteArrayOutputStream ask = new ByteArrayOutputStream();
      byte[] text = ascii("{\"id\":1}");
      Server.Peer.frameTo(ask, 0x81, text, 0, text.length);
      byte[] frame = ask.toByteArray();
      // Masked with zeros.
      byte[] masked = new byte[frame.length + 4];
      System.arraycopy(frame, 0, masked, 0, 2);
      System.arraycopy(text, 0, masked, 6, text.length);
      masked[1] |= (byte) 0x80;
      for (int i = 0; i < rounds; i++) {
        long begin = System.nanoTime();
        assertEquals(42, provider.request(NUMBER));
        ours += System.nanoTime() - begin;
        begin = System.nanoTime();
        plain.getOutputStream().write(masked);
        in.read();
        in.readNBytes(in.read());
        twins += System.nanoTime() - begin;
      }
    }
    assertTrue(ours < twins, ours + " ns, and " + twins + " without acknowledging at once");
  }
}
