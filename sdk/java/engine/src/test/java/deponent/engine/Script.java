package deponent.engine;

import java.io.Closeable;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** A server of HTTP that does what a test says with each connection. */
final class Script implements Closeable {
  interface Serve {
    void serve(Peer peer) throws Exception;
  }

  private final ServerSocket socket;
  private final List<Closeable> peers = new CopyOnWriteArrayList<>();

  /** The requests that came, head and body. */
  final List<String> requests = new CopyOnWriteArrayList<>();

  Script(Serve script) throws IOException {
    socket = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
    Thread.startVirtualThread(() -> accept(script));
  }

  private void accept(Serve script) {
    try {
      while (true) {
        Socket one = socket.accept();
        peers.add(one);
        Thread.startVirtualThread(
            () -> {
              try (one) {
                script.serve(new Peer(one));
              } catch (Exception ended) {
                // The client went away, or was to see that.
              }
            });
      }
    } catch (IOException closed) {
      // The test has ended.
    }
  }

  String address() {
    return "http://127.0.0.1:" + socket.getLocalPort();
  }

  @Override
  public void close() throws IOException {
    socket.close();
    for (Closeable peer : peers) {
      peer.close();
    }
  }

  final class Peer {
    private static final Pattern LENGTH = Pattern.compile("Content-Length: ([0-9]+)");

    final Socket socket;
    private final InputStream in;

    Peer(Socket socket) throws IOException {
      this.socket = socket;
      in = socket.getInputStream();
    }

    /** The next request. */
    String request() throws IOException {
      StringBuilder head = new StringBuilder();
      while (head.indexOf("\r\n\r\n") < 0) {
        int one = in.read();
        if (one < 0) {
          throw new EOFException();
        }
        head.append((char) one);
      }
      Matcher length = LENGTH.matcher(head);
      if (length.find()) {
        byte[] body = in.readNBytes(Integer.parseInt(length.group(1)));
        head.append(new String(body, StandardCharsets.ISO_8859_1));
      }
      requests.add(head.toString());
      return head.toString();
    }

    void write(String text) throws IOException {
      socket.getOutputStream().write(text.getBytes(StandardCharsets.ISO_8859_1));
    }

    void answer(String status, String type, byte[] body) throws IOException {
      write("HTTP/1.1 " + status + "\r\nContent-Type: " + type);
      write("\r\nContent-Length: " + body.length + "\r\n\r\n");
      socket.getOutputStream().write(body);
    }

    /** Answers a request of JSON-RPC by {@code "result":..} or {@code "error":..}. */
    void json(String request, String member) throws IOException {
      String id = request.replaceAll("(?s).*\"id\":([0-9]+).*", "$1");
      String body = "{\"jsonrpc\":\"2.0\",\"id\":" + id + "," + member + "}";
      answer("200 OK", "application/json", body.getBytes(StandardCharsets.UTF_8));
    }

    /** Waits until the client goes away. */
    void stall() throws IOException {
      while (in.read() >= 0) {
        continue;
      }
    }
  }
}
