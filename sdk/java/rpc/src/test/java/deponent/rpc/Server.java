package deponent.rpc;

import java.io.BufferedInputStream;
import java.io.ByteArrayOutputStream;
import java.io.Closeable;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.channels.Channels;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.net.ssl.SSLContext;

/** A server that does what a script says. */
final class Server implements AutoCloseable {
  /** What is done with the n-th connection, from 1 on. */
  interface Script {
    void serve(Peer peer, int connection) throws Exception;
  }

  private interface Listening extends Closeable {
    Peer accept() throws IOException;
  }

  private final Listening listening;
  private final String at;
  private final List<Peer> peers = new CopyOnWriteArrayList<>();
  final AtomicInteger accepted = new AtomicInteger();

  private Server(Listening listening, String at, Script script) {
    this.listening = listening;
    this.at = at;
    Thread.startVirtualThread(() -> run(script));
  }

  static Server tcp(Script script) throws IOException {
    return tcp(0, script);
  }

  /** A server at a port that is free. */
  static Server tcp(int port, Script script) throws IOException {
    return tcp(new ServerSocket(port, 50, InetAddress.getLoopbackAddress()), script);
  }

  static Server tls(SSLContext context, Script script) throws IOException {
    InetAddress local = InetAddress.getLoopbackAddress();
    return tcp(context.getServerSocketFactory().createServerSocket(0, 50, local), script);
  }

  private static Server tcp(ServerSocket socket, Script script) {
    Listening listening =
        new Listening() {
          @Override
          public Peer accept() throws IOException {
            Socket one = socket.accept();
            one.setTcpNoDelay(true);
            return new Peer(one, one.getInputStream(), one.getOutputStream());
          }

          @Override
          public void close() throws IOException {
            socket.close();
          }
        };
    return new Server(listening, ":" + socket.getLocalPort(), script);
  }

  static Server unix(Script script) throws IOException {
    Path path = Files.createTempDirectory("rpc").resolve("s");
    ServerSocketChannel channel = ServerSocketChannel.open(StandardProtocolFamily.UNIX);
    channel.bind(UnixDomainSocketAddress.of(path));
    Listening listening =
        new Listening() {
          @Override
          public Peer accept() throws IOException {
            SocketChannel one = channel.accept();
            return new Peer(one, Channels.newInputStream(one), Channels.newOutputStream(one));
          }

          @Override
          public void close() throws IOException {
            channel.close();
            Files.deleteIfExists(path);
            Files.deleteIfExists(path.getParent());
          }
        };
    return new Server(listening, path.toString(), script);
  }

  /** The address with a scheme such as {@code ws://127.0.0.1}. */
  String at(String scheme) {
    return scheme + at;
  }

  private void run(Script script) {
    try {
      while (true) {
        Peer peer = listening.accept();
        peers.add(peer);
        int number = accepted.incrementAndGet();
        Thread.startVirtualThread(
            () -> {
              try (peer) {
                script.serve(peer, number);
              } catch (Exception ended) {
                // The client went away, or was to see that.
              }
            });
      }
    } catch (IOException closed) {
      // The test has ended.
    }
  }

  @Override
  public void close() throws IOException {
    listening.close();
    for (Peer peer : peers) {
      peer.close();
    }
  }

  /** The server's side of a connection. */
  static final class Peer implements Closeable {
    private static final Pattern ID = Pattern.compile("\"id\":([0-9]+)");

    private final Closeable socket;
    final InputStream in;
    final OutputStream out;
    final AtomicInteger pongs = new AtomicInteger();

    Peer(Closeable socket, InputStream in, OutputStream out) {
      this.socket = socket;
      this.in = new BufferedInputStream(in);
      this.out = out;
    }

    @Override
    public void close() throws IOException {
      socket.close();
    }

    /** Closes a TCP connection by a reset. */
    void reset() throws IOException {
      if (socket instanceof Socket tcp) {
        tcp.setSoLinger(true, 0);
      }
      close();
    }

    /** Lets small segments wait for the acknowledgement of those before. */
    void nagle() throws IOException {
      if (socket instanceof Socket tcp) {
        tcp.setTcpNoDelay(false);
      }
    }

    int next() throws IOException {
      int one = in.read();
      if (one < 0) {
        throw new EOFException();
      }
      return one;
    }

    void write(String text) throws IOException {
      out.write(text.getBytes(StandardCharsets.UTF_8));
      out.flush();
    }

    /** A head of HTTP, up to its empty line. */
    String head() throws IOException {
      StringBuilder head = new StringBuilder();
      while (head.indexOf("\r\n\r\n") < 0) {
        head.append((char) next());
      }
      return head.toString();
    }

    /** The body of a request. */
    String body() throws IOException {
      Matcher length = Pattern.compile("Content-Length: ([0-9]+)").matcher(head());
      if (!length.find()) {
        throw new IOException("no length");
      }
      byte[] body = in.readNBytes(Integer.parseInt(length.group(1)));
      return new String(body, StandardCharsets.UTF_8);
    }

    /** A line of a Unix socket. */
    String line() throws IOException {
      ByteArrayOutputStream line = new ByteArrayOutputStream();
      for (int one = next(); one != '\n'; one = next()) {
        line.write(one);
      }
      return line.toString(StandardCharsets.UTF_8);
    }

    /** Answers the handshake of a WebSocket, and returns its head. */
    String upgrade() throws IOException {
      String head = head();
      Matcher key = Pattern.compile("Sec-WebSocket-Key: (\\S+)").matcher(head);
      if (!key.find()) {
        throw new IOException("no key");
      }
      write(upgraded(key.group(1)));
      return head;
    }

    /** The head that answers the handshake of a WebSocket with {@code key}. */
    static String upgraded(String key) {
      return "HTTP/1.1 101 Switching Protocols\r\nupgrade: WebSocket\r\nConnection: keep-alive, "
          + "Upgrade\r\nSec-WebSocket-Accept: "
          + Handshake.accept(key)
          + "\r\n\r\n";
    }

    /** The payload of the next frame, with its opcode as first byte. */
    byte[] frame() throws IOException {
      int first = next();
      long length = next() & 0x7f;
      if (length >= 126) {
        int bytes = length == 126 ? 2 : 8;
        length = 0;
        for (int i = 0; i < bytes; i++) {
          length = length << 8 | next();
        }
      }
      byte[] mask = in.readNBytes(4);
      byte[] payload = in.readNBytes((int) length);
      byte[] frame = new byte[payload.length + 1];
      frame[0] = (byte) (first & 15);
      for (int i = 0; i < payload.length; i++) {
        frame[i + 1] = (byte) (payload[i] ^ mask[i & 3]);
      }
      return frame;
    }

    /** The next text; pongs are counted. */
    String text() throws IOException {
      while (true) {
        byte[] frame = frame();
        if (frame[0] == Outbox.TEXT) {
          return new String(frame, 1, frame.length - 1, StandardCharsets.UTF_8);
        }
        if (frame[0] == Outbox.PONG) {
          pongs.incrementAndGet();
        }
      }
    }

    void frame(int first, byte[] payload, int from, int length) throws IOException {
      ByteArrayOutputStream frame = new ByteArrayOutputStream();
      frameTo(frame, first, payload, from, length);
      frame.writeTo(out);
      out.flush();
    }

    /** Writes a frame to {@code frame}. */
    static void frameTo(
        ByteArrayOutputStream frame, int first, byte[] payload, int from, int length) {
      frame.write(first);
      if (length < 126) {
        frame.write(length);
      } else if (length < 1 << 16) {
        frame.write(126);
        frame.write(length >> 8);
        frame.write(length);
      } else {
        frame.write(127);
        for (int shift = 56; shift >= 0; shift -= 8) {
          frame.write((int) ((long) length >> shift));
        }
      }
      frame.write(payload, from, length);
    }

    void send(String text) throws IOException {
      byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
      frame(0x81, bytes, 0, bytes.length);
    }

    /** Sends a text in about {@code parts} fragments, with a ping between each. */
    void fragments(byte[] text, int parts, boolean pings) throws IOException {
      int each = Math.max(1, (text.length + parts - 1) / parts);
      for (int from = 0; from < text.length; from += each) {
        int length = Math.min(each, text.length - from);
        int last = from + length == text.length ? 0x80 : 0;
        frame((from == 0 ? 1 : 0) | last, text, from, length);
        if (pings && last == 0) {
          frame(0x80 | Outbox.PING, new byte[] {1, 2, 3}, 0, 3);
        }
      }
    }

    /** Sends a body of HTTP. */
    void answer(String body) throws IOException {
      int length = body.getBytes(StandardCharsets.UTF_8).length;
      write("HTTP/1.1 200 OK\r\nContent-Length: " + length + "\r\n\r\n" + body);
    }

    /** The id of a request's text. */
    static String id(String request) {
      Matcher id = ID.matcher(request);
      if (!id.find()) {
        throw new IllegalArgumentException(request);
      }
      return id.group(1);
    }

    /** An answer to a request's text. */
    static String result(String request, String result) {
      return "{\"jsonrpc\":\"2.0\",\"id\":" + id(request) + ",\"result\":" + result + "}";
    }
  }
}
