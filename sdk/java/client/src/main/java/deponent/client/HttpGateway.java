package deponent.client;

import deponent.eth.Address;
import deponent.eth.Bytes;
import deponent.eth.Hex;
import deponent.eth.JsonReader;
import deponent.eth.JsonWriter;
import deponent.eth.MalformedException;
import deponent.eth.ProtocolException;
import deponent.rpc.Http;
import deponent.rpc.Provider;
import deponent.rpc.ProviderBuilder;
import java.net.URI;
import java.net.URISyntaxException;
import java.time.Duration;
import java.util.List;
import java.util.Locale;
import java.util.Optional;

/** Asks gateways by HTTP, as EIP-3668 says. */
final class HttpGateway implements Gateway {
  /** Bytes of an answer at most. */
  static final int ANSWER_BYTES = 4 << 20;

  /** The time for an answer. */
  private static final Duration TIMEOUT = Duration.ofSeconds(10);

  private static final String JSON = "Content-Type: application/json";

  private final boolean plain;
  private final Duration timeout;
  private final int answerBytes;

  /** {@code plain} allows {@code http://}, too. */
  HttpGateway(boolean plain) {
    this(plain, TIMEOUT, ANSWER_BYTES);
  }

  HttpGateway(boolean plain, Duration timeout, int answerBytes) {
    this.plain = plain;
    this.timeout = timeout;
    this.answerBytes = answerBytes;
  }

  @Override
  public Bytes ask(String url, Address sender, Bytes data) {
    String digits = Hex.encode(sender.toBytes());
    boolean get = url.contains("{data}");
    String filled = url.replace("{sender}", digits).replace("{data}", data.toString());
    URI uri = uri(filled);
    byte[] body = null;
    if (!get) {
      JsonWriter json = new JsonWriter().beginObject().name("data").value(data);
      body = json.name("sender").value(digits).endObject().toBytes();
    }
    String path = uri.getRawPath() == null || uri.getRawPath().isEmpty() ? "/" : uri.getRawPath();
    String target = uri.getRawQuery() == null ? path : path + "?" + uri.getRawQuery();
    Http.Ask ask =
        new Http.Ask(
            "ccip-read",
            get ? "GET" : "POST",
            target,
            get ? List.of() : List.of(JSON),
            body,
            answerBytes,
            Optional.of(timeout),
            true);
    try (Http http = builder(uri).http()) {
      return read(uri, http.exchange(ask));
    }
  }

  private ProviderBuilder builder(URI uri) {
    return Provider.at(uri.getScheme() + "://" + uri.getRawAuthority()).timeout(timeout);
  }

  /** The address, which is of HTTPS and has no user. */
  private URI uri(String url) {
    URI uri;
    try {
      uri = new URI(url);
    } catch (URISyntaxException no) {
      throw new ProtocolException("CCIP-read: no address of a gateway: " + no.getMessage(), no);
    }
    String scheme = String.valueOf(uri.getScheme()).toLowerCase(Locale.ROOT);
    if (!scheme.equals("https") && !(plain && scheme.equals("http"))
        || uri.getHost() == null
        || uri.getUserInfo() != null) {
      throw new ProtocolException(
          "CCIP-read: a gateway's address is https://host/.., not " + shortened(url));
    }
    return uri;
  }

  private Bytes read(URI uri, Http.Answer answer) {
    int status = answer.status();
    if (status / 100 == 4) {
      String what = answer.failure().getMessage();
      throw new ProtocolException("CCIP-read: " + what, new Refusal(status, what));
    }
    if (status / 100 != 2) {
      throw answer.failure();
    }
    JsonReader json = new JsonReader(answer.copy(answerBytes));
    Bytes data = null;
    try {
      json.beginObject();
      while (json.hasNext()) {
        if (json.nextName().equals("data")) {
          data = json.nextBytes();
        } else {
          json.skipValue();
        }
      }
      json.endObject();
    } catch (MalformedException other) {
      throw new ProtocolException(
          "CCIP-read: " + uri.getHost() + " answered something else: " + other.getMessage(), other);
    }
    if (data == null) {
      throw new ProtocolException("CCIP-read: " + uri.getHost() + " answered without data");
    }
    return data;
  }

  /** At most 200 characters, without those that control. */
  static String shortened(String text) {
    String some = text.length() > 200 ? text.substring(0, 200) + ".." : text;
    return "'" + some.replaceAll("\\p{Cntrl}", "?") + "'";
  }
}
