package deponent.rpc;

import deponent.eth.EthException;
import deponent.eth.ProtocolException;
import deponent.eth.TransportException;
import deponent.eth.TransportException.Kind;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Locale;
import java.util.Map;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * The head of an HTTP/1.1 response (RFC 9112).
 *
 * @param minor the minor version, 0 or 1
 * @param headers by names in lower case; values of the same name are joined by commas
 */
record Head(int status, int minor, String reason, Map<String, String> headers) {
  /** Bytes of a head at most. */
  private static final int LONGEST = 1 << 16;

  private static final Pattern STATUS = Pattern.compile("HTTP/1\\.[01] [1-9][0-9][0-9]( .*)?");

  /** Reads the head that is next; heads of status 1xx, but for 101, are passed over. */
  static Head read(SockInput in) throws IOException {
    while (true) {
      Head head = readOne(in);
      if (head.status >= 200 || head.status == 101) {
        return head;
      }
    }
  }

  private static Head readOne(SockInput in) throws IOException {
    int[] left = {LONGEST};
    String line = line(in, left);
    if (!STATUS.matcher(line).matches()) {
      throw wrong("no HTTP/1.1: " + quoted(line));
    }
    Map<String, String> headers = new HashMap<>();
    for (String one = line(in, left); !one.isEmpty(); one = line(in, left)) {
      int colon = one.indexOf(':');
      if (colon < 1 || one.charAt(0) == ' ' || one.charAt(0) == '\t') {
        throw wrong("no header: " + quoted(one));
      }
      String name = one.substring(0, colon).toLowerCase(Locale.ROOT);
      headers.merge(name, one.substring(colon + 1).strip(), (a, b) -> a + ", " + b);
    }
    int minor = line.charAt(7) - '0';
    String reason = line.length() > 13 ? line.substring(13) : "";
    return new Head(Integer.parseInt(line.substring(9, 12)), minor, reason, headers);
  }

  /** A line without its end, CR LF or LF. */
  private static String line(SockInput in, int[] left) throws IOException {
    StringBuilder line = new StringBuilder(64);
    for (int one = in.next(); one != '\n'; one = in.next()) {
      if (--left[0] < 0) {
        throw wrong("a head of more than " + LONGEST + " bytes");
      }
      line.append((char) one);
    }
    int length = line.length();
    if (length > 0 && line.charAt(length - 1) == '\r') {
      line.setLength(length - 1);
    }
    return line.toString();
  }

  static Fatal wrong(String what) {
    return new Fatal(1002, new ProtocolException("HTTP: " + what));
  }

  /** At most 200 characters of what a peer sent, without control characters. */
  static String quoted(String text) {
    String some = text.length() > 200 ? text.substring(0, 200) + ".." : text;
    return "'" + some.replaceAll("\\p{Cntrl}", "?") + "'";
  }

  @Nullable String header(String name) {
    return headers.get(name);
  }

  /** Whether the header's list has {@code token}, in any case. */
  boolean has(String name, String token) {
    String list = headers.get(name);
    if (list != null) {
      for (String one : list.split(",")) {
        if (one.strip().equalsIgnoreCase(token)) {
          return true;
        }
      }
    }
    return false;
  }

  /** The exception for a status that is no success, with what the body says. */
  EthException failure(String from, String body) {
    String message = from + " answered " + status + " " + quoted(reason);
    if (!body.isBlank()) {
      message += ": " + quoted(body);
    }
    return switch (status) {
      case 401, 403 -> new TransportException(Kind.REFUSED, false, message, null);
      case 429, 503 ->
          new TransportException(Kind.BUSY, false, message, new RetryAfter(header("retry-after")));
      case 502, 504 -> new TransportException(Kind.CLOSED, true, message, null);
      default -> new ProtocolException(message);
    };
  }

  /** Asks a proxy for a tunnel (RFC 9110, 9.3.6). */
  static void tunnel(Sock sock, Endpoint to, Guard guard) throws IOException {
    String target = to.host() + ":" + to.port();
    String ask = "CONNECT " + target + " HTTP/1.1\r\nHost: " + target + "\r\n\r\n";
    byte[] bytes = ask.getBytes(StandardCharsets.US_ASCII);
    sock.write(bytes, 0, bytes.length);
    SockInput in = new SockInput(sock);
    Head head = read(in);
    if (head.status / 100 != 2) {
      throw new Fatal(1002, head.failure("the proxy", ""));
    }
    if (!in.isEmpty()) {
      throw wrong("the proxy sent something before it was asked");
    }
  }
}
