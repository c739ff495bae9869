package deponent.engine;

import deponent.eth.Bytes;
import deponent.eth.Hash;
import deponent.eth.JsonReader;
import deponent.eth.JsonReader.Names;
import deponent.eth.JsonWriter;
import deponent.eth.MalformedException;
import deponent.eth.Wei;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/** Answers of the Engine API in JSON. Members come in any order, unknown ones are ignored. */
final class AnswersJson {
  /** Characters of a validation error. */
  static final int ERROR_CHARACTERS = 1_024;

  /** Bodies and blobs in an answer. */
  static final int ENTRIES = 1_024;

  private static final Names STATUS =
      Names.of("status", "latestValidHash", "validationError", "witness");
  private static final Names UPDATED = Names.of("payloadStatus", "payloadId");
  private static final Names BUILT =
      Names.of(
          "executionPayload",
          "blockValue",
          "blobsBundle",
          "shouldOverrideBuilder",
          "executionRequests");
  private static final Names BUNDLE = Names.of("commitments", "proofs", "blobs");
  private static final Names BODY = Names.of("transactions", "withdrawals", "blockAccessList");
  private static final Names BLOB = Names.of("blob", "proof", "proofs");
  private static final Names CELLS = Names.of("blob_cells", "proofs");
  private static final Names VERSION = Names.of("code", "name", "version", "commit");
  private static final Names CAPABILITIES =
      Names.of("supported_forks", "fork_scoped_endpoints", "unscoped_endpoints", "limits");

  private AnswersJson() {}

  /** Reads the members of an object; {@code null} counts as absent. */
  private interface Member {
    void read(int member);
  }

  private static void object(JsonReader json, Names names, Member reader) {
    json.beginObject();
    while (json.hasNext()) {
      int member = json.nextName(names);
      if (member < 0) {
        json.skipValue();
      } else if (!json.nextNull()) {
        reader.read(member);
      }
    }
    json.endObject();
  }

  private static <T> T the(String name, @Nullable T value) {
    if (value == null) {
      throw new MalformedException(name + " is missing");
    }
    return value;
  }

  static PayloadStatus status(JsonReader json) {
    return withWitness(json).status();
  }

  static PayloadWithWitness withWitness(JsonReader json) {
    @Nullable Object[] found = new Object[4];
    object(
        json,
        STATUS,
        member ->
            found[member] =
                switch (member) {
                  case 1 -> json.nextHash();
                  case 3 -> Witness.ofRlp(json.nextBytes().asBuffer()).sorted();
                  default -> json.nextString();
                });
    PayloadStatus status = status((String) found[0], (Hash) found[1], shortened((String) found[2]));
    return new PayloadWithWitness(
        status, Optional.ofNullable((Witness) found[3]), List.of(), Optional.empty());
  }

  private static @Nullable String shortened(@Nullable String text) {
    return text == null || text.length() <= ERROR_CHARACTERS
        ? text
        : text.substring(0, ERROR_CHARACTERS);
  }

  static PayloadStatus status(
      @Nullable String status, @Nullable Hash latestValidHash, @Nullable String error) {
    return switch (the("status", status)) {
      case "VALID" -> new PayloadStatus.Valid(the("latestValidHash", latestValidHash));
      case "INVALID", "INVALID_BLOCK_HASH" ->
          new PayloadStatus.Invalid(
              Optional.ofNullable(latestValidHash), Optional.ofNullable(error));
      case "SYNCING" -> new PayloadStatus.Syncing();
      case "ACCEPTED" -> new PayloadStatus.Accepted();
      default -> throw new MalformedException("a status that there is not: " + status);
    };
  }

  static ForkchoiceUpdated updated(JsonReader json) {
    @Nullable Object[] found = new Object[2];
    object(json, UPDATED, member -> found[member] = member == 0 ? status(json) : payloadId(json));
    PayloadStatus status = the("payloadStatus", (PayloadStatus) found[0]);
    return new ForkchoiceUpdated(status, Optional.ofNullable((PayloadId) found[1]));
  }

  private static PayloadId payloadId(JsonReader json) {
    Bytes id = json.nextBytes();
    if (id.size() != PayloadId.SIZE) {
      throw new MalformedException("payloadId: " + id.size() + " bytes where 8 are due");
    }
    return new PayloadId(id);
  }

  static BuiltPayload built(JsonReader json) {
    Built built = new Built();
    object(
        json,
        BUILT,
        member -> {
          switch (member) {
            case 0 -> built.payload = ExecutionPayload.read(json);
            case 1 -> built.value = json.nextWei();
            case 2 -> built.blobs = bundle(json);
            case 3 -> built.shouldOverride = json.nextBoolean();
            default -> built.requests = bytes("executionRequests", json);
          }
        });
    return new BuiltPayload(
        the("executionPayload", built.payload),
        the("blockValue", built.value),
        Optional.ofNullable(built.blobs),
        built.shouldOverride,
        Optional.ofNullable(built.requests));
  }

  private static final class Built {
    @Nullable ExecutionPayload payload;
    @Nullable Wei value;
    @Nullable BlobsBundle blobs;
    boolean shouldOverride;
    @Nullable List<Bytes> requests;
  }

  private static BlobsBundle bundle(JsonReader json) {
    List<@Nullable List<Bytes>> lists = new ArrayList<>(List.of(List.of(), List.of(), List.of()));
    object(json, BUNDLE, member -> lists.set(member, bytes("blobsBundle", json)));
    return new BlobsBundle(lists.get(0), lists.get(1), lists.get(2));
  }

  private static List<Bytes> bytes(String field, JsonReader json) {
    return PayloadJson.byteLists(field, json, 1 << 20);
  }

  /** Reads an array of which an element may be null. */
  static <T> List<Optional<T>> entries(JsonReader json, Function<JsonReader, T> read) {
    List<Optional<T>> entries = new ArrayList<>();
    json.beginArray();
    while (json.hasNext()) {
      PayloadJson.checkCount("entries", entries.size(), ENTRIES);
      entries.add(json.nextNull() ? Optional.empty() : Optional.of(read.apply(json)));
    }
    json.endArray();
    return entries;
  }

  /** Reads an array that may be null as a whole. */
  static <T> Optional<List<Optional<T>>> ifAny(JsonReader json, Function<JsonReader, T> read) {
    return json.nextNull() ? Optional.empty() : Optional.of(entries(json, read));
  }

  static PayloadBody body(JsonReader json) {
    Body body = new Body();
    object(
        json,
        BODY,
        member -> {
          switch (member) {
            case 0 -> body.transactions = bytes("transactions", json);
            case 1 -> body.withdrawals = PayloadJson.withdrawals(json);
            default -> body.accessList = json.nextBytes();
          }
        });
    return new PayloadBody(
        the("transactions", body.transactions),
        Optional.ofNullable(body.withdrawals),
        Optional.ofNullable(body.accessList));
  }

  private static final class Body {
    @Nullable List<Bytes> transactions;
    @Nullable List<Withdrawal> withdrawals;
    @Nullable Bytes accessList;
  }

  static BlobAndProofs blob(JsonReader json) {
    @Nullable Bytes[] blob = new Bytes[1];
    List<Bytes> proofs = new ArrayList<>();
    object(
        json,
        BLOB,
        member -> {
          switch (member) {
            case 0 -> blob[0] = json.nextBytes();
            case 1 -> proofs.add(json.nextBytes());
            default -> proofs.addAll(bytes("proofs", json));
          }
        });
    return new BlobAndProofs(the("blob", blob[0]), proofs);
  }

  static BlobCells cells(JsonReader json) {
    List<List<Optional<Bytes>>> lists = new ArrayList<>(List.of(List.of(), List.of()));
    object(json, CELLS, member -> lists.set(member, entries(json, JsonReader::nextBytes)));
    return new BlobCells(lists.get(0), lists.get(1));
  }

  static List<String> texts(JsonReader json) {
    List<String> texts = new ArrayList<>();
    json.beginArray();
    while (json.hasNext()) {
      PayloadJson.checkCount("capabilities", texts.size(), ENTRIES);
      texts.add(json.nextString());
    }
    json.endArray();
    return texts;
  }

  static List<ClientVersion> versions(JsonReader json) {
    return entries(json, AnswersJson::version).stream().flatMap(Optional::stream).toList();
  }

  private static ClientVersion version(JsonReader json) {
    String[] texts = {"", "", "", ""};
    object(json, VERSION, member -> texts[member] = json.nextString());
    return new ClientVersion(texts[0], texts[1], texts[2], texts[3]);
  }

  static void write(ClientVersion version, JsonWriter json) {
    json.beginObject();
    json.name("code").value(version.code()).name("name").value(version.name());
    json.name("version").value(version.version()).name("commit").value(version.commit());
    json.endObject();
  }

  /** {@code GET capabilities}; without {@code supported_forks} it is another server's answer. */
  static Capabilities capabilities(JsonReader json) {
    List<List<String>> forks = new ArrayList<>(1);
    List<String> endpoints = new ArrayList<>();
    Map<String, Long> limits = new HashMap<>();
    object(
        json,
        CAPABILITIES,
        member -> {
          switch (member) {
            case 0 -> forks.add(texts(json));
            case 1, 2 -> endpoints.addAll(texts(json));
            default -> {
              json.beginObject();
              while (json.hasNext()) {
                PayloadJson.checkCount("limits", limits.size(), ENTRIES);
                limits.put(json.nextName(), json.nextLong());
              }
              json.endObject();
            }
          }
        });
    List<String> known = the("supported_forks", forks.isEmpty() ? null : forks.get(0));
    return new Capabilities(known, endpoints, limits);
  }
}
