package deponent.rpc;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.security.SecureRandom;
import java.util.Base64;

/** The opening handshake of a WebSocket (RFC 6455, 4.1). */
final class Handshake {
  private static final String GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
  private static final SecureRandom RANDOM = new SecureRandom();

  private Handshake() {}

  static void run(Sock sock, SockInput in, Settings settings) throws IOException {
    byte[] nonce = new byte[16];
    RANDOM.nextBytes(nonce);
    String key = Base64.getEncoder().encodeToString(nonce);
    StringBuilder ask = new StringBuilder(256);
    ask.append("GET ").append(settings.endpoint.target()).append(" HTTP/1.1\r\nHost: ");
    ask.append(settings.endpoint.authority()).append("\r\nUpgrade: websocket\r\n");
    ask.append("Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ");
    ask.append(key).append("\r\n");
    settings.headersTo(ask);
    byte[] bytes = ask.append("\r\n").toString().getBytes(StandardCharsets.US_ASCII);
    sock.write(bytes, 0, bytes.length);
    Head head = Head.read(in);
    if (head.status() != 101) {
      throw new Fatal(1002, head.failure(settings.endpoint.toString(), ""));
    }
    if (!head.has("upgrade", "websocket") || !head.has("connection", "upgrade")) {
      throw Head.wrong("a handshake without Upgrade: websocket");
    }
    if (!accept(key).equals(head.header("sec-websocket-accept"))) {
      throw Head.wrong("a handshake that does not accept the key");
    }
    if (head.header("sec-websocket-extensions") != null
        || head.header("sec-websocket-protocol") != null) {
      throw Head.wrong("a handshake with an extension or protocol that was not asked for");
    }
  }

  /** The value that proves that the peer speaks WebSocket. */
  static String accept(String key) {
    try {
      MessageDigest sha = MessageDigest.getInstance("SHA-1");
      byte[] digest = sha.digest((key + GUID).getBytes(StandardCharsets.US_ASCII));
      return Base64.getEncoder().encodeToString(digest);
    } catch (NoSuchAlgorithmException missing) {
      throw new IllegalStateException(missing);
    }
  }
}
