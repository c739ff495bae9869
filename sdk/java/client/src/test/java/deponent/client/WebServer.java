package deponent.client;

import java.io.Closeable;
import java.io.DataInputStream;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** A server of HTTP that answers what a test says, byte for byte. */
final class WebServer implements Closeable {
  private static final Pattern LENGTH = Pattern.compile("(?i)content-length: ([0-9]+)");

  /** What answers a request, given by its method and path, and its body. */
  interface Script {
    /** The whole response; null leaves the client waiting. */
    String answer(String request, String body) throws IOException;
  }

  private final ServerSocket listening = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
  private final Set<Socket> sockets = ConcurrentHashMap.newKeySet();
  private final Script script;

  /** Requests so far. */
  final AtomicInteger asked = new AtomicInteger();

  WebServer(Script script) throws IOException {
    this.script = script;
    Thread.startVirtualThread(this::accept);
  }

  /** A response with a status and a body. */
  static String response(int status, String body) {
    int length = body.getBytes(StandardCharsets.UTF_8).length;
    return "HTTP/1.1 " + status + " Status\r\nContent-Length: " + length + "\r\n\r\n" + body;
  }

  /** The address of a path. */
  String at(String path) {
    return "http://127.0.0.1:" + listening.getLocalPort() + path;
  }

  private void accept() {
    try {
      while (true) {
        Socket socket = listening.accept();
        sockets.add(socket);
        Thread.startVirtualThread(() -> serve(socket));
      }
    } catch (IOException closed) {
      // The test has ended.
    }
  }

  private void serve(Socket socket) {
    try (socket) {
      DataInputStream in = new DataInputStream(socket.getInputStream());
      while (true) {
        StringBuilder head = new StringBuilder();
        while (head.indexOf("\r\n\r\n") < 0) {
          head.append((char) in.readUnsignedByte());
        }
        Matcher length = LENGTH.matcher(head);
        byte[] body = new byte[length.find() ? Integer.parseInt(length.group(1)) : 0];
        in.readFully(body);
        asked.incrementAndGet();
        String request = head.substring(0, head.indexOf(" HTTP/1.1"));
        String answer = script.answer(request, new String(body, StandardCharsets.UTF_8));
        if (answer != null) {
          socket.getOutputStream().write(answer.getBytes(StandardCharsets.UTF_8));
        }
      }
    } catch (IOException ended) {
      // The client went away, or was to see that.
    }
  }

  @Override
  public void close() throws IOException {
    listening.close();
    for (Socket socket : sockets) {
      socket.close();
    }
  }
}
