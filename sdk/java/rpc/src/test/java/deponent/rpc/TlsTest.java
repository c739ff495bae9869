package deponent.rpc;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import deponent.eth.JsonReader;
import deponent.eth.TransportException;
import deponent.eth.TransportException.Kind;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.security.KeyStore;
import java.security.Signature;
import java.security.cert.CertificateFactory;
import java.security.cert.X509Certificate;
import java.security.spec.ECGenParameterSpec;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

class TlsTest {
  private static final char[] PASSWORD = "password".toCharArray();

  private static final Request<Long> NUMBER =
      Request.of("eth_blockNumber", Params.NONE, JsonReader::nextQuantity).repeatable();

  private static final Duration LONG = Duration.ofSeconds(60);

  /** A key, and its certificate signed by the test's authority or by itself. */
  private record Party(KeyPair keys, X509Certificate certificate) {
    static Party of(String name, @Nullable Party by, int fromDays, int toDays, byte[] extension)
        throws Exception {
      KeyPairGenerator generator = KeyPairGenerator.getInstance("EC");
      generator.initialize(new ECGenParameterSpec("secp256r1"));
      KeyPair own = generator.generateKeyPair();
      byte[] algorithm = der(0x30, oid(0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02));
      byte[] issuer =
          by == null ? name(name) : by.certificate.getSubjectX500Principal().getEncoded();
      byte[] body =
          der(
              0x30,
              der(0xa0, der(0x02, new byte[] {2})),
              der(0x02, BigInteger.valueOf(System.nanoTime()).toByteArray()),
              algorithm,
              issuer,
              der(0x30, time(fromDays), time(toDays)),
              name(name),
              own.getPublic().getEncoded(),
              der(0xa3, der(0x30, extension)));
      Signature signature = Signature.getInstance("SHA256withECDSA");
      signature.initSign((by == null ? own : by.keys).getPrivate());
      signature.update(body);
      byte[] signed = der(0x30, body, algorithm, der(0x03, new byte[1], signature.sign()));
      return new Party(
          own,
          (X509Certificate)
              CertificateFactory.getInstance("X.509")
                  .generateCertificate(new ByteArrayInputStream(signed)));
    }

    private static byte[] name(String common) {
      byte[] text = common.getBytes(StandardCharsets.UTF_8);
      return der(0x30, der(0x31, der(0x30, oid(0x55, 0x04, 0x03), der(0x0c, text))));
    }

    private static byte[] time(int days) {
      DateTimeFormatter format =
          DateTimeFormatter.ofPattern("yyMMddHHmmss'Z'").withZone(ZoneOffset.UTC);
      String text = format.format(Instant.now().plus(Duration.ofDays(days)));
      return der(0x17, text.getBytes(StandardCharsets.US_ASCII));
    }
  }

  /** What is in a certificate, in DER: a tag, the length, and the parts. */
  private static byte[] der(int tag, byte[]... parts) {
    ByteArrayOutputStream all = new ByteArrayOutputStream();
    for (byte[] part : parts) {
      all.writeBytes(part);
    }
    ByteArrayOutputStream der = new ByteArrayOutputStream();
    der.write(tag);
    if (all.size() >= 256) {
      der.write(0x82);
      der.write(all.size() >> 8);
    } else if (all.size() >= 128) {
      der.write(0x81);
    }
    der.write(all.size());
    der.writeBytes(all.toByteArray());
    return der.toByteArray();
  }

  private static byte[] oid(int... bytes) {
    byte[] id = new byte[bytes.length];
    for (int i = 0; i < bytes.length; i++) {
      id[i] = (byte) bytes[i];
    }
    return der(0x06, id);
  }

  /** The extension that makes an authority: {@code CA:TRUE}, critical. */
  private static byte[] authority() {
    byte[] yes = der(0x01, new byte[] {-1});
    return der(0x30, oid(0x55, 0x1d, 0x13), yes, der(0x04, der(0x30, yes)));
  }

  /** The extension with the name of a host. */
  private static byte[] host(String name) {
    byte[] dns = der(0x82, name.getBytes(StandardCharsets.US_ASCII));
    return der(0x30, oid(0x55, 0x1d, 0x11), der(0x04, der(0x30, dns)));
  }

  /** What a server needs to show that it is {@code party}. */
  private static SSLContext server(Party party, Party authority) throws Exception {
    KeyStore store = KeyStore.getInstance("PKCS12");
    store.load(null, null);
    X509Certificate[] chain = {party.certificate, authority.certificate};
    store.setKeyEntry("own", party.keys.getPrivate(), PASSWORD, chain);
    KeyManagerFactory keys = KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
    keys.init(store, PASSWORD);
    SSLContext context = SSLContext.getInstance("TLS");
    context.init(keys.getKeyManagers(), null, null);
    return context;
  }

  /** A client that trusts {@code authority} alone. */
  private static SSLContext trusting(Party authority) throws Exception {
    KeyStore store = KeyStore.getInstance("PKCS12");
    store.load(null, null);
    store.setCertificateEntry("ca", authority.certificate);
    TrustManagerFactory trust =
        TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
    trust.init(store);
    SSLContext client = SSLContext.getInstance("TLS");
    client.init(null, trust.getTrustManagers(), null);
    return client;
  }

  @Test
  void certificatesAndHostNamesAreVerified() throws Exception {
    Party ca = Party.of("ca", null, -60, 60, authority());
    SSLContext client = trusting(ca);
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
    SSLContext good = server(Party.of("good", ca, -1, 30, host("localhost")), ca);
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
    SSLContext other = server(Party.of("other", ca, -1, 30, host("other.example")), ca);
    try (Server ws = Server.tls(other, script)) {
      refused(Provider.at(ws.at("wss://localhost")).ssl(client));
    }
    SSLContext old = server(Party.of("old", ca, -30, -20, host("localhost")), ca);
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
