package deponent.rpc;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import deponent.eth.Bytes;
import deponent.eth.JsonReader;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;

/**
 * Messages of 100 MB both ways. The heap has 230 MB ({@code pom.xml}), which holds a message and
 * what is in it, and not both twice.
 */
class BigMessagesTest {
  private static final Duration LONG = Duration.ofSeconds(300);

  /** Bytes of a value; its hex is twice as long. */
  private static final int SIZE = 50_000_000;

  /** Bytes of a value that are written at once. */
  private static final int PIECE = 1 << 15;

  private static final byte[] DIGITS = "0123456789abcdef".getBytes(StandardCharsets.US_ASCII);

  private static byte value(int i) {
    return (byte) (i * 31 + (i >> 11));
  }

  private static final Request<Bytes> GET = Request.of("get", Params.NONE, JsonReader::nextBytes);

  /** Takes what the server sends of an answer, piece by piece. */
  private interface Sink {
    void take(byte[] bytes, int length) throws IOException;
  }

  /** An answer to {@code id}: {@code {"id":1,"result":"0x.."}}. */
  private static void answer(String id, Sink to) throws IOException {
    byte[] begin = begin(id);
    to.take(begin, begin.length);
    byte[] hex = new byte[2 * PIECE];
    for (int from = 0; from < SIZE; from += PIECE) {
      int length = Math.min(PIECE, SIZE - from);
      for (int i = 0; i < length; i++) {
        byte one = value(from + i);
        hex[2 * i] = DIGITS[one >> 4 & 15];
        hex[2 * i + 1] = DIGITS[one & 15];
      }
      to.take(hex, 2 * length);
    }
    to.take(new byte[] {'"', '}'}, 2);
  }

  private static byte[] begin(String id) {
    return ("{\"id\":" + id + ",\"result\":\"0x").getBytes(StandardCharsets.US_ASCII);
  }

  private static long answerBytes(String id) {
    return begin(id).length + 2L * SIZE + 2;
  }

  /** Reads a request of {@code length} bytes whose parameter is the value, and returns its id. */
  private static String request(InputStream in, long length) throws IOException {
    StringBuilder head = new StringBuilder();
    while (head.indexOf("[\"0x") < 0) {
      head.append((char) next(in));
    }
    long left = length - head.length();
    for (int i = 0; i < SIZE; i++) {
      int one = Character.digit(next(in), 16) << 4 | Character.digit(next(in), 16);
      if ((byte) one != value(i)) {
        throw new IOException("byte " + i + " is " + one);
      }
    }
    for (left -= 2L * SIZE; left > 0; left--) {
      next(in);
    }
    Matcher id = Pattern.compile("\"id\":([0-9]+)").matcher(head);
    if (!id.find()) {
      throw new IOException(head.toString());
    }
    return id.group(1);
  }

  private static int next(InputStream in) throws IOException {
    int one = in.read();
    if (one < 0) {
      throw new EOFException();
    }
    return one;
  }

  /** The payload of a WebSocket's frame that is coming, and its length. */
  private static InputStream unmasked(Server.Peer peer, long[] length) throws IOException {
    peer.next();
    peer.next();
    for (int i = 0; i < 8; i++) {
      length[0] = length[0] << 8 | peer.next();
    }
    byte[] mask = peer.in.readNBytes(4);
    return new InputStream() {
      private int at;

      @Override
      public int read() throws IOException {
        return peer.next() ^ mask[at++ & 3] & 0xff;
      }
    };
  }

  private static void frameHead(OutputStream out, int first, long length) throws IOException {
    out.write(first);
    out.write(127);
    for (int shift = 56; shift >= 0; shift -= 8) {
      out.write((int) (length >> shift));
    }
  }

  /** Fragments of about 100 KB: 1,000 of them. */
  private static final class Fragments implements Sink {
    private final OutputStream out;
    private final long whole;
    private long sent;
    int count;

    Fragments(OutputStream out, long whole) {
      this.out = out;
      this.whole = whole;
    }

    @Override
    public void take(byte[] bytes, int length) throws IOException {
      for (int from = 0; from < length; ) {
        // The piece's parts are fragments of their own.
        int some = Math.min(length - from, 2 * PIECE - 1);
        sent += some;
        frameHead(out, (count++ == 0 ? 1 : 0) | (sent == whole ? 0x80 : 0), some);
        out.write(bytes, from, some);
        from += some;
      }
    }
  }

  private static void check(Server server, String scheme) throws Exception {
    try (server;
        Provider provider = Provider.at(server.at(scheme)).timeout(LONG).connect()) {
      exact(provider.request(GET));
      byte[] value = new byte[SIZE];
      for (int i = 0; i < SIZE; i++) {
        value[i] = value(i);
      }
      Bytes sent = Bytes.of(value);
      value = null;
      Request<Long> put = Request.of("put", json -> json.value(sent), JsonReader::nextQuantity);
      assertEquals(42, provider.request(put));
      assertEquals(1, server.accepted.get());
    }
  }

  private static void exact(Bytes result) {
    assertEquals(SIZE, result.size());
    for (int i = 0; i < SIZE; i++) {
      if (result.at(i) != value(i)) {
        assertEquals(value(i), result.at(i), "byte " + i);
      }
    }
  }

  private static String small(String id) {
    return "{\"id\":" + id + ",\"result\":\"0x2a\"}";
  }

  private static Server webSocket(int fragments) throws Exception {
    return Server.tcp(
        (peer, n) -> {
          peer.upgrade();
          String id = Server.Peer.id(peer.text());
          if (fragments > 1) {
            Fragments sink = new Fragments(peer.out, answerBytes(id));
            answer(id, sink);
            assertTrue(sink.count >= fragments);
          } else {
            frameHead(peer.out, 0x81, answerBytes(id));
            answer(id, (bytes, length) -> peer.out.write(bytes, 0, length));
          }
          long[] length = new long[1];
          peer.send(small(request(unmasked(peer, length), length[0])));
          peer.next();
        });
  }

  @Test
  void overWebSocketInOneFrame() throws Exception {
    check(webSocket(1), "ws://127.0.0.1");
  }

  @Test
  void overWebSocketInAThousandFragments() throws Exception {
    check(webSocket(1_000), "ws://127.0.0.1");
  }

  @Test
  void overAUnixSocket() throws Exception {
    check(
        Server.unix(
            (peer, n) -> {
              String id = Server.Peer.id(peer.line());
              answer(id, (bytes, length) -> peer.out.write(bytes, 0, length));
              String second = request(peer.in, 0);
              peer.write(small(second));
              peer.next();
            }),
        "unix:");
  }

  @Test
  void overHttpOfAKnownLengthAndInChunks() throws Exception {
    for (boolean chunked : new boolean[] {false, true}) {
      check(
          Server.tcp(
              (peer, n) -> {
                String id = Server.Peer.id(peer.body());
                peer.write("HTTP/1.1 200 OK\r\n");
                if (chunked) {
                  peer.write("Transfer-Encoding: chunked\r\n\r\n");
                  answer(
                      id,
                      (bytes, length) -> {
                        peer.write(Integer.toHexString(length) + "\r\n");
                        peer.out.write(bytes, 0, length);
                        peer.write("\r\n");
                      });
                  peer.write("0\r\n\r\n");
                } else {
                  peer.write("Content-Length: " + answerBytes(id) + "\r\n\r\n");
                  answer(id, (bytes, length) -> peer.out.write(bytes, 0, length));
                }
                Matcher length = Pattern.compile("Content-Length: ([0-9]+)").matcher(peer.head());
                assertTrue(length.find());
                peer.answer(small(request(peer.in, Long.parseLong(length.group(1)))));
                peer.next();
              }),
          "http://127.0.0.1");
    }
  }
}
