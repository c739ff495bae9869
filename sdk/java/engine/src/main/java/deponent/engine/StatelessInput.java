package deponent.engine;

import deponent.engine.Items.Limits;
import deponent.eth.Bytes;
import deponent.eth.MalformedException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/**
 * What a prover's guest takes, {@code StatelessInput} of EIP-8025: a payload, what the consensus
 * layer says of it, and its witness. Two forms are read and written, told apart by {@code
 * publicKeys}: today's has none.
 *
 * @param fork the payload's
 * @param request the payload, with all that its fork has beside it
 * @param witness a node has at most 2^10 bytes, a code 2^16, a header 2^10
 * @param chainId 64 bits without a sign
 * @param publicKeys the signers' keys of 65 bytes, one a transaction, of the form before v21.0.1;
 *     neither their number nor their content is checked
 */
public record StatelessInput(
    Fork fork,
    NewPayload request,
    Witness witness,
    long chainId,
    Optional<List<Bytes>> publicKeys) {
  private static final Limits NODES = new Limits(Integer.MAX_VALUE, 1 << 10);
  private static final Limits CODES = new Limits(Integer.MAX_VALUE, 1 << 16);
  private static final Limits HEADERS = new Limits(256, 1 << 10);

  private static final int KEY_BYTES = 65;

  /** Behind the fork's number, in both forms. */
  private static final int REVISION = 1;

  private static final int SCHEMA_BYTES = 2;

  private static final Ssz.Field REQUEST = new Ssz.Field("new_payload_request", 0);
  private static final Ssz.Field WITNESS = new Ssz.Field("witness", 4);
  private static final Ssz.Layout INPUT = Ssz.Layout.of("stateless_input", 16, REQUEST, WITNESS);
  private static final Ssz.Layout INPUT_WITH_KEYS =
      Ssz.Layout.of("stateless_input", 20, REQUEST, WITNESS, new Ssz.Field("public_keys", 16));

  /**
   * Copies the list.
   *
   * @throws IllegalArgumentException if the request is none of the fork, or something breaks a
   *     limit
   */
  public StatelessInput {
    publicKeys = publicKeys.map(List::copyOf);
    if (request.payload().version() != fork.payloadVersion()
        || request.executionRequests().isPresent() != fork.hasRequests()) {
      throw new IllegalArgumentException("the request has not the fields of " + fork);
    }
    if (request.versionedHashes().size() > NewPayload.HASHES) {
      throw new IllegalArgumentException("more than 4096 versioned hashes");
    }
    RequestsSsz.check(fork, request.executionRequests().orElse(List.of()));
    checkItems(witness.nodes(), NODES);
    checkItems(witness.codes(), CODES);
    checkItems(witness.headers(), HEADERS);
    for (Bytes key : publicKeys.orElse(List.of())) {
      if (key.size() != KEY_BYTES) {
        throw new IllegalArgumentException("a public key has 65 bytes, not " + key.size());
      }
    }
  }

  private static void checkItems(Items items, Limits limits) {
    if (items.size() > limits.items() || items.longest() > limits.itemBytes()) {
      throw new IllegalArgumentException(
          items.field() + ": at most " + limits.items() + " of " + limits.itemBytes() + " bytes");
    }
  }

  /**
   * Reads the schema's number and SSZ: the answer of {@code GET
   * /engine/v1/stateless-inputs/{blockHash}}. Bytes of the witness are not copied and must not
   * change.
   *
   * @throws MalformedException if that is no stateless input
   */
  public static StatelessInput ofSsz(byte[] input) {
    return ofSsz(ByteBuffer.wrap(input));
  }

  /**
   * Reads what {@code input} has left, as {@link #ofSsz(byte[])}. Its position stays.
   *
   * @throws MalformedException if that is no stateless input
   */
  public static StatelessInput ofSsz(ByteBuffer input) {
    return ofSsz(Memory.of(input));
  }

  static StatelessInput ofSsz(Memory in) {
    Fork fork = fork(in);
    Memory body = in.part(SCHEMA_BYTES, in.bytes());
    boolean hasKeys = body.bytes() > 0 && body.get(0) == INPUT_WITH_KEYS.fixedBytes();
    Ssz ssz = new Ssz(hasKeys ? INPUT_WITH_KEYS : INPUT, body);
    NewPayload request = RequestsSsz.read(fork, ssz.part(0));
    Witness witness = WitnessSsz.read(ssz.part(1), NODES, CODES, HEADERS);
    ssz.offset();
    ssz.offset();
    long chainId = ssz.uint64();
    Optional<List<Bytes>> keys = hasKeys ? Optional.of(keys(ssz.part(2))) : Optional.empty();
    return new StatelessInput(fork, request, witness, chainId, keys);
  }

  private static Fork fork(Memory in) {
    if (in.bytes() < SCHEMA_BYTES) {
      throw new MalformedException("schema_id: " + in.bytes() + " bytes where 2 are due");
    }
    for (Fork fork : Fork.values()) {
      if (in.get(0) == fork.schema() && in.get(1) == REVISION) {
        return fork;
      }
    }
    throw new MalformedException(
        "schema_id: there is no schema 0x%02x%02x".formatted(in.get(0), in.get(1)));
  }

  private static List<Bytes> keys(Memory list) {
    int count = Ssz.count("public_keys", list, KEY_BYTES, Integer.MAX_VALUE);
    List<Bytes> keys = new ArrayList<>(count);
    for (int index = 0; index < count; index++) {
      long start = (long) index * KEY_BYTES;
      keys.add(Ssz.copied(list.part(start, start + KEY_BYTES)));
    }
    return keys;
  }

  /**
   * The schema's number and SSZ.
   *
   * @throws IllegalStateException if extra data is too long, all is longer than an array may be, or
   *     the witness is closed
   */
  public byte[] toSsz() {
    Ssz.Layout layout = publicKeys.isPresent() ? INPUT_WITH_KEYS : INPUT;
    List<Bytes> keys = publicKeys.orElse(List.of());
    long requestBytes = RequestsSsz.bytes(fork, request);
    long witnessBytes = WitnessSsz.bytes(witness);
    long fixedBytes = layout.fixedBytes();
    long keysBytes = (long) KEY_BYTES * keys.size();
    ByteBuffer out =
        Witness.buffer(SCHEMA_BYTES + fixedBytes + requestBytes + witnessBytes + keysBytes)
            .order(ByteOrder.LITTLE_ENDIAN);
    out.put((byte) fork.schema()).put((byte) REVISION);
    out.putInt((int) fixedBytes).putInt((int) (fixedBytes + requestBytes)).putLong(chainId);
    if (publicKeys.isPresent()) {
      out.putInt((int) (fixedBytes + requestBytes + witnessBytes));
    }
    RequestsSsz.write(fork, request, out);
    WitnessSsz.write(witness, out);
    keys.forEach(key -> out.put(key.asBuffer()));
    return out.array();
  }
}
