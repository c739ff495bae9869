package deponent.engine;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import deponent.eth.Address;
import deponent.eth.Bytes;
import deponent.eth.EthException;
import deponent.eth.Hash;
import deponent.eth.Keccak256;
import deponent.eth.ProtocolException;
import deponent.eth.RlpWriter;
import deponent.eth.RpcException;
import deponent.eth.TransportException;
import deponent.eth.TransportException.Kind;
import deponent.eth.Wei;
import deponent.sets.Sets;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.function.Function;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The client against servers that misbehave. */
class EngineClientTest {
  private static final Duration LONG = Duration.ofSeconds(120);

  /** What each test calls: calls that may be repeated, and one that may not. */
  private static final List<Function<EngineClient, Object>> READS =
      List.of(
          client -> client.newPayload(payload()),
          client -> client.newPayloadWithWitness(payload()),
          client -> client.witness(Hash.ZERO),
          client -> client.getPayload(PayloadId.of("0x0102030405060708")),
          client -> client.payloadBodies(Fork.OSAKA, List.of(Hash.ZERO)),
          client -> client.payloadBodies(Fork.OSAKA, 1, 2),
          client -> client.getBlobs(2, List.of(Hash.ZERO)),
          client -> client.exchangeCapabilities(List.of()),
          EngineClient::getClientVersion);

  private static NewPayload payload() {
    return NewPayload.of(
        ExecutionPayload.builder()
            .parentHash(Hash.ZERO)
            .feeRecipient(Address.ZERO)
            .stateRoot(Hash.ZERO)
            .receiptsRoot(Hash.ZERO)
            .logsBloom(Bytes.of(new byte[256]))
            .prevRandao(Hash.ZERO)
            .blockNumber(1)
            .gasLimit(1)
            .gasUsed(0)
            .timestamp(1)
            .extraData(Bytes.EMPTY)
            .baseFeePerGas(Wei.ZERO)
            .blockHash(Hash.ZERO)
            .transactions(List.of())
            .build());
  }

  private static EngineClient client(Script server, Wire wire) {
    return EngineClient.at(server.address()).wire(wire).timeout(LONG).connect();
  }

  @Test
  void whatIsSafeToRepeatIsRepeatedTwice() throws Exception {
    for (String begun : List.of("", "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{\"id\"")) {
      for (Wire wire : Wire.values()) {
        Script.Serve hangsUp =
            peer -> {
              peer.request();
              peer.write(begun);
            };
        try (Script server = new Script(hangsUp);
            EngineClient client = client(server, wire)) {
          for (Function<EngineClient, Object> read : READS) {
            int before = server.requests.size();
            lost(assertThrows(TransportException.class, () -> read.apply(client)));
            assertEquals(3, server.requests.size() - before);
          }
          int before = server.requests.size();
          ForkchoiceState state = ForkchoiceState.of(Hash.ZERO);
          lost(assertThrows(TransportException.class, () -> client.forkchoiceUpdated(state, null)));
          assertEquals(1, server.requests.size() - before);
        }
      }
    }
  }

  private static void lost(TransportException failure) {
    assertEquals(Kind.CLOSED, failure.kind());
    assertTrue(failure.mayHaveRun());
  }

  @Test
  void aServerThatStallsIsGivenUpAtTheDeadline() throws Exception {
    List<String> begun =
        List.of("", "HTTP/1.1 2", "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n{\"id\"");
    for (Wire wire : Wire.values()) {
      for (String some : begun) {
        Script.Serve stalls =
            peer -> {
              peer.request();
              peer.write(some);
              peer.stall();
            };
        Duration soon = Duration.ofMillis(200);
        try (Script server = new Script(stalls);
            EngineClient client =
                EngineClient.at(server.address()).wire(wire).timeout(soon).connect()) {
          TransportException late =
              assertThrows(TransportException.class, () -> client.newPayload(payload()));
          assertEquals(Kind.TIMEOUT, late.kind());
          ExecutionException failed =
              assertThrows(ExecutionException.class, () -> client.witnessAsync(Hash.ZERO).get());
          assertInstanceOf(TransportException.class, failed.getCause());
        }
      }
    }
  }

  @Test
  void closingEndsCallsThatWait() throws Exception {
    for (Wire wire : Wire.values()) {
      CountDownLatch asked = new CountDownLatch(1);
      Script.Serve stalls =
          peer -> {
            peer.request();
            asked.countDown();
            peer.stall();
          };
      try (Script server = new Script(stalls)) {
        EngineClient client = client(server, wire);
        CompletableFuture<PayloadStatus> waits = client.newPayloadAsync(payload());
        asked.await();
        client.close();
        ExecutionException ended = assertThrows(ExecutionException.class, waits::get);
        assertInstanceOf(TransportException.class, ended.getCause());
        assertThrows(TransportException.class, client::getClientVersion);
      }
    }
  }

  @Test
  void aResetIsATransportException() throws Exception {
    for (Wire wire : Wire.values()) {
      Script.Serve resets =
          peer -> {
            peer.request();
            peer.socket.setSoLinger(true, 0);
          };
      try (Script server = new Script(resets);
          EngineClient client = client(server, wire)) {
        lost(assertThrows(TransportException.class, client::getClientVersion));
      }
    }
  }

  @Test
  void garbageIsATypedException() throws Exception {
    Random random = Sets.random();
    byte[] status = {0, 9, 0, 0, 0, 41, 0, 0, 0};
    for (Wire wire : Wire.values()) {
      Script.Serve answers =
          peer -> {
            while (true) {
              String request = peer.request();
              if (random.nextInt(4) == 0) {
                peer.write("\u0000\u0007 no HTTP\n\n");
                return;
              }
              if (wire == Wire.JSON && random.nextBoolean()) {
                peer.json(request, "\"result\":{\"status\":\"VALID\",\"state\":[7]}");
              } else {
                byte[] body = Samples.changed(random, Samples.bytes(random, 99).toBytes());
                peer.answer("200 OK", "x/y", random.nextBoolean() ? body : status);
              }
            }
          };
      try (Script server = new Script(answers);
          EngineClient client = client(server, wire)) {
        for (int round = 0; round < 20; round++) {
          for (Function<EngineClient, Object> read : READS) {
            try {
              read.apply(client);
            } catch (EthException typed) {
              assertTrue(typed.getMessage().length() < 2_000, typed.getMessage());
            }
          }
        }
      }
    }
  }

  @Test
  void aServerWithoutRestIsSpokenToInJson() throws Exception {
    Script.Serve json =
        peer -> {
          while (true) {
            String request = peer.request();
            if (request.startsWith("GET")) {
              peer.answer("200 OK", "text/html", "<html>".getBytes(StandardCharsets.UTF_8));
            } else if (request.contains("engine_newPayloadV1")) {
              peer.json(request, "\"result\":{\"status\":\"SYNCING\"}");
            } else if (request.contains("debug_executionWitnessByHash")) {
              peer.json(request, "\"result\":{\"state\":[\"0x01\"],\"codes\":[],\"headers\":[]}");
            } else {
              peer.json(request, "\"error\":{\"code\":-32601,\"message\":\"none\"}");
            }
          }
        };
    try (Script server = new Script(json);
        EngineClient client = EngineClient.connect(server.address())) {
      assertEquals(Wire.JSON, client.wire());
      assertEquals(new PayloadStatus.Syncing(), client.newPayload(payload()));
      try (Witness witness = client.witness(Hash.ZERO)) {
        assertEquals(Bytes.of("0x01"), Samples.bytes(witness.nodes().get(0)));
      }
      assertThrows(UnsupportedOperationException.class, () -> client.statelessInput(Hash.ZERO));
      RpcException none = assertThrows(RpcException.class, client::getClientVersion);
      assertEquals(-32601, none.code());
    }
  }

  @Test
  void olderVersionsAreAskedWhereTheNewestAreMissing() throws Exception {
    Script.Serve old =
        peer -> {
          while (true) {
            String request = peer.request();
            if (request.contains("engine_getPayloadV5")) {
              peer.json(request, "\"error\":{\"code\":-38005,\"message\":\"not of Osaka\"}");
            } else if (request.contains("engine_getPayloadV4")) {
              peer.json(request, "\"error\":{\"code\":-32603,\"message\":\"a fault of V4\"}");
            } else {
              peer.json(request, "\"error\":{\"code\":-32601,\"message\":\"none\"}");
            }
          }
        };
    try (Script server = new Script(old);
        EngineClient client = client(server, Wire.JSON)) {
      PayloadId id = PayloadId.of("0x0000000000000000");
      RpcException fault = assertThrows(RpcException.class, () -> client.getPayload(id));
      assertEquals("a fault of V4", fault.getMessage());
    }
  }

  @Test
  void problemsHaveTheCodesOfTheirTwins() throws Exception {
    problem("{\"type\":\"/engine-api/errors/internal\",\"detail\":\"a fault\"}", -32603);
    problem("{\"type\":\"/engine-api/errors/pruned-history\",\"detail\":\"a fault\"}", 4444);
    problem("{\"detail\":\"a fault\",\"more\":[1],\"type\":\"about:blank\"}", -32000);
    for (String other : List.of("no JSON", "{}", "[]", "{\"type\":7}")) {
      try (Script server = refusing(other);
          EngineClient client = client(server, Wire.SSZ)) {
        assertThrows(ProtocolException.class, () -> client.witness(Hash.ZERO));
      }
    }
  }

  private static Script refusing(String problem) throws Exception {
    return new Script(
        peer -> {
          peer.request();
          byte[] body = problem.getBytes(StandardCharsets.UTF_8);
          peer.answer("400 Bad Request", "application/problem+json", body);
          peer.stall();
        });
  }

  private static void problem(String problem, int code) throws Exception {
    try (Script server = refusing(problem);
        EngineClient client = client(server, Wire.SSZ)) {
      RpcException error = assertThrows(RpcException.class, () -> client.witness(Hash.ZERO));
      assertEquals(code, error.code());
      assertTrue(error.getMessage().contains("(400): a fault"), error.getMessage());
      assertEquals(problem, error.data());
    }
  }

  @Test
  void headersAsObjectsAndTheNewestFirstAreRead() throws Exception {
    List<Bytes> headers = List.of(header(8), header(7));
    List<String> objects = new ArrayList<>();
    for (int number : new int[] {8, 7}) {
      objects.add(headerJson(number, Keccak256.hash(header(number).toBytes())));
    }
    Script.Serve geth =
        peer -> {
          while (true) {
            String request = peer.request();
            if (request.contains("engine_newPayload")) {
              Bytes rlp = Bytes.of(Witness.of(List.of(), List.of(), headers).toRlp());
              peer.json(
                  request,
                  "\"result\":{\"witness\":\""
                      + rlp
                      + "\",\"status\":\"VALID\",\"latestValidHash\":\""
                      + Hash.ZERO
                      + "\"}");
            } else {
              String lists = "{\"state\":[],\"codes\":[],\"headers\":" + objects + ",\"keys\":[]}";
              peer.json(request, "\"result\":" + lists);
            }
          }
        };
    Witness expected = Witness.of(List.of(), List.of(), List.of(header(7), header(8)));
    try (Script server = new Script(geth);
        EngineClient client = client(server, Wire.JSON)) {
      assertEquals(expected, client.witness(Hash.ZERO));
      try (PayloadWithWitness answer = client.newPayloadWithWitness(payload())) {
        assertEquals(Optional.of(expected), answer.witness());
      }
    }
    objects.set(0, headerJson(8, Hash.ZERO));
    try (Script server = new Script(geth);
        EngineClient client = client(server, Wire.JSON)) {
      assertThrows(ProtocolException.class, () -> client.witness(Hash.ZERO));
    }
  }

  private static Bytes header(int number) {
    RlpWriter rlp = new RlpWriter().list().add(Hash.ZERO).add(Hash.ZERO).add(Address.ZERO);
    rlp.add(Hash.ZERO).add(Hash.ZERO).add(Hash.ZERO).add(new byte[256]);
    rlp.add(0).add(number).add(3).add(2).add(1).add(Bytes.of("0x6162"));
    return Bytes.of(rlp.add(Hash.ZERO).add(new byte[8]).add(7).end().toBytes());
  }

  private static String headerJson(int number, Hash hash) {
    String zero = "\"" + Hash.ZERO + "\"";
    return "{\"number\":\"0x%x\",\"parentHash\":%s,\"sha3Uncles\":%s,".formatted(number, zero, zero)
        + "\"miner\":\"%s\",\"stateRoot\":%s,".formatted("0x" + "00".repeat(20), zero)
        + "\"transactionsRoot\":%s,\"receiptsRoot\":%s,\"mixHash\":%s,".formatted(zero, zero, zero)
        + "\"logsBloom\":\"0x%s\",\"difficulty\":\"0x0\",".formatted("00".repeat(256))
        + "\"gasLimit\":\"0x3\",\"gasUsed\":\"0x2\",\"timestamp\":\"0x1\",\"extraData\":\"0x6162\","
        + "\"nonce\":\"0x0000000000000000\",\"baseFeePerGas\":\"0x7\",\"withdrawalsRoot\":null,"
        + "\"hash\":\"%s\"}".formatted(hash);
  }

  @Test
  void eachRequestHasATokenOfItsOwn() throws Exception {
    byte[] secret = new byte[32];
    JwtSecret key = JwtSecret.of(secret);
    String one = key.token(Instant.ofEpochSecond(1_700_000_000));
    // By openssl: HS256 of this head and claim with 32 zero bytes.
    assertEquals(
        "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJpYXQiOjE3MDAwMDAwMDB9."
            + "AV0neG6Q-D2P_lDW7gragYW8jJ_BPpKgG5A6auv-Ef4",
        one);
    assertNotEquals(one, key.token(Instant.ofEpochSecond(1_700_000_001)));
    for (Wire wire : Wire.values()) {
      Script.Serve answers =
          peer -> {
            while (true) {
              peer.request();
              peer.answer("401 Unauthorized", "text/plain", new byte[0]);
            }
          };
      try (Script server = new Script(answers);
          EngineClient client =
              EngineClient.at(server.address()).wire(wire).secret(secret).connect()) {
        TransportException refused =
            assertThrows(TransportException.class, client::getClientVersion);
        assertEquals(Kind.REFUSED, refused.kind());
        String head = server.requests.get(0);
        assertTrue(head.contains("Authorization: Bearer eyJhbGciOiJIUzI1NiIsInR5"), head);
      }
    }
  }

  @Test
  void aSecretsFileThatIsOfNoUseIsNamed(@TempDir Path folder) throws Exception {
    Path file = folder.resolve("jwt.hex");
    secret(file, "there is no such file");
    secret(folder, "no regular file");
    Files.writeString(file, "0x1234");
    secret(file, "got 4 characters");
    Files.writeString(file, "zz".repeat(32));
    secret(file, "not all of them are hex");
    Files.writeString(file, "00".repeat(5_000));
    secret(file, "got 10000 bytes");
    Files.writeString(file, " 0x" + "0A".repeat(32) + "\n");
    EngineClient.at("http://127.0.0.1:1").secretFile(file);
    Files.writeString(file, "0b".repeat(32));
    EngineClient.at("http://127.0.0.1:1").secretFile(file);
    assertThrows(
        IllegalArgumentException.class,
        () -> EngineClient.at("http://127.0.0.1:1").secret(new byte[31]));
  }

  private static void secret(Path file, String why) {
    IllegalArgumentException fault =
        assertThrows(
            IllegalArgumentException.class,
            () -> EngineClient.at("http://127.0.0.1:1").secretFile(file));
    assertTrue(fault.getMessage().contains(file.toString()), fault.getMessage());
    assertTrue(fault.getMessage().contains(why), fault.getMessage());
  }

  @Test
  void addressesAndWiresThatDoNotGoTogetherAreRefused() {
    assertThrows(IllegalArgumentException.class, () -> EngineClient.at("ftp://x"));
    assertThrows(
        IllegalArgumentException.class,
        () -> EngineClient.at("ws://127.0.0.1:1").wire(Wire.SSZ).connect());
    TransportException nobody =
        assertThrows(TransportException.class, () -> EngineClient.connect("unix:/nowhere/at/all"));
    assertEquals(Kind.CONNECT, nobody.kind());
  }
}
