package deponent.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import deponent.eth.AbiError;
import deponent.eth.AbiFunction;
import deponent.eth.Address;
import deponent.eth.Bytes;
import deponent.eth.ProtocolException;
import deponent.eth.RevertException;
import deponent.eth.TransportException;
import java.time.Duration;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.Test;

/** ENS by a universal resolver that obeys, and by servers that do not. */
class EnsTest {
  private static final Address NICK = Address.of("0xb8c2C29ee19D8307cb7255e1Cd9CbDE883A267d5");

  private static final AbiFunction ADDR = AbiFunction.of("addr(bytes32) returns (address)");
  private static final AbiFunction COIN = AbiFunction.of("addr(bytes32, uint256) returns (bytes)");
  private static final AbiFunction TEXT = AbiFunction.of("text(bytes32, string) returns (string)");
  private static final AbiFunction HASH = AbiFunction.of("contenthash(bytes32) returns (bytes)");

  private final FakeEns chain = new FakeEns();

  private void put(String name, AbiFunction profile, Object value, Object... others) {
    EnsName its = EnsName.of(name);
    Object[] arguments = new Object[others.length + 1];
    arguments[0] = its.node();
    System.arraycopy(others, 0, arguments, 1, others.length);
    chain
        .records
        .computeIfAbsent(its.dns(), any -> new HashMap<>())
        .put(profile.encode(arguments), profile.encodeResult(value));
  }

  /** Asks local servers, and waits for slow machines. */
  private static Gateway patient() {
    return new HttpGateway(true, Nodes.LONG, HttpGateway.ANSWER_BYTES);
  }

  private interface With {
    void ens(Ens ens) throws Exception;
  }

  private void with(With test) throws Exception {
    try (Wire wire = new Wire(chain);
        Client eth = wire.client("ws")) {
      test.ens(eth.ens().gateway(patient()));
    }
  }

  @Test
  void recordsAreFoundByNamesInAnyForm() throws Exception {
    put("nick.eth", ADDR, NICK);
    put("nick.eth", COIN, Bytes.of("0014"), CoinType.BITCOIN);
    put("nick.eth", COIN, Bytes.of(NICK.toBytes()), CoinType.ofChain(8453));
    put("nick.eth", TEXT, "https://ens.domains", "url");
    put("nick.eth", TEXT, "", "avatar");
    put("nick.eth", HASH, Bytes.of("e301"));
    put("zero.eth", ADDR, Address.ZERO);
    with(
        ens -> {
          assertEquals(Optional.of(NICK), ens.address("Nick.ETH"));
          Optional<Bytes> bytes = Optional.of(Bytes.of(NICK.toBytes()));
          assertEquals(bytes, ens.address("nick.eth", CoinType.ETHER));
          assertEquals(Optional.of(Bytes.of("0014")), ens.address("nick.eth", 0));
          Optional<Bytes> base = ens.address("nick.eth", CoinType.ofChain(8453));
          assertEquals(Optional.of(Bytes.of(NICK.toBytes())), base);
          assertEquals(Optional.empty(), ens.address("nick.eth", CoinType.ofChain(10)));
          assertEquals(Optional.of("https://ens.domains"), ens.text("nick.eth", "url"));
          assertEquals(Optional.empty(), ens.text("nick.eth", "avatar"));
          assertEquals(Optional.of(Bytes.of("e301")), ens.contenthash("nick.eth"));
          assertEquals(Optional.empty(), ens.contenthash("zero.eth"));
          assertEquals(Optional.empty(), ens.address("zero.eth"));
          assertEquals(Optional.empty(), ens.address("nobody.eth"));
          assertThrows(IllegalArgumentException.class, () -> ens.address("no body.eth"));
        });
  }

  @Test
  void namesOfAddressesAreVerified() throws Exception {
    Bytes nick = Bytes.of(NICK.toBytes());
    Bytes other = Bytes.of("00000000000000000000000000000000000000bb");
    put("nick.eth", ADDR, NICK);
    put("nick.eth", COIN, nick, CoinType.ofChain(8453));
    chain.names.put(nick, "nick.eth");
    chain.names.put(other, "nick.eth");
    with(
        ens -> {
          Optional<EnsName> found = Optional.of(EnsName.of("nick.eth"));
          assertEquals(found, ens.name(NICK));
          assertEquals(found, ens.name(nick, CoinType.ofChain(8453)));
          assertEquals(Optional.empty(), ens.name(Address.of(other.toBytes())));
          assertEquals(Optional.empty(), ens.name(Address.ZERO));
          assertEquals(Optional.empty(), ens.name(nick, CoinType.ofChain(10)));
          chain.names.put(nick, "Nick.eth");
          assertEquals(Optional.empty(), ens.name(NICK));
          chain.names.put(nick, "no name");
          assertEquals(Optional.empty(), ens.name(NICK));
          AbiError mismatch = AbiError.of("ReverseAddressMismatch(string, bytes)");
          chain.reverts.put(nick, mismatch.encode("nick.eth", other));
          assertEquals(Optional.empty(), ens.name(NICK));
          assertThrows(IllegalArgumentException.class, () -> ens.name(Bytes.EMPTY, 60));
        });
  }

  @Test
  void errorsOfResolversAreToldApart() throws Exception {
    Bytes name = EnsName.of("a.eth").dns();
    with(
        ens -> {
          for (AbiError none :
              List.of(
                  AbiError.of("ResolverNotContract(bytes, address)"),
                  AbiError.of("UnsupportedResolverProfile(bytes4)"))) {
            Object first = none.inputs().size() == 2 ? name : Bytes.of("3b3b57de");
            Object[] values =
                none.inputs().size() == 2 ? new Object[] {first, NICK} : new Object[] {first};
            chain.reverts.put(name, none.encode(values));
            assertEquals(Optional.empty(), ens.address("a.eth"));
          }
          Bytes inner = AbiError.REASON.encode("closed");
          chain.reverts.put(name, AbiError.of("ResolverError(bytes)").encode(inner));
          RevertException revert = assertThrows(RevertException.class, () -> ens.address("a.eth"));
          assertEquals("closed", revert.reason());
          chain.reverts.put(name, AbiError.of("HttpError(uint16, string)").encode(404, "no"));
          assertThrows(ProtocolException.class, () -> ens.address("a.eth"));
          chain.reverts.put(name, AbiError.REASON.encode("other"));
          revert = assertThrows(RevertException.class, () -> ens.address("a.eth"));
          assertEquals("other", revert.reason());
          ProtocolException none =
              assertThrows(
                  ProtocolException.class, () -> ens.universalResolver(NICK).address("a.eth"));
          assertTrue(none.getMessage().contains("no universal resolver"), none.getMessage());
          chain.reverts.clear();
          chain.records.put(name, new HashMap<>());
          Bytes call = ADDR.encode(EnsName.of("a.eth").node());
          chain.records.get(name).put(call, Bytes.of("01"));
          assertThrows(ProtocolException.class, () -> ens.address("a.eth"));
        });
  }

  private static String data(Bytes data) {
    return WebServer.response(200, "{\"other\":[{}],\"data\":\"" + data + "\"}");
  }

  @Test
  void recordsElsewhereAreAskedForAndVerified() throws Exception {
    Bytes record = ADDR.encodeResult(NICK);
    EnsName name = EnsName.of("far.eth");
    String call = ADDR.encode(name.node()).toString();
    String sender = chain.sender.toString().toLowerCase(java.util.Locale.ROOT);
    WebServer.Script honest =
        (request, body) -> {
          if (request.startsWith("GET ")) {
            assertEquals("GET /at/" + sender + "/" + call + ".json?v=1", request);
          } else {
            assertEquals("POST /ask", request);
            String json = "{\"data\":\"" + call + "\",\"sender\":\"" + sender + "\"}";
            assertEquals(json, body);
          }
          return data(FakeEns.proven(record));
        };
    try (WebServer server = new WebServer(honest)) {
      for (String path : List.of("/at/{sender}/{data}.json?v=1", "/ask")) {
        for (boolean batches : new boolean[] {false, true}) {
          chain.batches = batches;
          chain.servers.put(name.dns(), List.of("https://127.0.0.1:1/", server.at(path)));
          with(ens -> assertEquals(Optional.of(NICK), ens.address("far.eth")));
        }
      }
      assertEquals(4, server.asked.get());
    }
  }

  @Test
  void lookupsThatFollowEachOtherHaveAnEnd() throws Exception {
    Bytes record = ADDR.encodeResult(NICK);
    try (WebServer server = new WebServer((request, body) -> data(FakeEns.proven(record)))) {
      chain.servers.put(EnsName.of("far.eth").dns(), List.of(server.at("/")));
      chain.more = 3;
      with(ens -> assertEquals(Optional.of(NICK), ens.address("far.eth")));
      chain.more = 4;
      fails(ProtocolException.class, "more than 4 lookups");
      assertEquals(8, server.asked.get());
    }
  }

  private <T extends Throwable> T fails(Class<T> with, String words) throws Exception {
    return fails(patient(), with, words);
  }

  private <T extends Throwable> T fails(Gateway by, Class<T> with, String words) throws Exception {
    try (Wire wire = new Wire(chain);
        Client eth = wire.client("ws")) {
      T failure = assertThrows(with, () -> eth.ens().gateway(by).address("far.eth"));
      assertTrue(failure.getMessage().contains(words), failure.getMessage());
      return failure;
    }
  }

  @Test
  void serversThatLieAreFoundOut() throws Exception {
    Bytes name = EnsName.of("far.eth").dns();
    String[][] answers = {
      {data(Bytes.of("00")), "bad proof"},
      {data(FakeEns.proven(Bytes.of("01"))), "addr: "},
      {WebServer.response(200, "no json"), "answered something else"},
      {WebServer.response(200, "{\"data\":\"0x0\"}"), "answered something else"},
      {WebServer.response(200, "{\"data\":7}"), "answered something else"},
      {WebServer.response(200, "{\"data\":\"0x\""), "answered something else"},
      {WebServer.response(200, "{}"), "without data"},
      {WebServer.response(200, ""), "answered something else"},
      {WebServer.response(404, "nobody"), "nobody"},
      {WebServer.response(302, ""), "302"},
      {WebServer.response(500, "broken"), "broken"},
      {"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n{", "longer"},
      {"SSH-2.0\r\n\r\n", "no HTTP"},
    };
    for (String[] answer : answers) {
      try (WebServer server = new WebServer((request, body) -> answer[0])) {
        chain.servers.put(name, List.of(server.at("/{data}")));
        for (boolean batches : new boolean[] {false, true}) {
          chain.batches = batches;
          if (batches && !answer[1].equals("addr: ")) {
            // The resolver learns of it, and reverts.
            fails(deponent.eth.EthException.class, "");
          } else {
            fails(deponent.eth.EthException.class, answer[1]);
          }
        }
      }
    }
  }

  @Test
  void anErrorOfTheRequestEndsItAndOneOfTheServerDoesNot() throws Exception {
    Bytes name = EnsName.of("far.eth").dns();
    Bytes record = FakeEns.proven(ADDR.encodeResult(NICK));
    try (WebServer good = new WebServer((request, body) -> data(record));
        WebServer broken = new WebServer((request, body) -> WebServer.response(500, "no"));
        WebServer refusing = new WebServer((request, body) -> WebServer.response(404, "no"))) {
      chain.servers.put(name, List.of(broken.at("/"), good.at("/")));
      with(ens -> assertEquals(Optional.of(NICK), ens.address("far.eth")));
      chain.servers.put(name, List.of(refusing.at("/"), good.at("/")));
      ProtocolException refused = fails(ProtocolException.class, "404");
      Gateway.Refusal refusal = assertInstanceOf(Gateway.Refusal.class, refused.getCause());
      assertEquals(404, refusal.status());
      assertEquals(1, good.asked.get());
      chain.batches = true;
      fails(ProtocolException.class, "HttpError(404");
    }
  }

  @Test
  void aServerThatStallsOrSendsTooMuchIsLeft() throws Exception {
    Bytes name = EnsName.of("far.eth").dns();
    try (WebServer server = new WebServer((request, body) -> null)) {
      chain.servers.put(name, List.of(server.at("/")));
      HttpGateway hasty = new HttpGateway(true, Duration.ofMillis(300), 1_000);
      TransportException late = fails(hasty, TransportException.class, "");
      assertEquals(TransportException.Kind.TIMEOUT, late.kind());
    }
    String endless = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    String chunk = "400\r\n" + " ".repeat(1024) + "\r\n";
    try (WebServer server = new WebServer((request, body) -> endless + chunk.repeat(2_000))) {
      chain.servers.put(name, List.of(server.at("/")));
      HttpGateway narrow = new HttpGateway(true, Nodes.LONG, 1_000_000);
      fails(narrow, ProtocolException.class, "longer");
    }
  }

  @Test
  void contractsThatLieAreFoundOut() throws Exception {
    Bytes name = EnsName.of("far.eth").dns();
    Bytes record = FakeEns.proven(ADDR.encodeResult(NICK));
    try (WebServer server = new WebServer((request, body) -> data(record));
        WebServer broken = new WebServer((request, body) -> WebServer.response(500, "no"))) {
      chain.servers.put(name, List.of(server.at("/")));
      chain.sender = NICK;
      fails(ProtocolException.class, "asks in the name of " + NICK);
      chain.sender = Ens.UNIVERSAL_RESOLVER;
      assertEquals(0, server.asked.get());
      fails(Gateway.https(), ProtocolException.class, "https://host/");
      chain.servers.put(name, List.of());
      fails(ProtocolException.class, "without servers");
      for (String url :
          List.of(
              "file:///etc/passwd",
              "ws://127.0.0.1/",
              "//127.0.0.1/",
              "http://user:word@127.0.0.1:1/",
              "http:///x",
              "unix:/run/x",
              "http://127.0.0.1:1/a b",
              "http://127.0.0.1:1/\r\nHost: x",
              "x\u0000")) {
        chain.servers.put(name, List.of(url));
        fails(ProtocolException.class, "gateway");
      }
      chain.servers.put(name, Collections.nCopies(100, broken.at("/")));
      for (boolean batches : new boolean[] {false, true}) {
        chain.batches = batches;
        fails(ProtocolException.class, "more than 64 requests");
      }
      assertEquals(128, broken.asked.get());
      // Batches in batches.
      chain.servers.put(name, List.of(CcipRead.LOCAL_BATCH));
      fails(deponent.eth.EthException.class, "");
      assertEquals(0, server.asked.get());
    }
  }

  /**
   * Code that reverts with {@code revert}, and returns {@code result} where it is called with the
   * callback's selector.
   */
  private static Bytes code(Bytes revert, Bytes result) {
    String callback = FakeEns.CALLBACK.selector().toString().substring(2);
    String code =
        // PUSH0, CALLDATALOAD, PUSH1 224, SHR, PUSH4 the selector, EQ, PUSH1 27, JUMPI.
        ("5f3560e01c63" + callback + "14601b57")
            // PUSH2 the size, PUSH2 the place, PUSH0, CODECOPY, PUSH2 the size, PUSH0, REVERT.
            + String.format("61%04x61%04x5f3961%04x5ffd", revert.size(), 41, revert.size())
            // JUMPDEST, and the other is returned in the same way.
            + String.format("5b61%04x61%04x", result.size(), 41 + revert.size())
            + String.format("5f3961%04x5ff3", result.size());
    return Bytes.concat(Bytes.of(code), revert, result);
  }

  @Test
  void realChainsRevertWithLookups() throws Exception {
    Bytes record = ADDR.encodeResult(NICK);
    Bytes extra = Bytes.of("07");
    AbiError lookup = FakeEns.LOOKUP;
    Bytes revert =
        lookup.encode(
            Ens.UNIVERSAL_RESOLVER,
            List.of("ccip://there"),
            Bytes.of("0102"),
            FakeEns.CALLBACK.selector(),
            extra);
    Bytes code = code(revert, FakeEns.RESOLVE.encodeResult(record, Address.ZERO));
    Nodes.each(
        List.of(),
        node -> {
          try (Client eth = node.client("ws")) {
            Nodes.ask(
                eth,
                "anvil_setCode",
                json -> json.value(Ens.UNIVERSAL_RESOLVER.toString()).value(code.toString()));
            Gateway own =
                (url, sender, data) -> {
                  assertEquals("ccip://there", url);
                  assertEquals(Bytes.of("0102"), data);
                  return Bytes.of("0304");
                };
            assertEquals(Optional.of(NICK), eth.ens().gateway(own).address("far.eth"));
          }
        });
  }

  @Test
  void anApplicationMayChooseTheServers() throws Exception {
    Bytes record = FakeEns.proven(ADDR.encodeResult(NICK));
    chain.servers.put(EnsName.of("far.eth").dns(), List.of("ipfs://somewhere/{data}"));
    try (Wire wire = new Wire(chain);
        Client eth = wire.client("http")) {
      Gateway own =
          (url, sender, data) -> {
            assertEquals("ipfs://somewhere/{data}", url);
            assertEquals(Ens.UNIVERSAL_RESOLVER, sender);
            return record;
          };
      assertEquals(Optional.of(NICK), eth.ens().gateway(own).address("far.eth"));
    }
  }
}
