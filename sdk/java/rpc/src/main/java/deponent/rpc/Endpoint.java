package deponent.rpc;

import java.net.URI;
import java.net.URISyntaxException;
import java.nio.file.Path;
import org.jspecify.annotations.Nullable;

/** An address that was taken apart. */
record Endpoint(
    Kind kind,
    boolean tls,
    String host,
    int port,
    String target,
    @Nullable Path path,
    @Nullable String user) {
  enum Kind {
    WEB_SOCKET,
    HTTP,
    UNIX
  }

  private static final String SCHEMES =
      "an address begins with ws://, wss://, http://, https:// or unix:/";

  static Endpoint of(String address) {
    if (address.startsWith("unix:")) {
      String path = address.substring(5);
      if (path.startsWith("//")) {
        path = path.substring(2);
      }
      if (!path.startsWith("/")) {
        throw new IllegalArgumentException("a Unix socket is unix:/path, not '" + address + "'");
      }
      return new Endpoint(Kind.UNIX, false, "", 0, "", Path.of(path), null);
    }
    URI uri;
    try {
      uri = new URI(address);
    } catch (URISyntaxException no) {
      String rule = address.contains("://") ? "no address" : SCHEMES;
      throw new IllegalArgumentException(rule + ": " + no.getMessage(), no);
    }
    String scheme = String.valueOf(uri.getScheme()).toLowerCase(java.util.Locale.ROOT);
    boolean tls = scheme.equals("wss") || scheme.equals("https");
    Kind kind =
        switch (scheme) {
          case "ws", "wss" -> Kind.WEB_SOCKET;
          case "http", "https" -> Kind.HTTP;
          default -> throw new IllegalArgumentException(SCHEMES + ", not '" + scheme + "'");
        };
    if (uri.getHost() == null) {
      throw new IllegalArgumentException("the address names no host: '" + address + "'");
    }
    int port = uri.getPort() >= 0 ? uri.getPort() : tls ? 443 : 80;
    String path = uri.getRawPath();
    String target = path == null || path.isEmpty() ? "/" : path;
    if (uri.getRawQuery() != null) {
      target += "?" + uri.getRawQuery();
    }
    return new Endpoint(kind, tls, uri.getHost(), port, target, null, uri.getUserInfo());
  }

  /** The host as an address is looked up: IPv6 without brackets. */
  String bareHost() {
    return host.startsWith("[") ? host.substring(1, host.length() - 1) : host;
  }

  /** The value of the header {@code Host}. */
  String authority() {
    return port == (tls ? 443 : 80) ? host : host + ":" + port;
  }

  /** Without the path and the user, which may be secrets. */
  @Override
  public String toString() {
    if (path != null) {
      return "unix:" + path;
    }
    String scheme = (kind == Kind.HTTP ? "http" : "ws") + (tls ? "s" : "");
    return scheme + "://" + host + ":" + port;
  }
}
