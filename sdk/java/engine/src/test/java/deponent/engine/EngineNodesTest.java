package deponent.engine;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import deponent.eth.Address;
import deponent.eth.BlobSidecar;
import deponent.eth.Bytes;
import deponent.eth.Hash;
import deponent.eth.JsonReader;
import deponent.eth.ProtocolException;
import deponent.eth.RpcException;
import deponent.eth.SignedTransaction;
import deponent.eth.Transaction;
import deponent.eth.TransportException;
import deponent.eth.TransportException.Kind;
import deponent.eth.Wei;
import deponent.rpc.Request;
import deponent.sets.Node;
import deponent.wallet.Blobs;
import deponent.wallet.PrivateKey;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Optional;
import java.util.function.UnaryOperator;
import org.junit.jupiter.api.Test;

/** The client with nodes: ours over every wire, and geth where it is there. */
class EngineNodesTest {
  static final Duration LONG = Duration.ofSeconds(300);
  private static final PrivateKey KEY = PrivateKey.of("0x" + "45".repeat(32));
  private static final Hash RANDAO = Hash.of("0x" + "03".repeat(32));
  private static final Hash BEACON_ROOT = Hash.of("0x" + "06".repeat(32));
  private static final Address RECIPIENT = Address.of("0x" + "04".repeat(20));

  /** A contract of the genesis, which stores 1 in slot 0. */
  private static final Address CONTRACT = Address.of("0x00000000000000000000000000000000C0DE0001");

  /** The times of the forks of the genesis, and the first one in each. */
  private static final List<Fork> FORKS =
      List.of(Fork.PARIS, Fork.SHANGHAI, Fork.CANCUN, Fork.PRAGUE, Fork.OSAKA, Fork.AMSTERDAM);

  private static String genesis() throws IOException {
    String text = Files.readString(Samples.root().resolve("crates/node/tests/fuzz/genesis.json"));
    String alloc = "\"alloc\": {";
    assertTrue(text.contains(alloc));
    return text.replace(
        alloc, alloc + "\"" + KEY.address() + "\": {\"balance\": \"0xffffffffffffffffffff\"},");
  }

  /** In one fork, by default Osaka, from the start. */
  static String genesisOfOsaka() throws IOException {
    return genesis()
        .replaceAll("\"(shanghai|cancun|prague|osaka)Time\": [0-9]+", "\"$1Time\": 0")
        .replaceAll("\"amsterdamTime\": [0-9]+,?", "");
  }

  static PayloadAttributes attributes(Fork fork, long time) {
    PayloadAttributes attributes = PayloadAttributes.of(time, RANDAO, RECIPIENT);
    if (fork == Fork.PARIS) {
      return attributes;
    }
    Address to = Address.of("0x" + "05".repeat(20));
    attributes = attributes.withdrawals(List.of(new Withdrawal(0, 1, to, 2)));
    if (fork == Fork.SHANGHAI) {
      return attributes;
    }
    attributes = attributes.parentBeaconBlockRoot(BEACON_ROOT);
    return fork == Fork.AMSTERDAM ? attributes.slot(time, 50_000_000) : attributes;
  }

  private static List<UnaryOperator<EngineClient.Builder>> wires() {
    List<UnaryOperator<EngineClient.Builder>> wires = new ArrayList<>();
    for (Wire wire : Wire.values()) {
      wires.add(builder -> builder.wire(wire));
    }
    return wires;
  }

  /** A client for each wire on the port, over a WebSocket, and on the socket. */
  private static List<EngineClient> clients(Node node) {
    List<EngineClient> clients = new ArrayList<>();
    for (UnaryOperator<EngineClient.Builder> wire : wires()) {
      clients.add(wire.apply(at(node, node.engine)).connect());
      clients.add(wire.apply(at(node, node.socket)).connect());
    }
    clients.add(at(node, Node.webSocket(node.engine)).connect());
    return clients;
  }

  static EngineClient.Builder at(Node node, String address) {
    return EngineClient.at(address).secretFile(node.secret).timeout(LONG);
  }

  static Hash head(EngineClient client) {
    return client
        .jsonRpc()
        .request(
            Request.of(
                "eth_getBlockByNumber",
                json -> json.value("latest").value(false),
                json -> Hash.of(member(json, "hash"))));
  }

  private static String member(JsonReader json, String name) {
    String found = "";
    json.beginObject();
    while (json.hasNext()) {
      if (json.nextName().equals(name)) {
        found = json.nextString();
      } else {
        json.skipValue();
      }
    }
    json.endObject();
    return found;
  }

  private static Hash stateRoot(EngineClient client, Hash block) {
    return client
        .jsonRpc()
        .request(
            Request.of(
                "eth_getBlockByHash",
                json -> json.value(block).value(false),
                json -> Hash.of(member(json, "stateRoot"))));
  }

  private static Hash send(EngineClient client, Bytes transaction) {
    return client
        .jsonRpc()
        .request(
            Request.of(
                "eth_sendRawTransaction", json -> json.value(transaction), JsonReader::nextHash));
  }

  private static SignedTransaction call(long nonce) {
    return KEY.sign(
        Transaction.to(CONTRACT)
            .chainId(1337)
            .nonce(nonce)
            .gasLimit(100_000)
            .fees(Wei.gwei("1"), Wei.of(1))
            .build());
  }

  /** Builds a block on the head. */
  static NewPayload build(EngineClient client, Hash parent, PayloadAttributes wanted) {
    ForkchoiceUpdated begun = client.forkchoiceUpdated(ForkchoiceState.of(parent), wanted);
    assertEquals(new PayloadStatus.Valid(parent), begun.status());
    BuiltPayload built = client.getPayload(begun.payloadId().orElseThrow());
    assertEquals(wanted.version() >= 3, built.blobs().isPresent());
    return built.toNewPayload(BEACON_ROOT);
  }

  /** Builds blocks on the head until one has the pool's transactions; a build takes its time. */
  private static NewPayload buildAll(EngineClient client, Hash parent, int transactions)
      throws InterruptedException {
    for (long time = 1; ; time++) {
      NewPayload payload = build(client, parent, attributes(Fork.OSAKA, time));
      if (payload.payload().transactions().size() == transactions) {
        return payload;
      }
      assertTrue(time < 10_000, "the pool's transactions are in no payload");
      Thread.sleep(10);
    }
  }

  @Test
  void theForksFollowFromTheFieldsOverEveryWire() throws Exception {
    for (int over = 0; over < 2 * wires().size() + 1; over++) {
      try (Node node = Node.ours(genesis())) {
        if (node == null) {
          return;
        }
        List<EngineClient> clients = clients(node);
        EngineClient client = clients.get(over);
        Hash parent = head(client);
        for (Fork fork : FORKS) {
          NewPayload payload =
              build(client, parent, attributes(fork, 10L * FORKS.indexOf(fork) + 1));
          assertEquals(fork.payloadVersion(), payload.payload().version());
          assertEquals(fork.hasRequests(), payload.executionRequests().isPresent());
          Hash hash = payload.payload().blockHash();
          PayloadStatus valid = new PayloadStatus.Valid(hash);
          try (PayloadWithWitness answer = client.newPayloadWithWitness(payload)) {
            assertEquals(valid, answer.status());
            answer.witness().orElseThrow().verify(stateRoot(client, parent));
          }
          assertEquals(valid, client.newPayload(payload));
          ForkchoiceState state = new ForkchoiceState(hash, parent, parent);
          assertEquals(
              new ForkchoiceUpdated(valid, Optional.empty()),
              client.forkchoiceUpdatedAsync(state, null).get());
          bodies(client, fork, payload, FORKS.indexOf(fork) + 1);
          parent = hash;
        }
        clients.forEach(EngineClient::close);
      }
    }
  }

  private static void bodies(EngineClient client, Fork fork, NewPayload payload, long number) {
    PayloadBody body =
        new PayloadBody(
            payload.payload().transactions(),
            fork == Fork.PARIS ? Optional.empty() : Optional.of(payload.payload().withdrawals()),
            fork == Fork.AMSTERDAM
                ? Optional.of(payload.payload().blockAccessList())
                : Optional.empty());
    List<Hash> hashes = List.of(payload.payload().blockHash(), Hash.ZERO);
    assertEquals(List.of(Optional.of(body), Optional.empty()), client.payloadBodies(fork, hashes));
    assertEquals(List.of(Optional.of(body)), client.payloadBodies(fork, number, 3));
  }

  @Test
  void aPayloadHasTheSameAnswerOverEveryWire() throws Exception {
    try (Node node = Node.ours(genesisOfOsaka())) {
      if (node == null) {
        return;
      }
      List<EngineClient> clients = clients(node);
      EngineClient first = clients.get(0);
      Hash parent = head(first);
      for (int nonce = 0; nonce < 5; nonce++) {
        send(first, call(nonce).encode());
      }
      NewPayload payload = buildAll(first, parent, 5);
      Hash hash = payload.payload().blockHash();
      Hash root = stateRoot(first, parent);
      Witness expected = first.newPayloadWithWitness(payload).witness().orElseThrow();
      expected.verify(root);
      assertTrue(expected.covers(root, CONTRACT, Hash.ZERO));
      List<Bytes> keys = new ArrayList<>();
      for (EngineClient client : clients) {
        answers(client, payload, expected, keys);
        try (Witness later = client.witness(hash)) {
          assertEquals(expected, later);
        } catch (RpcException none) {
          // The Engine API's port has no methods of the debug namespace.
          assertEquals(-32601, none.code());
          assertEquals(Wire.JSON, client.wire());
        }
        if (client.wire() != Wire.JSON) {
          StatelessInput input = client.statelessInput(hash);
          assertEquals(payload, input.request());
          assertEquals(expected, input.witness());
          assertEquals(1337, input.chainId());
          assertEquals(Optional.empty(), input.publicKeys());
          assertEquals(Optional.of(keys), client.statelessInputWithPublicKeys(hash).publicKeys());
        }
      }
      for (String address : List.of(node.http, Node.webSocket(node.http))) {
        try (EngineClient open = EngineClient.connect(address)) {
          assertEquals(Wire.JSON, open.wire());
          assertEquals(expected, open.witness(hash));
        }
      }
      clients.forEach(EngineClient::close);
    }
  }

  /** Of a valid block, of one with another hash, and of an unknown head. */
  private static void answers(
      EngineClient client, NewPayload payload, Witness expected, List<Bytes> keys) {
    Hash hash = payload.payload().blockHash();
    for (int round = 0; round < 2; round++) {
      try (PayloadWithWitness answer = client.newPayloadWithWitness(payload)) {
        assertEquals(new PayloadStatus.Valid(hash), answer.status());
        assertEquals(Optional.of(expected), answer.witness());
        boolean isJson = client.wire() == Wire.JSON;
        assertEquals(isJson ? 0 : 5, answer.publicKeys().size());
        assertEquals(!isJson, answer.timings().isPresent());
        if (!isJson && keys.isEmpty()) {
          keys.addAll(answer.publicKeys());
        }
        assertTrue(isJson || keys.equals(answer.publicKeys()));
      }
    }
    NewPayload misnamed = changed(payload, hash, Hash.of("0x" + "08".repeat(32)));
    PayloadStatus.Invalid invalid =
        assertInstanceOf(PayloadStatus.Invalid.class, client.newPayload(misnamed));
    assertTrue(invalid.validationError().isPresent());
    try (PayloadWithWitness none = client.newPayloadWithWitness(misnamed)) {
      assertEquals(Optional.empty(), none.witness());
    }
    ForkchoiceState unknown = ForkchoiceState.of(Hash.of("0x" + "09".repeat(32)));
    assertEquals(
        new ForkchoiceUpdated(new PayloadStatus.Syncing(), Optional.empty()),
        client.forkchoiceUpdated(unknown, null));
  }

  /** With another text for a hash in its JSON. */
  private static NewPayload changed(NewPayload payload, Hash from, Hash to) {
    String json = new String(payload.toJson(), StandardCharsets.UTF_8);
    return NewPayload.ofJson(
        json.replace(from.toString(), to.toString()).getBytes(StandardCharsets.UTF_8));
  }

  @Test
  void errorsSayWhatTheServerSaid() throws Exception {
    try (Node node = Node.ours(genesisOfOsaka())) {
      if (node == null) {
        return;
      }
      List<EngineClient> clients = clients(node);
      Hash genesis = head(clients.get(0));
      NewPayload payload = build(clients.get(0), genesis, attributes(Fork.OSAKA, 1));
      Hash hash = payload.payload().blockHash();
      assertInstanceOf(PayloadStatus.Valid.class, clients.get(0).newPayload(payload));
      for (EngineClient client : clients) {
        ForkchoiceState wrong =
            new ForkchoiceState(hash, Hash.of("0x" + "01".repeat(32)), Hash.ZERO);
        code(-38002, () -> client.forkchoiceUpdated(wrong, null));
        code(-38001, () -> client.getPayload(PayloadId.of("0x0707070707070707")));
        NewPayload empty =
            NewPayload.of(payload.payload(), List.of(), BEACON_ROOT, List.of(Bytes.of("0x00")));
        code(-32602, () -> client.newPayload(empty));
        List<Hash> many = Collections.nCopies(1_025, Hash.ZERO);
        code(-38004, () -> client.payloadBodies(Fork.OSAKA, many));
        if (client.wire() != Wire.JSON) {
          code(-32000, () -> client.witness(Hash.of("0x" + "05".repeat(32))));
        }
        code(
            -38003,
            () -> client.forkchoiceUpdated(ForkchoiceState.of(hash), attributes(Fork.OSAKA, 1)));
      }
      clients.forEach(EngineClient::close);
    }
  }

  static void code(int code, org.junit.jupiter.api.function.Executable call) {
    RpcException error = assertThrows(RpcException.class, call);
    assertEquals(code, error.code(), error.getMessage());
  }

  @Test
  void aWrongTokenIsRefusedOverEveryWire() throws Exception {
    try (Node node = Node.ours(genesisOfOsaka())) {
      if (node == null) {
        return;
      }
      for (boolean none : new boolean[] {true, false}) {
        for (String address : List.of(node.engine, Node.webSocket(node.engine))) {
          refused(builder(address, none)::connect);
        }
        for (UnaryOperator<EngineClient.Builder> wire : wires()) {
          try (EngineClient client = wire.apply(builder(node.engine, none)).connect()) {
            refused(client::getClientVersion);
            refused(() -> client.forkchoiceUpdated(ForkchoiceState.of(Hash.ZERO), null));
          }
        }
      }
    }
  }

  private static EngineClient.Builder builder(String address, boolean none) {
    EngineClient.Builder builder = EngineClient.at(address).timeout(LONG);
    return none ? builder : builder.secret(new byte[32]);
  }

  private static void refused(org.junit.jupiter.api.function.Executable call) {
    TransportException refused = assertThrows(TransportException.class, call);
    assertEquals(Kind.REFUSED, refused.kind(), refused.getMessage());
  }

  @Test
  void theBestWireIsTheFastestThatThereIs() throws Exception {
    try (Node node = Node.ours(genesisOfOsaka())) {
      if (node == null) {
        return;
      }
      for (String address : List.of(node.engine, node.socket)) {
        try (EngineClient client = at(node, address).connect()) {
          assertEquals(Wire.SSZ, client.wire());
          Capabilities capabilities = client.exchangeCapabilities(List.of());
          assertEquals(FORKS.stream().map(Fork::header).toList(), capabilities.forks());
          assertTrue(capabilities.endpoints().contains("payloads/witness"));
          assertEquals(32, capabilities.limits().get("bodies.max_count"));
        }
      }
      List<ClientVersion> known = null;
      for (EngineClient client : clients(node)) {
        List<ClientVersion> versions = client.getClientVersion();
        assertEquals("DP", versions.get(0).code());
        assertTrue(known == null || known.equals(versions));
        known = versions;
        List<String> ours = List.of("engine_newPayloadV4");
        if (client.wire() == Wire.JSON) {
          List<String> methods = client.exchangeCapabilities(ours).endpoints();
          assertTrue(methods.contains("engine_newPayloadWithWitnessV4"));
        }
        client.close();
      }
    }
  }

  @Test
  void blobsOfThePoolAreTheSameOverEveryWire() throws Exception {
    BlobSidecar sidecar = Blobs.sidecar("some blobs ".repeat(20_000).getBytes());
    Hash unknown = Hash.of("0x01" + "22".repeat(31));
    try (Node node = Node.ours(genesisOfOsaka())) {
      if (node == null) {
        return;
      }
      List<EngineClient> clients = clients(node);
      Transaction transaction =
          Transaction.to(CONTRACT)
              .chainId(1337)
              .nonce(0)
              .gasLimit(100_000)
              .fees(Wei.gwei("1"), Wei.of(1))
              .blobs(sidecar.versionedHashes(), Wei.gwei("1"))
              .build();
      send(clients.get(0), sidecar.encode(KEY.sign(transaction)));
      List<Hash> hashes = new ArrayList<>(sidecar.versionedHashes());
      assertEquals(2, hashes.size());
      List<Optional<BlobAndProofs>> blobs = new ArrayList<>();
      for (int blob = 0; blob < 2; blob++) {
        List<Bytes> proofs = sidecar.cellProofs().subList(128 * blob, 128 * blob + 128);
        blobs.add(Optional.of(new BlobAndProofs(sidecar.blobs().get(blob), proofs)));
      }
      byte[] indices = new byte[16];
      indices[0] = 0b101;
      indices[15] = (byte) 0x80;
      for (EngineClient client : clients) {
        assertEquals(Optional.of(blobs), client.getBlobs(2, hashes));
        assertEquals(Optional.of(blobs), client.getBlobs(3, hashes));
        List<Hash> more = List.of(unknown, hashes.get(1));
        assertEquals(Optional.empty(), client.getBlobs(2, more));
        assertEquals(
            Optional.of(List.of(Optional.empty(), blobs.get(1))), client.getBlobs(3, more));
        code(-38005, () -> client.getBlobs(1, hashes));
        List<Optional<BlobCells>> cells =
            client.getBlobCells(more, Bytes.of(indices)).orElseThrow();
        assertEquals(Optional.empty(), cells.get(0));
        cells(cells.get(1).orElseThrow(), sidecar);
      }
      NewPayload payload = buildAll(clients.get(1), head(clients.get(0)), 1);
      assertEquals(hashes, payload.versionedHashes());
      for (EngineClient client : clients) {
        assertInstanceOf(PayloadStatus.Valid.class, client.newPayload(payload));
        client.close();
      }
    }
  }

  /** The cells 0, 2 and 127 of the second blob: those of the first half are its bytes. */
  private static void cells(BlobCells found, BlobSidecar sidecar) {
    Bytes blob = sidecar.blobs().get(1);
    assertEquals(3, found.cells().size());
    assertEquals(blob.slice(0, 2_048), found.cells().get(0).orElseThrow());
    assertEquals(blob.slice(4_096, 6_144), found.cells().get(1).orElseThrow());
    List<Bytes> proofs = new ArrayList<>();
    for (int cell : new int[] {0, 2, 127}) {
      proofs.add(sidecar.cellProofs().get(128 + cell));
    }
    assertEquals(proofs.stream().map(Optional::of).toList(), found.proofs());
  }

  @Test
  void gethAnswersOverHttpAWebSocketAndItsSocket() throws Exception {
    String genesis = Files.readString(Samples.root().resolve("docs/genesis.json"));
    try (Node node = Node.geth(genesis)) {
      if (node == null) {
        return;
      }
      List<EngineClient> clients =
          List.of(
              at(node, node.engine).connect(),
              at(node, Node.webSocket(node.engine)).connect(),
              at(node, node.socket).connect());
      Hash parent = head(clients.get(0));
      long time = 100;
      for (EngineClient client : clients) {
        assertEquals(Wire.JSON, client.wire());
        assertEquals("GE", client.getClientVersion().get(0).code());
        List<String> methods =
            client.exchangeCapabilities(List.of("engine_newPayloadV4")).endpoints();
        assertTrue(methods.contains("engine_newPayloadV4"));
        NewPayload payload = build(client, parent, attributes(Fork.OSAKA, time++));
        Hash hash = payload.payload().blockHash();
        try (PayloadWithWitness answer = client.newPayloadWithWitness(payload)) {
          assertEquals(new PayloadStatus.Valid(hash), answer.status());
          answer.witness().orElseThrow().verify(stateRoot(client, parent));
        }
        assertEquals(new PayloadStatus.Valid(hash), client.newPayload(payload));
        ForkchoiceState state = ForkchoiceState.of(hash);
        assertEquals(new PayloadStatus.Valid(hash), client.forkchoiceUpdated(state, null).status());
        assertThrows(UnsupportedOperationException.class, () -> client.statelessInput(hash));
        code(-38001, () -> client.getPayload(PayloadId.of("0x0307070707070707")));
        parent = hash;
        client.close();
      }
      try (EngineClient open = EngineClient.connect(node.http)) {
        try (Witness witness = open.witness(parent)) {
          assertTrue(witness.nodes().size() > 0);
        } catch (RpcException | ProtocolException none) {
          System.out.println("geth: " + none);
        }
      }
    }
  }
}
