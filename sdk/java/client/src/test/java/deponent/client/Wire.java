package deponent.client;

import deponent.eth.JsonReader;
import deponent.rpc.Provider;
import deponent.sets.Sets;
import java.io.ByteArrayOutputStream;
import java.io.Closeable;
import java.io.DataInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** A server of JSON-RPC over WebSocket and HTTP, whose answers a test gives. */
final class Wire implements Closeable {
  private static final Pattern LENGTH = Pattern.compile("(?i)content-length: ([0-9]+)");
  private static final Pattern KEY = Pattern.compile("(?i)sec-websocket-key: (\\S+)");
  private static final String GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

  /** What answers. */
  interface Answers {
    /**
     * The result as JSON.
     *
     * @throws Refusal for an error
     * @throws IOException to close the connection
     */
    String answer(String method, List<Object> params, Peer peer) throws IOException;
  }

  /** An error of JSON-RPC; {@code more} are further members, with a comma before. */
  static final class Refusal extends RuntimeException {
    private static final long serialVersionUID = 1;
    private final String error;

    Refusal(int code, String message) {
      this(code, message, "");
    }

    Refusal(int code, String message, String more) {
      super(message);
      error = "{\"code\":" + code + ",\"message\":" + Sets.json(message) + more + "}";
    }
  }

  private final ServerSocket listening = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
  private final Set<Peer> peers = ConcurrentHashMap.newKeySet();
  private final Answers answers;

  Wire(Answers answers) throws IOException {
    this.answers = answers;
    Thread.startVirtualThread(this::accept);
  }

  /** The address with a scheme, {@code ws} or {@code http}. */
  String at(String scheme) {
    return scheme + "://127.0.0.1:" + listening.getLocalPort();
  }

  /** A client of it, over {@code ws} or {@code http}. */
  Client client(String scheme) {
    return Client.of(Provider.at(at(scheme)).timeout(Nodes.LONG).connect());
  }

  /** Closes all connections; others may come. */
  void drop() {
    peers.forEach(Peer::close);
  }

  private void accept() {
    try {
      while (true) {
        Socket socket = listening.accept();
        socket.setTcpNoDelay(true);
        Peer peer = new Peer(socket);
        peers.add(peer);
        Thread.startVirtualThread(() -> serve(peer));
      }
    } catch (IOException closed) {
      // The test has ended.
    }
  }

  private void serve(Peer peer) {
    try (peer) {
      while (true) {
        String head = peer.head();
        Matcher key = KEY.matcher(head);
        if (key.find()) {
          peer.upgrade(key.group(1));
        }
        do {
          peer.send(answer(peer.socketText() ? peer.text() : peer.body(head), peer));
        } while (peer.socketText());
      }
    } catch (IOException ended) {
      // The client went away, or was to see that.
    } finally {
      peers.remove(peer);
    }
  }

  @SuppressWarnings("unchecked")
  private String answer(String text, Peer peer) throws IOException {
    Object request = Sets.tree(new JsonReader(text));
    if (request instanceof Map<?, ?> one) {
      return one((Map<String, Object>) one, peer);
    }
    StringBuilder all = new StringBuilder("[");
    for (Object one : (List<Object>) request) {
      all.append(all.length() > 1 ? "," : "").append(one((Map<String, Object>) one, peer));
    }
    return all.append(']').toString();
  }

  @SuppressWarnings("unchecked")
  private String one(Map<String, Object> request, Peer peer) throws IOException {
    String begin = "{\"jsonrpc\":\"2.0\",\"id\":" + request.get("id") + ",";
    try {
      String method = (String) request.get("method");
      List<Object> params = (List<Object>) request.get("params");
      return begin + "\"result\":" + answers.answer(method, params, peer) + "}";
    } catch (Refusal refusal) {
      return begin + "\"error\":" + refusal.error + "}";
    }
  }

  @Override
  public void close() throws IOException {
    listening.close();
    drop();
  }

  /** The server's side of a connection. */
  static final class Peer implements Closeable {
    private final Socket socket;
    private final DataInputStream in;
    private final OutputStream out;
    private boolean frames;

    Peer(Socket socket) throws IOException {
      this.socket = socket;
      in = new DataInputStream(new java.io.BufferedInputStream(socket.getInputStream()));
      out = socket.getOutputStream();
    }

    private boolean socketText() {
      return frames;
    }

    private String head() throws IOException {
      StringBuilder head = new StringBuilder();
      while (head.indexOf("\r\n\r\n") < 0) {
        head.append((char) in.readUnsignedByte());
      }
      return head.toString();
    }

    private String body(String head) throws IOException {
      Matcher length = LENGTH.matcher(head);
      if (!length.find()) {
        throw new EOFException("no length");
      }
      byte[] body = new byte[Integer.parseInt(length.group(1))];
      in.readFully(body);
      return new String(body, StandardCharsets.UTF_8);
    }

    private void upgrade(String key) throws IOException {
      try {
        MessageDigest sha = MessageDigest.getInstance("SHA-1");
        byte[] digest = sha.digest((key + GUID).getBytes(StandardCharsets.US_ASCII));
        String accept = Base64.getEncoder().encodeToString(digest);
        String head = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n";
        head += "Connection: Upgrade\r\nSec-WebSocket-Accept: " + accept + "\r\n\r\n";
        out.write(head.getBytes(StandardCharsets.US_ASCII));
        frames = true;
      } catch (NoSuchAlgorithmException missing) {
        throw new IOException(missing);
      }
    }

    /** The next text; other frames are passed over. */
    private String text() throws IOException {
      while (true) {
        int opcode = in.readUnsignedByte() & 15;
        long length = in.readUnsignedByte() & 0x7f;
        if (length >= 126) {
          length = length == 126 ? in.readUnsignedShort() : in.readLong();
        }
        byte[] mask = new byte[4];
        in.readFully(mask);
        byte[] payload = new byte[(int) length];
        in.readFully(payload);
        for (int i = 0; i < payload.length; i++) {
          payload[i] ^= mask[i & 3];
        }
        if (opcode == 8) {
          throw new EOFException("a close");
        }
        if (opcode == 1) {
          return new String(payload, StandardCharsets.UTF_8);
        }
      }
    }

    /** Sends an answer, or over a WebSocket anything. */
    synchronized void send(String text) throws IOException {
      byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
      ByteArrayOutputStream all = new ByteArrayOutputStream(bytes.length + 100);
      if (!frames) {
        String head = "HTTP/1.1 200 OK\r\nContent-Length: " + bytes.length + "\r\n\r\n";
        all.writeBytes(head.getBytes(StandardCharsets.US_ASCII));
      } else {
        all.write(0x81);
        if (bytes.length < 126) {
          all.write(bytes.length);
        } else {
          all.write(127);
          for (int shift = 56; shift >= 0; shift -= 8) {
            all.write((int) ((long) bytes.length >> shift));
          }
        }
      }
      all.writeBytes(bytes);
      all.writeTo(out);
    }

    @Override
    public void close() {
      try {
        socket.close();
      } catch (IOException dropped) {
        // It is of no more use.
      }
    }
  }
}
