package deponent.rpc;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import deponent.eth.JsonReader;
import deponent.eth.TransportException;
import deponent.eth.TransportException.Kind;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyStore;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class TlsTest {
  private static final char[] PASSWORD = "password".toCharArray();

  private static final Request<Long> NUMBER =
      Request.of("eth_blockNumber", Params.NONE, JsonReader::nextQuantity).repeatable();

  private static final Duration LONG = Duration.ofSeconds(60);

  @TempDir Path folder;

  private void keytool(String arguments) throws Exception {
    List<String> command = new ArrayList<>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "keytool").toString());
    command.addAll(List.of(arguments.split(" ")));
    command.addAll(List.of("-storepass", "password"));
    Process process =
        new ProcessBuilder(command).directory(folder.toFile()).redirectErrorStream(true).start();
    String said = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    assertEquals(0, process.waitFor(), said);
  }

  /** A server's key, certified by the test's authority. */
  private SSLContext server(String name, String host, String validity) throws Exception {
    String key = " -keyalg EC -groupname secp256r1 -dname CN=" + name;
    keytool("-genkeypair -keystore " + name + ".p12 -alias own" + key);
    keytool("-certreq -keystore " + name + ".p12 -alias own -file " + name + ".req");
    keytool(
        "-gencert -keystore ca.p12 -alias ca -infile "
            + (name + ".req -outfile " + name + ".pem -rfc -ext san=" + host + " " + validity));
    keytool("-importcert -noprompt -keystore " + name + ".p12 -alias ca -file ca.pem");
    keytool("-importcert -noprompt -keystore " + name + ".p12 -alias own -file " + name + ".pem");
    KeyManagerFactory keys = KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
    keys.init(store(name + ".p12"), PASSWORD);
    SSLContext context = SSLContext.getInstance("TLS");
    context.init(keys.getKeyManagers(), null, null);
    return context;
  }

  private KeyStore store(String name) throws Exception {
    KeyStore store = KeyStore.getInstance("PKCS12");
    try (InputStream in = Files.newInputStream(folder.resolve(name))) {
      store.load(in, PASSWORD);
    }
    return store;
  }

  @Test
  void certificatesAndHostNamesAreVerified() throws Exception {
    keytool(
        "-genkeypair -keystore ca.p12 -alias ca -keyalg EC -groupname secp256r1 -dname CN=ca"
            + " -ext bc:c");
    keytool("-exportcert -keystore ca.p12 -alias ca -rfc -file ca.pem");
    keytool("-importcert -noprompt -keystore trust.p12 -alias ca -file ca.pem");
    TrustManagerFactory trust =
        TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
    trust.init(store("trust.p12"));
    SSLContext client = SSLContext.getInstance("TLS");
    client.init(null, trust.getTrustManagers(), null);

    Server.Script script =
        (peer, n) -> {
          peer.upgrade();
          while (true) {
            peer.send(Server.Peer.result(peer.text(), "\"0x2a\""));
          }
        };
    Server.Script http =
        (peer, n) -> {
          while (true) {
            peer.answer(Server.Peer.result(peer.body(), "\"0x2a\""));
          }
        };
    SSLContext good = server("good", "dns:localhost", "-validity 30");
    try (Server ws = Server.tls(good, script);
        Server web = Server.tls(good, http);
        Provider one = Provider.at(ws.at("wss://localhost")).timeout(LONG).ssl(client).connect();
        Provider two =
            Provider.at(web.at("https://localhost")).timeout(LONG).ssl(client).connect()) {
      assertEquals(42, one.request(NUMBER));
      assertEquals(42, two.request(NUMBER));
      refused(Provider.at(ws.at("wss://127.0.0.1")).ssl(client));
      // The issuer is not known to everybody.
      refused(Provider.at(ws.at("wss://localhost")));
    }
    SSLContext other = server("other", "dns:other.example", "-validity 30");
    try (Server ws = Server.tls(other, script)) {
      refused(Provider.at(ws.at("wss://localhost")).ssl(client));
    }
    SSLContext old = server("old", "dns:localhost", "-startdate -30d -validity 10");
    try (Server ws = Server.tls(old, script)) {
      refused(Provider.at(ws.at("wss://localhost")).ssl(client));
    }
  }

  private static void refused(ProviderBuilder builder) {
    TransportException refused =
        assertThrows(TransportException.class, () -> builder.timeout(LONG).connect().close());
    assertEquals(Kind.TLS, refused.kind());
  }
}
