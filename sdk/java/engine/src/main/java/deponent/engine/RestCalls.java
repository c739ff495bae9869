package deponent.engine;

import deponent.eth.Hash;
import deponent.eth.JsonReader;
import deponent.eth.MalformedException;
import deponent.eth.ProtocolException;
import deponent.eth.RpcException;
import deponent.rpc.Decoder;
import deponent.rpc.Http;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Function;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/** Calls over the REST Engine API (execution-apis #793): SSZ in the bodies. */
final class RestCalls implements Calls {
  static final String BASE = "/engine/v1/";

  /** Bytes of an answer that has no block and no witness: names, numbers and hashes. */
  static final int SHORT = 4 << 20;

  /** Bytes of any other answer: offsets of SSZ reach no further. */
  private static final long LONG = 1L << 32;

  private static final String PROBLEM = "application/problem+json";

  private static final String TIMINGS = "deponent-timings";

  /** Problems, and the codes of their twins over JSON-RPC. */
  private static final Map<String, Integer> CODES =
      Map.ofEntries(
          Map.entry("invalid-request", -32602),
          Map.entry("ssz-decode-error", -32602),
          Map.entry("invalid-body", -32602),
          Map.entry("unsupported-fork", -38005),
          Map.entry("method-not-found", JsonCalls.METHOD_NOT_FOUND),
          Map.entry("unknown-payload", -38001),
          Map.entry("invalid-forkchoice", -38002),
          Map.entry("invalid-attributes", -38003),
          Map.entry("request-too-large", -38004),
          Map.entry("reorg-too-deep", -38006),
          Map.entry("pruned-history", 4444),
          Map.entry("internal", -32603));

  /** The code of any other problem. */
  private static final int OTHER = -32000;

  private final Http http;

  RestCalls(Http http) {
    this.http = http;
  }

  private Http.Answer post(
      String name, String path, @Nullable Fork fork, byte[] body, long most, boolean repeatable) {
    List<String> headers = new ArrayList<>();
    headers.add("Content-Type: application/octet-stream");
    if (fork != null) {
      headers.add("Eth-Execution-Version: " + fork.header());
    }
    return checked(
        http.exchange(
            new Http.Ask(
                name, "POST", BASE + path, headers, body, most, Optional.empty(), repeatable)));
  }

  private Http.Answer get(String name, String path, @Nullable Fork fork, long most) {
    List<String> headers =
        fork == null ? List.of() : List.of("Eth-Execution-Version: " + fork.header());
    return checked(
        http.exchange(
            new Http.Ask(name, "GET", BASE + path, headers, null, most, Optional.empty(), true)));
  }

  /** An answer, unless it is a refusal. */
  private static Http.Answer checked(Http.Answer answer) {
    int status = answer.status();
    if (status == 200 || status == 204) {
      return answer;
    }
    try (answer) {
      throw refusal(answer, status);
    }
  }

  private static RuntimeException refusal(Http.Answer answer, int status) {
    boolean isProblem = answer.header("content-type").orElse("").startsWith(PROBLEM);
    boolean isTransport = status == 401 || status == 403 || status == 429 || status == 503;
    return isProblem && !isTransport ? problem(answer) : answer.failure();
  }

  private static RuntimeException problem(Http.Answer answer) {
    String text = new String(answer.copy(1 << 16), StandardCharsets.UTF_8);
    String kind = null;
    String detail = "";
    try {
      JsonReader json = new JsonReader(text);
      json.beginObject();
      while (json.hasNext()) {
        switch (json.nextName()) {
          case "type" -> kind = json.nextString();
          case "detail" -> detail = json.nextString();
          default -> json.skipValue();
        }
      }
      json.endObject();
    } catch (MalformedException no) {
      return answer.failure();
    }
    if (kind == null) {
      return answer.failure();
    }
    String name = kind.substring(kind.lastIndexOf('/') + 1);
    String message = name + " (" + answer.status() + "): " + detail;
    return new RpcException(CODES.getOrDefault(name, OTHER), message, text);
  }

  /** Reads an answer; what is malformed in it is a fault of the server. */
  private static <T> T read(String name, Supplier<T> reader) {
    try {
      return reader.get();
    } catch (MalformedException other) {
      throw new ProtocolException(name + ": " + other.getMessage(), other);
    }
  }

  private static <T> T read(String name, Http.Answer answer, Function<Memory, T> reader) {
    try (answer) {
      return read(name, () -> reader.apply(Memory.of(answer.body())));
    }
  }

  /** Reads an answer in whose memory a witness stays, which gives it back. */
  private static <T> T hold(
      String name,
      Http.Answer answer,
      Function<Memory, T> reader,
      Function<T, Optional<Witness>> witness) {
    boolean isHeld = false;
    try {
      T read = read(name, () -> reader.apply(Memory.of(answer.body())));
      Optional<Witness> found = witness.apply(read);
      found.ifPresent(holds -> holds.releasedBy(answer::close));
      isHeld = found.isPresent();
      return read;
    } finally {
      if (!isHeld) {
        answer.close();
      }
    }
  }

  private static <T> T readJson(String name, Http.Answer answer, Decoder<T> reader) {
    return read(
        name,
        () -> {
          try (answer) {
            JsonReader json = new JsonReader(answer.copy(SHORT));
            T value = reader.read(json);
            json.finish();
            return value;
          }
        });
  }

  @Override
  public Function<Fork, PayloadWithWitness> newPayload(NewPayload payload, boolean withWitness) {
    byte[] body = payload.toSsz();
    if (withWitness) {
      String name = "engine_newPayloadWithWitness";
      return fork -> {
        Http.Answer answer = post(name, "payloads/witness", fork, body, LONG, true);
        Optional<Timings> timings = answer.header(TIMINGS).flatMap(Timings::read);
        return hold(
            name,
            answer,
            input -> AnswersSsz.withWitness(input, timings),
            PayloadWithWitness::witness);
      };
    }
    String name = "engine_newPayload";
    return fork -> {
      Http.Answer answer = post(name, "payloads", fork, body, SHORT, true);
      Optional<Timings> timings = answer.header(TIMINGS).flatMap(Timings::read);
      PayloadStatus status = read(name, answer, AnswersSsz::status);
      return new PayloadWithWitness(status, Optional.empty(), List.of(), timings);
    };
  }

  @Override
  public Function<Fork, ForkchoiceUpdated> forkchoiceUpdated(
      ForkchoiceState state, @Nullable PayloadAttributes attributes) {
    String name = "engine_forkchoiceUpdated";
    return fork -> {
      byte[] body = RequestBodies.forkchoice(fork, state, attributes);
      Http.Answer answer = post(name, "forkchoice", fork, body, SHORT, false);
      return read(name, answer, AnswersSsz::updated);
    };
  }

  @Override
  public Function<Fork, BuiltPayload> getPayload(PayloadId id) {
    String name = "engine_getPayload";
    return fork -> {
      Http.Answer answer = get(name, "payloads/" + id, fork, LONG);
      return read(name, answer, input -> AnswersSsz.built(fork, input));
    };
  }

  @Override
  public Witness witness(Hash block) {
    Http.Answer answer = get("witness", "witnesses/" + block, null, LONG);
    return hold("witness", answer, Witness::ofSsz, Optional::of);
  }

  @Override
  public StatelessInput statelessInput(Hash block, boolean withPublicKeys) {
    String query = withPublicKeys ? "?public_keys=true" : "";
    Http.Answer answer = get("stateless input", "stateless-inputs/" + block + query, null, LONG);
    return hold(
        "stateless input", answer, StatelessInput::ofSsz, input -> Optional.of(input.witness()));
  }

  @Override
  public List<Optional<PayloadBody>> payloadBodies(Fork fork, List<Hash> blocks) {
    String name = "engine_getPayloadBodiesByHash";
    byte[] body = RequestBodies.hashes(blocks, Optional.empty());
    Http.Answer answer = post(name, "bodies/hash", fork, body, LONG, true);
    return read(name, answer, input -> AnswersSsz.bodies(fork, input));
  }

  @Override
  public List<Optional<PayloadBody>> payloadBodies(Fork fork, long from, long count) {
    String name = "engine_getPayloadBodiesByRange";
    String path =
        "bodies?from=" + Long.toUnsignedString(from) + "&count=" + Long.toUnsignedString(count);
    Http.Answer answer = get(name, path, fork, LONG);
    return read(name, answer, input -> AnswersSsz.bodies(fork, input));
  }

  @Override
  public Optional<List<Optional<BlobAndProofs>>> blobs(int version, List<Hash> hashes) {
    String name = "engine_getBlobs";
    byte[] body = RequestBodies.hashes(hashes, Optional.empty());
    Http.Answer answer = post(name, "blobs/v" + version, null, body, LONG, true);
    return answer.status() == 204
        ? Optional.empty()
        : Optional.of(read(name, answer, input -> AnswersSsz.blobs(version, input)));
  }

  @Override
  public Optional<List<Optional<BlobCells>>> cells(List<Hash> hashes, byte[] indices) {
    String name = "engine_getBlobs";
    byte[] body = RequestBodies.hashes(hashes, Optional.of(indices));
    Http.Answer answer = post(name, "blobs/v4", null, body, LONG, true);
    return answer.status() == 204
        ? Optional.empty()
        : Optional.of(read(name, answer, input -> AnswersSsz.cells(indices, input)));
  }

  @Override
  public Capabilities exchangeCapabilities(List<String> ours) {
    return readJson(
        "capabilities",
        get("capabilities", "capabilities", null, SHORT),
        AnswersJson::capabilities);
  }

  @Override
  public List<ClientVersion> clientVersions(ClientVersion ours) {
    return readJson("identity", get("identity", "identity", null, SHORT), AnswersJson::versions);
  }

  @Override
  public void close() {
    http.close();
  }
}
