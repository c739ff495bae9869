package deponent.engine;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import deponent.eth.Address;
import deponent.eth.Bytes;
import deponent.eth.Hash;
import deponent.eth.JsonReader;
import deponent.eth.JsonWriter;
import deponent.eth.MalformedException;
import deponent.eth.Wei;
import deponent.sets.Sets;
import java.io.IOException;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

class PayloadTest {
  private static byte[] randomBytes(Random random, int length) {
    byte[] bytes = new byte[length];
    random.nextBytes(bytes);
    return bytes;
  }

  private static Hash hash(Random random) {
    return Hash.of(randomBytes(random, 32));
  }

  private static Address address(Random random) {
    return Address.of(randomBytes(random, 20));
  }

  private static ExecutionPayload payload(Random random, int version) {
    ExecutionPayloadBuilder payload = ExecutionPayload.builder();
    payload.parentHash(hash(random)).feeRecipient(address(random)).stateRoot(hash(random));
    payload.receiptsRoot(hash(random)).logsBloom(Bytes.of(randomBytes(random, 256)));
    payload.prevRandao(hash(random)).blockNumber(random.nextLong()).gasLimit(random.nextLong());
    payload.gasUsed(random.nextLong(99)).timestamp(0).extraData(Samples.bytes(random, 32));
    payload.baseFeePerGas(Wei.of(new BigInteger(random.nextInt(257), random)));
    payload.blockHash(hash(random)).transactions(Samples.byteLists(random, 4, 300));
    List<Withdrawal> withdrawals = new ArrayList<>();
    for (int left = random.nextInt(4); left > 0; left--) {
      withdrawals.add(new Withdrawal(random.nextLong(), left, address(random), random.nextLong()));
    }
    if (version >= 2) {
      payload.withdrawals(withdrawals);
    }
    if (version >= 3) {
      payload.blobGasUsed(random.nextLong()).excessBlobGas(random.nextLong());
    }
    if (version >= 4) {
      payload.blockAccessList(Samples.bytes(random, 300)).slotNumber(random.nextLong());
    }
    ExecutionPayload built = payload.build();
    assertEquals(version, built.version());
    return built;
  }

  private static NewPayload request(Random random, Fork fork) {
    ExecutionPayload payload = payload(random, fork.payloadVersion());
    if (fork.payloadVersion() < 3) {
      return NewPayload.of(payload);
    }
    List<Hash> hashes = Stream.generate(() -> hash(random)).limit(random.nextInt(4)).toList();
    if (!fork.hasRequests()) {
      return NewPayload.of(payload, hashes, hash(random));
    }
    List<Bytes> requests = new ArrayList<>();
    int[] itemBytes = {192, 76, 116, 184, 68};
    for (int type = 0; type < (fork == Fork.AMSTERDAM ? 5 : 3); type++) {
      if (random.nextBoolean()) {
        byte[] request = randomBytes(random, 1 + itemBytes[type] * (1 + random.nextInt(2)));
        request[0] = (byte) type;
        requests.add(Bytes.of(request));
      }
    }
    return NewPayload.of(payload, hashes, hash(random), requests);
  }

  private static Fork fork(Random random) {
    return Fork.values()[random.nextInt(Fork.values().length)];
  }

  private static StatelessInput input(Random random) {
    Fork fork = fork(random);
    List<Bytes> keys = new ArrayList<>();
    for (int left = random.nextInt(3); left > 0; left--) {
      keys.add(Bytes.of(randomBytes(random, 65)));
    }
    return new StatelessInput(
        fork,
        request(random, fork),
        Samples.witness(random),
        random.nextLong(),
        random.nextBoolean() ? Optional.of(keys) : Optional.empty());
  }

  @Test
  void anyPayloadComesBackFromJsonAndSsz() {
    Random random = Sets.random();
    for (int round = 0; round < 400; round++) {
      Fork fork = fork(random);
      NewPayload request = request(random, fork);
      NewPayload fromJson = NewPayload.ofJson(request.toJson());
      assertEquals(request, fromJson);
      assertArrayEquals(request.toJson(), fromJson.toJson());
      byte[] ssz = request.toSsz();
      NewPayload fromSsz = NewPayload.ofSsz(fork, ssz, request.versionedHashes());
      assertEquals(request, fromSsz);
      assertArrayEquals(ssz, fromSsz.toSsz());
      int version = fork == Fork.AMSTERDAM ? 5 : fork.hasRequests() ? 4 : fork.payloadVersion();
      assertEquals(version, request.version());
    }
  }

  @Test
  void anyStatelessInputComesBack() {
    Random random = Sets.random();
    for (int round = 0; round < 400; round++) {
      StatelessInput input = input(random);
      byte[] ssz = input.toSsz();
      StatelessInput read = StatelessInput.ofSsz(ssz);
      assertEquals(input, read);
      assertArrayEquals(ssz, read.toSsz());
    }
  }

  /** The vectors of the crate {@code execution}, by eth-remerkleable. */
  @Test
  void statelessInputsOfAnotherEncoderAreWrittenAsTheyWere() throws IOException {
    int cases = 0;
    for (String line :
        Files.readAllLines(
            Samples.root().resolve("crates/execution/src/stateless/input/vectors.txt"))) {
      if (line.startsWith("#")) {
        continue;
      }
      String[] parts = line.split(" ");
      byte[] encoding = Bytes.of(parts[2]).toBytes();
      StatelessInput input = StatelessInput.ofSsz(encoding);
      assertArrayEquals(encoding, input.toSsz(), parts[0]);
      assertEquals(parts[0].contains("keys"), input.publicKeys().isPresent(), parts[0]);
      assertTrue(parts[0].startsWith(input.fork().name().toLowerCase()), parts[0]);
      if (parts[0].contains("published")) {
        assertEquals(1, input.chainId());
        assertEquals(1, input.request().payload().transactions().size());
      }
      NewPayload request = input.request();
      assertEquals(request, NewPayload.ofJson(request.toJson()), parts[0]);
      cases++;
    }
    assertEquals(15, cases);
  }

  @Test
  void publishedStatelessInputsHaveThePublishedWitness() {
    int blocks = 0;
    for (Map.Entry<String, Map<String, Object>> test :
        Sets.fixtures("blockchain_tests_zkevm", ".").entrySet()) {
      for (Map<String, Object> block : Samples.objects(test.getValue().get("blocks"))) {
        byte[] encoding = inTodaysSchema((String) block.get("statelessInputBytes"));
        StatelessInput input = StatelessInput.ofSsz(encoding);
        assertArrayEquals(encoding, input.toSsz(), test.getKey());
        Witness witness = Samples.witness(Samples.object(block.get("executionWitness")));
        assertEquals(witness, input.witness(), test.getKey());
        Map<String, Object> header = Samples.object(block.get("blockHeader"));
        ExecutionPayload payload = input.request().payload();
        assertEquals(header.get("hash"), payload.blockHash().toString());
        assertEquals(header.get("stateRoot"), payload.stateRoot().toString());
        blocks++;
      }
    }
    assertTrue(blocks == 0 || blocks == 198, blocks + " blocks");
  }

  /**
   * An input of tests-zkevm v0.3.3, which had no id of its schema, and requests as byte strings:
   * there are none in it, whose lists are added here.
   */
  private static byte[] inTodaysSchema(String hex) {
    ByteBuffer old = ByteBuffer.wrap(Bytes.of(hex).toBytes()).order(ByteOrder.LITTLE_ENDIAN);
    int witness = old.getInt(4);
    ByteBuffer input = ByteBuffer.allocate(2 + old.limit() + 20).order(ByteOrder.LITTLE_ENDIAN);
    old.putInt(4, witness + 20).putInt(16, old.getInt(16) + 20);
    input.put(new byte[] {0x15, 1}).put(old.array(), 0, witness);
    for (int type = 0; type < 5; type++) {
      input.putInt(20);
    }
    return input.put(old.array(), witness, old.limit() - witness).array();
  }

  @Test
  void changedBytesAreRefusedOrWrittenAsTheyAre() {
    Random random = Sets.random();
    for (int round = 0; round < 10_000; round++) {
      StatelessInput input = input(random);
      byte[] changed = Samples.changed(random, input.toSsz());
      try {
        assertArrayEquals(changed, StatelessInput.ofSsz(changed).toSsz());
      } catch (MalformedException refused) {
        assertTrue(refused.getMessage().length() < 1_000);
      }
      NewPayload request = input.request();
      byte[] envelope = Samples.changed(random, request.toSsz());
      try {
        NewPayload read = NewPayload.ofSsz(input.fork(), envelope, request.versionedHashes());
        assertArrayEquals(envelope, read.toSsz());
      } catch (MalformedException refused) {
        assertTrue(refused.getMessage().length() < 1_000);
      }
      byte[] json = Samples.changed(random, request.toJson());
      try {
        NewPayload read = NewPayload.ofJson(json);
        assertEquals(read, NewPayload.ofJson(read.toJson()));
      } catch (MalformedException refused) {
        assertTrue(refused.getMessage().length() < 1_000);
      }
    }
  }

  private static final String TSTORE =
      "osaka/blockchain_tests_engine/for_osaka/cancun/eip1153_tstore";

  /** Tests of a few calls each; the others of the set are like them. */
  @Test
  void publishedCallsAreWrittenAsTheyWere() {
    int calls = 0;
    for (Map<String, Object> test : Sets.fixtures("eest-engine-filled", TSTORE).values()) {
      for (Map<String, Object> call : Samples.objects(test.get("engineNewPayloads"))) {
        JsonWriter json = new JsonWriter();
        Samples.write(call.get("params"), json);
        NewPayload read = NewPayload.ofJson(json.toBytes());
        assertEquals(call.get("newPayloadVersion"), Integer.toString(read.version()));
        assertEquals(read, NewPayload.ofSsz(Fork.OSAKA, read.toSsz(), read.versionedHashes()));
        assertEquals(
            Sets.tree(new JsonReader(json.toBytes())), Sets.tree(new JsonReader(read.toJson())));
        calls++;
      }
    }
    assertTrue(calls == 0 || calls > 50, calls + " calls");
  }

  private static void refusedJson(String expected, String json) {
    MalformedException refused =
        assertThrows(
            MalformedException.class,
            () -> NewPayload.ofJson(json.getBytes(StandardCharsets.UTF_8)));
    assertTrue(refused.getMessage().contains(expected), refused.getMessage());
  }

  @Test
  void parametersAreThoseOfOneVersion() {
    Random random = new Random(1);
    String[] json = new String[5];
    for (Fork fork : List.of(Fork.PARIS, Fork.SHANGHAI, Fork.CANCUN, Fork.PRAGUE, Fork.AMSTERDAM)) {
      NewPayload request = request(random, fork);
      json[request.version() - 1] = new String(request.toJson(), StandardCharsets.UTF_8);
    }
    String root = "\"" + Hash.ZERO + "\"";
    refusedJson("V1 with a beacon root", json[0].replaceAll("]$", ",[]," + root + "]"));
    refusedJson("V2 with a beacon root", json[1].replaceAll("]$", ",[]," + root + "]"));
    refusedJson("V3 without a beacon root", "[" + payloadOf(json[2]) + "]");
    refusedJson("V4 without requests", json[4].replaceAll(",\\[[^\\[]*]]$", "]"));
    refusedJson(
        "excessBlobGas is missing",
        json[2].replaceAll("\"excessBlobGas\":\"\\w+\"", "\"excessBlobGas\":null"));
    refusedJson(
        "parentHash is missing",
        json[0].replace(
            "\"parentHash\"",
            "\"slotNumber\":null,\"withdrawals\":null,\"parentHash\":null},{\"\""));
    refusedJson("slotNumber is missing", json[4].replaceAll(",\"slotNumber\":\"\\w+\"", ""));
    refusedJson("member of no structure", json[0].replace("\"gasUsed\"", "\"gasUsed2\""));
    refusedJson("gasLimit is there twice", json[0].replace("\"gasUsed\"", "\"gasLimit\""));
    refusedJson(
        "more than 64 bits",
        json[0].replaceAll("\"gasUsed\":\"0x", "\"gasUsed\":\"0x10000000000000000"));
    refusedJson("256 bytes", json[0].replaceAll("\"logsBloom\":\"0x..", "\"logsBloom\":\"0x"));
    assertThrows(IllegalArgumentException.class, () -> ExecutionPayload.builder().build());
    assertThrows(
        IllegalArgumentException.class,
        () -> NewPayload.of(payload(random, 1), List.of(), Hash.ZERO));
  }

  private static String payloadOf(String params) {
    return params.substring(1, params.indexOf("},[") + 1);
  }

  @Test
  void whatHasNoPlaceInAnInputIsRefused() {
    Random random = new Random(2);
    NewPayload prague = request(random, Fork.PRAGUE);
    Witness empty = Witness.of(List.of(), List.of(), List.of());
    for (Fork fork : List.of(Fork.PARIS, Fork.CANCUN, Fork.AMSTERDAM)) {
      assertThrows(
          IllegalArgumentException.class,
          () -> new StatelessInput(fork, prague, empty, 1, Optional.empty()));
    }
    for (List<Bytes> requests :
        List.of(
            List.of(Bytes.EMPTY),
            List.of(Bytes.of("00")),
            List.of(Bytes.of("0001")),
            List.of(Bytes.of("03" + "00".repeat(184))),
            List.of(Bytes.of("ff" + "00".repeat(184))),
            Collections.nCopies(2, Bytes.of("01" + "00".repeat(76))))) {
      NewPayload request = NewPayload.of(prague.payload(), List.of(), Hash.ZERO, requests);
      assertThrows(
          IllegalArgumentException.class,
          () -> new StatelessInput(Fork.PRAGUE, request, empty, 1, Optional.empty()));
      assertEquals(request, NewPayload.ofJson(request.toJson()));
    }
    Witness large = Witness.of(List.of(Bytes.of(new byte[1025])), List.of(), List.of());
    assertThrows(
        IllegalArgumentException.class,
        () -> new StatelessInput(Fork.PRAGUE, prague, large, 1, Optional.empty()));
    assertThrows(
        IllegalArgumentException.class,
        () ->
            new StatelessInput(
                Fork.PRAGUE, prague, empty, 1, Optional.of(List.of(Bytes.of(new byte[64])))));
    for (String schema : List.of("", "15", "1502", "0d01", "1601", "1501")) {
      assertThrows(
          MalformedException.class, () -> StatelessInput.ofSsz(Bytes.of(schema).toBytes()));
    }
  }
}
