package deponent.engine;

import deponent.engine.Items.Limits;
import deponent.eth.Bytes;
import deponent.eth.Hash;
import deponent.eth.JsonReader;
import deponent.eth.JsonWriter;
import deponent.eth.MalformedException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/**
 * A payload to validate, and what is sent beside it: the parameters of {@code engine_newPayloadV1}
 * to {@code V5}.
 *
 * @param payload the block
 * @param versionedHashes those of all blobs, in order of the transactions; none before Cancun
 * @param parentBeaconBlockRoot from Cancun on
 * @param executionRequests by EIP-7685, each a type and its items; from Prague on
 */
public record NewPayload(
    ExecutionPayload payload,
    List<Hash> versionedHashes,
    Optional<Hash> parentBeaconBlockRoot,
    Optional<List<Bytes>> executionRequests) {
  /** {@code MAX_EXECUTION_REQUESTS_PER_PAYLOAD}, and bytes of each. */
  private static final Limits REQUESTS = new Limits(1 << 8, 1 << 30);

  /** {@code MAX_BLOB_COMMITMENTS_PER_BLOCK}. */
  static final int HASHES = 4096;

  private static final Ssz.Field PAYLOAD = new Ssz.Field("payload", 0);
  private static final Ssz.Layout PARIS = Ssz.Layout.of("envelope", 4, PAYLOAD);
  private static final Ssz.Layout CANCUN = Ssz.Layout.of("envelope", 36, PAYLOAD);
  private static final Ssz.Layout PRAGUE =
      Ssz.Layout.of("envelope", 40, PAYLOAD, new Ssz.Field("execution_requests", 36));

  /**
   * Copies the lists.
   *
   * @throws IllegalArgumentException if something is beside the payload that its structure has not,
   *     or is missing that it has
   */
  public NewPayload {
    versionedHashes = List.copyOf(versionedHashes);
    executionRequests = executionRequests.map(List::copyOf);
    int version = payload.version();
    if (version < 3 == parentBeaconBlockRoot.isPresent()) {
      throw new IllegalArgumentException(
          "ExecutionPayloadV" + version + (version < 3 ? " with" : " without") + " a beacon root");
    }
    if (version < 3 && !versionedHashes.isEmpty()) {
      throw new IllegalArgumentException("ExecutionPayloadV" + version + " with versioned hashes");
    }
    if (executionRequests.isPresent() ? version < 3 : version > 3) {
      throw new IllegalArgumentException(
          "ExecutionPayloadV" + version + (version < 3 ? " with" : " without") + " requests");
    }
  }

  /** Of Paris or Shanghai. */
  public static NewPayload of(ExecutionPayload payload) {
    return new NewPayload(payload, List.of(), Optional.empty(), Optional.empty());
  }

  /** Of Cancun. */
  public static NewPayload of(
      ExecutionPayload payload, List<Hash> versionedHashes, Hash parentBeaconBlockRoot) {
    return new NewPayload(
        payload, versionedHashes, Optional.of(parentBeaconBlockRoot), Optional.empty());
  }

  /** Of Prague and later forks. */
  public static NewPayload of(
      ExecutionPayload payload,
      List<Hash> versionedHashes,
      Hash parentBeaconBlockRoot,
      List<Bytes> executionRequests) {
    return new NewPayload(
        payload,
        versionedHashes,
        Optional.of(parentBeaconBlockRoot),
        Optional.of(executionRequests));
  }

  /** The version of {@code engine_newPayload} that takes it, 1 to 5. */
  public int version() {
    int structure = payload.version();
    return structure + (structure > 3 || executionRequests.isPresent() ? 1 : 0);
  }

  /**
   * Reads the parameters of the call, a JSON array, and nothing behind it.
   *
   * @throws MalformedException if they are those of no version
   */
  public static NewPayload ofJson(byte[] params) {
    JsonReader json = new JsonReader(params);
    NewPayload read = read(json);
    json.finish();
    return read;
  }

  /**
   * Reads the next value, an array of the call's parameters.
   *
   * @throws MalformedException if they are those of no version
   */
  public static NewPayload read(JsonReader json) {
    json.beginArray();
    ExecutionPayload payload = ExecutionPayload.read(json);
    List<Hash> hashes = new ArrayList<>();
    Optional<Hash> root = Optional.empty();
    Optional<List<Bytes>> requests = Optional.empty();
    if (json.hasNext()) {
      json.beginArray();
      while (json.hasNext()) {
        PayloadJson.checkCount("expectedBlobVersionedHashes", hashes.size(), HASHES);
        hashes.add(json.nextHash());
      }
      json.endArray();
      root = Optional.of(json.nextHash());
    }
    if (json.hasNext()) {
      requests = Optional.of(PayloadJson.byteLists("executionRequests", json, REQUESTS.items()));
    }
    json.endArray();
    try {
      return new NewPayload(payload, hashes, root, requests);
    } catch (IllegalArgumentException misfit) {
      throw new MalformedException(misfit.getMessage(), misfit);
    }
  }

  /** Writes the parameters of the call, a JSON array. */
  public void write(JsonWriter json) {
    json.beginArray();
    writeAll(json);
    json.endArray();
  }

  /** Writes the elements of that array. */
  void writeAll(JsonWriter json) {
    payload.write(json);
    parentBeaconBlockRoot.ifPresent(
        root -> {
          json.beginArray();
          versionedHashes.forEach(json::value);
          json.endArray();
          json.value(root);
        });
    executionRequests.ifPresent(requests -> PayloadJson.byteLists(json, requests));
  }

  /** The parameters of the call, a JSON array. */
  public byte[] toJson() {
    JsonWriter json = new JsonWriter();
    write(json);
    return json.toBytes();
  }

  /**
   * Reads {@code ExecutionPayloadEnvelope} of execution-apis #793.
   *
   * @param versionedHashes those of the blobs, which the envelope does not have
   * @throws MalformedException if {@code ssz} is no envelope of {@code fork}
   */
  public static NewPayload ofSsz(Fork fork, byte[] ssz, List<Hash> versionedHashes) {
    boolean hasRoot = fork.payloadVersion() >= 3;
    Ssz.Layout layout = fork.hasRequests() ? PRAGUE : hasRoot ? CANCUN : PARIS;
    Ssz envelope = new Ssz(layout, Memory.of(ByteBuffer.wrap(ssz)));
    envelope.offset();
    ExecutionPayload payload =
        PayloadSsz.read(fork.payloadVersion(), envelope.part(0), PayloadSsz.REST);
    Optional<Hash> root = hasRoot ? Optional.of(envelope.hash()) : Optional.empty();
    Optional<List<Bytes>> requests = Optional.empty();
    if (fork.hasRequests()) {
      requests = Optional.of(Ssz.copiedByteLists("execution_requests", envelope.part(1), REQUESTS));
    }
    return new NewPayload(payload, versionedHashes, root, requests);
  }

  /**
   * {@code ExecutionPayloadEnvelope}, the body of {@code POST payloads}; versioned hashes are no
   * part of it.
   *
   * @throws IllegalStateException if extra data is too long, or all is longer than an array
   */
  public byte[] toSsz() {
    List<Bytes> requests = executionRequests.orElse(List.of());
    Ssz.Layout layout =
        executionRequests.isPresent() ? PRAGUE : parentBeaconBlockRoot.isPresent() ? CANCUN : PARIS;
    long payloadBytes = PayloadSsz.bytes(payload);
    ByteBuffer out =
        Witness.buffer(layout.fixedBytes() + payloadBytes + PayloadSsz.listBytes(requests))
            .order(ByteOrder.LITTLE_ENDIAN);
    out.putInt(layout.fixedBytes());
    parentBeaconBlockRoot.ifPresent(root -> out.put(root.toBytes()));
    if (executionRequests.isPresent()) {
      out.putInt(layout.fixedBytes() + (int) payloadBytes);
    }
    PayloadSsz.write(payload, out);
    PayloadSsz.putList(requests, out);
    return out.array();
  }
}
