package deponent.engine;

import deponent.engine.Items.Limits;
import deponent.eth.Bytes;
import deponent.eth.Hash;
import deponent.eth.MalformedException;
import deponent.eth.Wei;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/** Answers of the REST Engine API in SSZ (execution-apis #793 and #885). */
final class AnswersSsz {
  private static final int POINT = BlobsBundle.POINT_BYTES;
  private static final int BLOB = BlobsBundle.BLOB_BYTES;
  private static final int KEY_BYTES = 65;

  /** {@code MAX_BLOB_COMMITMENTS_PER_BLOCK}. */
  private static final int COMMITMENTS = 1 << 12;

  private static final Limits ENTRIES = new Limits(AnswersJson.ENTRIES, Integer.MAX_VALUE);
  private static final Limits REQUESTS = new Limits(1 << 8, 1 << 30);

  private static final Ssz.Layout STATUS =
      layout("payload_status", 9, "latest_valid_hash", 1, "validation_error", 5);
  private static final Ssz.Layout WITHOUT_KEYS =
      layout("payload_status_with_witness", 8, "payload_status", 0, "witness", 4);
  private static final Ssz.Layout WITH_KEYS =
      layout(
          "payload_status_with_witness", 12, "payload_status", 0, "witness", 4, "public_keys", 8);
  private static final Ssz.Layout UPDATED =
      layout("forkchoice_update_response", 8, "payload_status", 0, "payload_id", 4);
  private static final List<Ssz.Layout> BUILT =
      List.of(
          layout("built_payload", 36, "payload", 0),
          layout("built_payload", 41, "payload", 0, "blobs_bundle", 36),
          layout("built_payload", 45, "payload", 0, "blobs_bundle", 36, "execution_requests", 40));
  private static final Ssz.Layout BUNDLE =
      layout("blobs_bundle", 12, "commitments", 0, "proofs", 4, "blobs", 8);
  private static final Ssz.Layout RESPONSE = layout("response", 4, "entries", 0);
  private static final Ssz.Layout ENTRY = layout("entries", 5, "content", 1);
  private static final Ssz.Layout FIXED_ENTRY = layout("entries", 1 + BLOB + POINT);
  private static final List<Ssz.Layout> BODIES =
      List.of(
          layout("body", 4, "transactions", 0),
          layout("body", 8, "transactions", 0, "withdrawals", 4),
          layout("body", 12, "transactions", 0, "withdrawals", 4, "block_access_list", 8));
  private static final Ssz.Layout BLOB_ENTRY = layout("content", BLOB + 4, "proofs", BLOB);
  private static final Ssz.Layout CELLS = layout("content", 8, "cells", 0, "proofs", 4);

  private AnswersSsz() {}

  private static Ssz.Layout layout(String name, int fixedBytes, Object... fields) {
    Ssz.Field[] named = new Ssz.Field[fields.length / 2];
    for (int index = 0; index < named.length; index++) {
      named[index] = new Ssz.Field((String) fields[2 * index], (Integer) fields[2 * index + 1]);
    }
    return Ssz.Layout.of(name, fixedBytes, named);
  }

  /** The item of a list of one at most, whose length varies; null where there is none. */
  private static @Nullable Memory optional(String field, Memory list) {
    if (list.bytes() == 0) {
      return null;
    }
    if (list.bytes() < 4 || list.getInt(0) != 4) {
      throw Ssz.wrong(field, "no list of one item");
    }
    return list.part(4, list.bytes());
  }

  private static @Nullable Bytes optional(String field, Memory list, int itemBytes) {
    return Ssz.count(field, list, itemBytes, 1) == 0 ? null : Ssz.copied(list);
  }

  private static boolean bool(String field, int value) {
    if (value != 0 && value != 1) {
      throw Ssz.wrong(field, "no boolean: " + value);
    }
    return value == 1;
  }

  static PayloadStatus status(Memory input) {
    Ssz ssz = new Ssz(STATUS, input);
    int status = ssz.bytes(1)[0];
    String[] names = {"VALID", "INVALID", "SYNCING", "ACCEPTED"};
    if (status < 0 || status >= names.length) {
      throw Ssz.wrong("status", "there is no " + status);
    }
    Bytes hash = optional("latest_valid_hash", ssz.part(0), Hash.SIZE);
    Memory error = optional("validation_error", ssz.part(1));
    return AnswersJson.status(
        names[status],
        hash == null ? null : Hash.of(hash.toBytes()),
        error == null ? null : text(error));
  }

  private static String text(Memory bytes) {
    Ssz.checkBytes("validation_error", bytes.bytes(), AnswersJson.ERROR_CHARACTERS);
    try {
      ByteBuffer text = bytes.view(0, (int) bytes.bytes());
      return StandardCharsets.UTF_8.newDecoder().decode(text).toString();
    } catch (CharacterCodingException no) {
      throw new MalformedException("validation_error: no UTF-8", no);
    }
  }

  /** Reads either form, told apart by the first offset: 12, or 8 where there are no keys. */
  static PayloadWithWitness withWitness(Memory input, Optional<Timings> timings) {
    boolean hasNoKeys = input.bytes() >= 4 && input.getInt(0) == WITHOUT_KEYS.fixedBytes();
    Ssz ssz = new Ssz(hasNoKeys ? WITHOUT_KEYS : WITH_KEYS, input);
    PayloadStatus status = status(ssz.part(0));
    Memory witness = optional("witness", ssz.part(1));
    List<Bytes> keys = fixed("public_keys", ssz.part(2), KEY_BYTES, 1 << 20);
    return new PayloadWithWitness(
        status,
        witness == null ? Optional.empty() : Optional.of(Witness.ofSsz(witness)),
        keys,
        timings);
  }

  /** A list of items of one length, copied. */
  private static List<Bytes> fixed(String field, Memory list, int itemBytes, int most) {
    int count = Ssz.count(field, list, itemBytes, most);
    List<Bytes> items = new ArrayList<>(count);
    for (int index = 0; index < count; index++) {
      long start = (long) index * itemBytes;
      items.add(Ssz.copied(list.part(start, start + itemBytes)));
    }
    return items;
  }

  static ForkchoiceUpdated updated(Memory input) {
    Ssz ssz = new Ssz(UPDATED, input);
    Bytes id = optional("payload_id", ssz.part(1), PayloadId.SIZE);
    return new ForkchoiceUpdated(
        status(ssz.part(0)), Optional.ofNullable(id == null ? null : new PayloadId(id)));
  }

  static BuiltPayload built(Fork fork, Memory input) {
    boolean hasBlobs = fork.payloadVersion() >= 3;
    Ssz ssz = new Ssz(BUILT.get(fork.hasRequests() ? 2 : hasBlobs ? 1 : 0), input);
    ssz.offset();
    ExecutionPayload payload = PayloadSsz.read(fork.payloadVersion(), ssz.part(0), PayloadSsz.REST);
    Wei value = Wei.of(ssz.uint256());
    if (!hasBlobs) {
      return new BuiltPayload(payload, value, Optional.empty(), false, Optional.empty());
    }
    ssz.offset();
    BlobsBundle bundle = bundle(fork, ssz.part(1));
    Optional<List<Bytes>> requests = Optional.empty();
    if (fork.hasRequests()) {
      ssz.offset();
      requests = Optional.of(Ssz.copiedByteLists("execution_requests", ssz.part(2), REQUESTS));
    }
    boolean override = bool("should_override_builder", ssz.bytes(1)[0]);
    return new BuiltPayload(payload, value, Optional.of(bundle), override, requests);
  }

  private static BlobsBundle bundle(Fork fork, Memory input) {
    Ssz ssz = new Ssz(BUNDLE, input);
    int proofs = COMMITMENTS * (fork.compareTo(Fork.OSAKA) < 0 ? 1 : BlobsBundle.CELLS);
    return new BlobsBundle(
        fixed("commitments", ssz.part(0), POINT, COMMITMENTS),
        fixed("proofs", ssz.part(1), POINT, proofs),
        fixed("blobs", ssz.part(2), BLOB, COMMITMENTS));
  }

  /** Entries whose content, behind whether it is there, varies in length. */
  private static <T> List<Optional<T>> entries(Memory input, Function<Memory, T> read) {
    List<Optional<T>> entries = new ArrayList<>();
    for (ByteBuffer one : Ssz.byteLists("entries", new Ssz(RESPONSE, input).part(0), ENTRIES)) {
      Ssz ssz = new Ssz(ENTRY, Memory.of(one));
      boolean isThere = bool("available", ssz.bytes(1)[0]);
      T content = read.apply(ssz.part(0));
      entries.add(isThere ? Optional.of(content) : Optional.empty());
    }
    return entries;
  }

  static List<Optional<PayloadBody>> bodies(Fork fork, Memory input) {
    return entries(input, body -> body(fork, body));
  }

  private static PayloadBody body(Fork fork, Memory input) {
    int version = fork.payloadVersion();
    Ssz ssz = new Ssz(BODIES.get(version >= 4 ? 2 : version >= 2 ? 1 : 0), input);
    List<Bytes> transactions =
        Ssz.copiedByteLists("transactions", ssz.part(0), PayloadSsz.REST.transactions());
    Optional<List<Withdrawal>> withdrawals = Optional.empty();
    if (version >= 2) {
      withdrawals = Optional.of(PayloadSsz.withdrawals(ssz.part(1), PayloadSsz.REST.withdrawals()));
    }
    Optional<Bytes> accessList =
        version >= 4 ? Optional.of(Ssz.copied(ssz.part(2))) : Optional.empty();
    return new PayloadBody(transactions, withdrawals, accessList);
  }

  static List<Optional<BlobAndProofs>> blobs(int version, Memory input) {
    if (version > 1) {
      return entries(
          input,
          content -> {
            Ssz ssz = new Ssz(BLOB_ENTRY, content);
            Bytes blob = Bytes.of(ssz.bytes(BLOB));
            return new BlobAndProofs(blob, fixed("proofs", ssz.part(0), POINT, BlobsBundle.CELLS));
          });
    }
    List<Optional<BlobAndProofs>> entries = new ArrayList<>();
    Memory list = new Ssz(RESPONSE, input).part(0);
    int each = FIXED_ENTRY.fixedBytes();
    int count = Ssz.count("entries", list, each, AnswersJson.ENTRIES);
    for (int index = 0; index < count; index++) {
      Ssz ssz = new Ssz(FIXED_ENTRY, list.part((long) index * each, (index + 1L) * each));
      boolean isThere = bool("available", ssz.bytes(1)[0]);
      Bytes blob = Bytes.of(ssz.bytes(BLOB));
      Bytes proof = Bytes.of(ssz.bytes(POINT));
      BlobAndProofs found = new BlobAndProofs(blob, List.of(proof));
      entries.add(isThere ? Optional.of(found) : Optional.empty());
    }
    return entries;
  }

  /** Cells by index, of which those of {@code indices}, a bit each, are taken. */
  static List<Optional<BlobCells>> cells(byte[] indices, Memory input) {
    return entries(
        input,
        content -> {
          Ssz ssz = new Ssz(CELLS, content);
          return new BlobCells(
              wanted("cells", indices, ssz.part(0), BlobCells.CELL_BYTES),
              wanted("proofs", indices, ssz.part(1), POINT));
        });
  }

  private static List<Optional<Bytes>> wanted(
      String field, byte[] indices, Memory list, int itemBytes) {
    Items items = Ssz.byteLists(field, list, new Limits(BlobsBundle.CELLS, itemBytes));
    List<Optional<Bytes>> wanted = new ArrayList<>();
    for (int index = 0; index < items.size(); index++) {
      int length = items.bytes(index);
      if (length != 0 && length != itemBytes) {
        throw Ssz.wrong(field, "an item of " + length + " bytes where " + itemBytes + " are due");
      }
      if ((indices[index / 8] >> index % 8 & 1) == 1) {
        byte[] item = new byte[length];
        items.copyTo(index, item);
        wanted.add(length == 0 ? Optional.empty() : Optional.of(Bytes.of(item)));
      }
    }
    return wanted;
  }
}
