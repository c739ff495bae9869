package deponent.engine;

import deponent.eth.Bytes;
import deponent.eth.Hash;
import deponent.eth.JsonWriter;
import deponent.eth.RpcException;
import deponent.rpc.Decoder;
import deponent.rpc.Params;
import deponent.rpc.Provider;
import deponent.rpc.Request;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/** Calls over JSON-RPC. */
final class JsonCalls implements Calls {
  /** The code of a method that the server has not. */
  static final int METHOD_NOT_FOUND = -32601;

  private static final List<String> WITNESS =
      List.of(
          "debug_executionWitnessByBlockHash",
          "debug_executionWitnessByHash",
          "debug_executionWitness");

  final Provider provider;

  JsonCalls(Provider provider) {
    this.provider = provider;
  }

  private <T> T read(String method, Params params, Decoder<T> result) {
    return provider.request(Request.of(method, params, result).repeatable());
  }

  @Override
  public Function<Fork, PayloadWithWitness> newPayload(NewPayload payload, boolean withWitness) {
    String method = withWitness ? "engine_newPayloadWithWitnessV" : "engine_newPayloadV";
    return fork -> read(method + payload.version(), payload::writeAll, AnswersJson::withWitness);
  }

  @Override
  public Function<Fork, ForkchoiceUpdated> forkchoiceUpdated(
      ForkchoiceState state, @Nullable PayloadAttributes attributes) {
    Params params =
        json -> {
          json.beginObject().name("headBlockHash").value(state.head());
          json.name("safeBlockHash").value(state.safe());
          json.name("finalizedBlockHash").value(state.finalized()).endObject();
          if (attributes == null) {
            json.nullValue();
          } else {
            write(attributes, json);
          }
        };
    return fork -> {
      String method = "engine_forkchoiceUpdatedV" + fork.payloadVersion();
      return provider.request(Request.of(method, params, AnswersJson::updated));
    };
  }

  private static void write(PayloadAttributes attributes, JsonWriter json) {
    json.beginObject();
    PayloadJson.number(json.name("timestamp"), attributes.timestamp());
    json.name("prevRandao").value(attributes.prevRandao());
    json.name("suggestedFeeRecipient").value(attributes.suggestedFeeRecipient());
    attributes
        .withdrawals()
        .ifPresent(list -> PayloadJson.withdrawals(json.name("withdrawals"), list));
    attributes
        .parentBeaconBlockRoot()
        .ifPresent(root -> json.name("parentBeaconBlockRoot").value(root));
    attributes
        .slotNumber()
        .ifPresent(number -> PayloadJson.number(json.name("slotNumber"), number));
    attributes
        .targetGasLimit()
        .ifPresent(limit -> PayloadJson.number(json.name("targetGasLimit"), limit));
    json.endObject();
  }

  @Override
  public Function<Fork, BuiltPayload> getPayload(PayloadId id) {
    return fork -> {
      String method = "engine_getPayloadV" + getPayloadVersion(fork);
      return read(method, json -> json.value(id.bytes()), AnswersJson::built);
    };
  }

  /** The version that gives all of a fork; the first one has no value beside the payload. */
  private static int getPayloadVersion(Fork fork) {
    return switch (fork) {
      case PARIS, SHANGHAI -> 2;
      case CANCUN -> 3;
      case PRAGUE -> 4;
      case OSAKA, BPO1, BPO2 -> 5;
      case AMSTERDAM -> 6;
    };
  }

  /** By the names that servers have for it, with a hash. */
  @Override
  public Witness witness(Hash block) {
    for (int name = 0; ; name++) {
      try {
        return read(WITNESS.get(name), json -> json.value(block), Witness::ofJson).sorted();
      } catch (RpcException error) {
        if (error.code() != METHOD_NOT_FOUND || name == WITNESS.size() - 1) {
          throw error;
        }
      }
    }
  }

  @Override
  public StatelessInput statelessInput(Hash block, boolean withPublicKeys) {
    throw new UnsupportedOperationException(
        "JSON-RPC has no stateless inputs: connect to http:// or unix: of a server with REST");
  }

  private static String bodies(String name, Fork fork) {
    return name + (fork.payloadVersion() >= 4 ? "V2" : "V1");
  }

  @Override
  public List<Optional<PayloadBody>> payloadBodies(Fork fork, List<Hash> blocks) {
    return read(
        bodies("engine_getPayloadBodiesByHash", fork),
        json -> array(blocks, json),
        json -> AnswersJson.entries(json, AnswersJson::body));
  }

  @Override
  public List<Optional<PayloadBody>> payloadBodies(Fork fork, long from, long count) {
    return read(
        bodies("engine_getPayloadBodiesByRange", fork),
        json -> json.quantity(from).quantity(count),
        json -> AnswersJson.entries(json, AnswersJson::body));
  }

  @Override
  public Optional<List<Optional<BlobAndProofs>>> blobs(int version, List<Hash> hashes) {
    return read(
        "engine_getBlobsV" + version,
        json -> array(hashes, json),
        json -> AnswersJson.ifAny(json, AnswersJson::blob));
  }

  @Override
  public Optional<List<Optional<BlobCells>>> cells(List<Hash> hashes, byte[] indices) {
    return read(
        "engine_getBlobsV4",
        json -> {
          array(hashes, json);
          json.value(Bytes.of(indices));
        },
        json -> AnswersJson.ifAny(json, AnswersJson::cells));
  }

  @Override
  public Capabilities exchangeCapabilities(List<String> ours) {
    List<String> theirs =
        read(
            "engine_exchangeCapabilities",
            json -> {
              json.beginArray();
              ours.forEach(json::value);
              json.endArray();
            },
            AnswersJson::texts);
    return new Capabilities(List.of(), theirs, Map.of());
  }

  @Override
  public List<ClientVersion> clientVersions(ClientVersion ours) {
    return read(
        "engine_getClientVersionV1", json -> AnswersJson.write(ours, json), AnswersJson::versions);
  }

  private static void array(List<Hash> hashes, JsonWriter json) {
    json.beginArray();
    hashes.forEach(json::value);
    json.endArray();
  }

  @Override
  public void close() {
    provider.close();
  }
}
