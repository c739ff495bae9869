package deponent.client;

import java.io.Closeable;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/** A connection to a local server, passed through until it is cut. */
final class Cut implements Closeable {
  private final ServerSocket listening = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
  private final Set<Socket> sockets = ConcurrentHashMap.newKeySet();
  private final int to;

  Cut(int to) throws IOException {
    this.to = to;
    Thread.startVirtualThread(this::accept);
  }

  int port() {
    return listening.getLocalPort();
  }

  private void accept() {
    try {
      while (true) {
        Socket near = listening.accept();
        Socket far = new Socket(InetAddress.getLoopbackAddress(), to);
        sockets.add(near);
        sockets.add(far);
        Thread.startVirtualThread(() -> pass(near, far));
        Thread.startVirtualThread(() -> pass(far, near));
      }
    } catch (IOException closed) {
      // The test has ended.
    }
  }

  private void pass(Socket from, Socket to) {
    try (from;
        to;
        InputStream in = from.getInputStream();
        OutputStream out = to.getOutputStream()) {
      in.transferTo(out);
    } catch (IOException cut) {
      // Both are closed.
    } finally {
      sockets.remove(from);
    }
  }

  /** Closes all connections; others may come. */
  void cut() {
    for (Socket socket : sockets) {
      try {
        socket.close();
      } catch (IOException dropped) {
        // It is of no more use.
      }
    }
  }

  @Override
  public void close() throws IOException {
    listening.close();
    cut();
  }
}
