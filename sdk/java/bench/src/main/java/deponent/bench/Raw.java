package deponent.bench;

import java.io.ByteArrayOutputStream;
import java.io.Closeable;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.Socket;
import java.net.StandardProtocolFamily;
import java.net.URI;
import java.net.UnixDomainSocketAddress;
import java.nio.channels.Channels;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import jdk.net.ExtendedSocketOptions;
import org.jspecify.annotations.Nullable;

/**
 * A socket that writes bytes which were made before, and looks at answers no more than it has to:
 * what a client can reach at most. Its requests all have the id 1.
 */
final class Raw implements Contender {
  private static final String REQUEST =
      "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"eth_blockNumber\",\"params\":[]}";

  /** What goes around the JSON. */
  private enum Form {
    WEB_SOCKET,
    HTTP,
    BARE
  }

  private final Form form;
  private final Closeable socket;
  private final @Nullable Socket tcp;
  private final InputStream in;
  private final OutputStream out;
  private final byte[] buffer = new byte[1 << 16];
  private int from;
  private int to;
  private final byte[] one;
  private byte[] many = {};
  private byte[] array = {};
  private int count;

  private Raw(Form form, URI host, Closeable socket, @Nullable Socket tcp) throws IOException {
    this.form = form;
    this.socket = socket;
    this.tcp = tcp;
    if (socket instanceof SocketChannel channel) {
      in = Channels.newInputStream(channel);
      out = Channels.newOutputStream(channel);
    } else {
      in = ((Socket) socket).getInputStream();
      out = ((Socket) socket).getOutputStream();
    }
    one = framed(REQUEST, host);
    this.host = host;
  }

  private final URI host;

  static Raw tcp(String address) throws IOException {
    URI uri = URI.create(address);
    Socket socket = new Socket(uri.getHost(), uri.getPort());
    socket.setTcpNoDelay(true);
    Form form = uri.getScheme().equals("ws") ? Form.WEB_SOCKET : Form.HTTP;
    Raw raw = new Raw(form, uri, socket, socket);
    if (form == Form.WEB_SOCKET) {
      raw.shakeHands();
    }
    return raw;
  }

  static Raw unix(String path) throws IOException {
    SocketChannel channel = SocketChannel.open(StandardProtocolFamily.UNIX);
    channel.connect(UnixDomainSocketAddress.of(path));
    return new Raw(Form.BARE, URI.create("unix:/"), channel, null);
  }

  private void shakeHands() throws IOException {
    String path = host.getRawPath().isEmpty() ? "/" : host.getRawPath();
    String head =
        "GET "
            + path
            + " HTTP/1.1\r\nHost: "
            + host.getRawAuthority()
            + "\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            + "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n";
    out.write(head.getBytes(StandardCharsets.US_ASCII));
    String status = line();
    if (!status.contains(" 101 ")) {
      throw new IOException("the handshake was answered by " + status);
    }
    while (!line().isEmpty()) {
      continue;
    }
  }

  private byte[] framed(String json, URI host) {
    byte[] body = json.getBytes(StandardCharsets.US_ASCII);
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    switch (form) {
      case BARE -> {
        bytes.writeBytes(body);
        bytes.write('\n');
      }
      case HTTP -> {
        String path = host.getRawPath().isEmpty() ? "/" : host.getRawPath();
        String head =
            "POST "
                + path
                + " HTTP/1.1\r\nHost: "
                + host.getRawAuthority()
                + "\r\nContent-Type: application/json\r\nContent-Length: "
                + body.length
                + "\r\n\r\n";
        bytes.writeBytes(head.getBytes(StandardCharsets.US_ASCII));
        bytes.writeBytes(body);
      }
      case WEB_SOCKET -> {
        bytes.write(0x81);
        if (body.length < 126) {
          bytes.write(0x80 | body.length);
        } else {
          bytes.write(0x80 | 126);
          bytes.write(body.length >> 8);
          bytes.write(body.length);
        }
        // A mask of zeros.
        bytes.writeBytes(new byte[4]);
        bytes.writeBytes(body);
      }
    }
    return bytes.toByteArray();
  }

  private void prepare(int calls) {
    if (count != calls) {
      count = calls;
      array = framed("[" + (REQUEST + ",").repeat(calls - 1) + REQUEST + "]", host);
      ByteArrayOutputStream all = new ByteArrayOutputStream();
      for (int i = 0; i < calls; i++) {
        all.writeBytes(one);
      }
      many = all.toByteArray();
    }
  }

  @Override
  public void call() throws IOException {
    out.write(one);
    answer();
  }

  @Override
  public void batch(int calls) throws IOException {
    prepare(calls);
    out.write(array);
    answer();
  }

  @Override
  public void pipelined(int calls) throws IOException {
    prepare(calls);
    out.write(many);
    for (int i = 0; i < calls; i++) {
      answer();
    }
  }

  private void answer() throws IOException {
    switch (form) {
      case WEB_SOCKET -> frame();
      case HTTP -> response();
      case BARE -> value();
    }
  }

  private void frame() throws IOException {
    int first = next();
    long length = next();
    if (length == 126) {
      length = next() << 8 | next();
    } else if (length == 127) {
      length = 0;
      for (int i = 0; i < 8; i++) {
        length = length << 8 | next();
      }
    }
    skip(length);
    // A ping, which nobody sends so soon, or a part of a message.
    if (first != 0x81 && first != 0x80) {
      frame();
    }
  }

  private void response() throws IOException {
    long length = -1;
    boolean chunked = false;
    for (String line = line(); !line.isEmpty(); line = line()) {
      String lower = line.toLowerCase();
      if (lower.startsWith("content-length:")) {
        length = Long.parseLong(lower.substring(15).trim());
      }
      chunked |= lower.startsWith("transfer-encoding:");
    }
    if (!chunked) {
      skip(length);
      return;
    }
    do {
      length = Long.parseLong(line().trim(), 16);
      skip(length + 2);
    } while (length > 0);
  }

  /** An object or an array. Nothing in answers has brackets in a string. */
  private void value() throws IOException {
    int depth = 0;
    do {
      int one = next();
      if (one == '{' || one == '[') {
        depth++;
      } else if (one == '}' || one == ']') {
        depth--;
      } else if (depth == 0 && one > ' ') {
        throw new IOException("no JSON");
      }
      if (depth == 0 && one > ' ') {
        return;
      }
    } while (true);
  }

  private String line() throws IOException {
    StringBuilder line = new StringBuilder();
    for (int one = next(); one != '\n'; one = next()) {
      if (one != '\r') {
        line.append((char) one);
      }
    }
    return line.toString();
  }

  private int next() throws IOException {
    if (from == to) {
      fill();
    }
    return buffer[from++] & 0xff;
  }

  private void skip(long bytes) throws IOException {
    long left = bytes;
    while (left > to - from) {
      left -= to - from;
      fill();
    }
    from += (int) left;
  }

  private void fill() throws IOException {
    int read = in.read(buffer, 0, buffer.length);
    if (read < 0) {
      throw new EOFException("the server closed");
    }
    from = 0;
    to = read;
    if (tcp != null && tcp.supportedOptions().contains(ExtendedSocketOptions.TCP_QUICKACK)) {
      tcp.setOption(ExtendedSocketOptions.TCP_QUICKACK, true);
    }
  }

  @Override
  public void close() throws IOException {
    socket.close();
  }
}
