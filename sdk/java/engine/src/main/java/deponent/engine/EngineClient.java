package deponent.engine;

import deponent.eth.Bytes;
import deponent.eth.Hash;
import deponent.eth.JsonReader;
import deponent.eth.MalformedException;
import deponent.eth.ProtocolException;
import deponent.eth.RpcException;
import deponent.eth.TransportException;
import deponent.eth.TransportException.Kind;
import deponent.rpc.Http;
import deponent.rpc.Listener;
import deponent.rpc.Provider;
import deponent.rpc.ProviderBuilder;
import deponent.rpc.Retry;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * A client of the Engine API, of this engine and of any other. Its methods may be called from many
 * threads.
 *
 * <pre>{@code
 * try (EngineClient engine = EngineClient.at("http://127.0.0.1:8551").secretFile(file).connect()) {
 *   if (engine.newPayload(payload) instanceof PayloadStatus.Valid valid) {
 *     try (Witness witness = engine.witness(valid.blockHash())) {
 *       witness.verify(parentStateRoot);
 *     }
 *   }
 * }
 * }</pre>
 *
 * <p><b>Forks.</b> The fork that REST names, and the version of a method, follow from the fields
 * that a payload or attributes have. Prague's and Osaka's are the same: the one goes first that the
 * server took the last time, at first Osaka; the others follow as long as the server answers that
 * the block is of another fork (-38005), which changes nothing.
 *
 * <p><b>Repeats.</b> Reads and new payloads are sent again, twice at most, when the connection
 * broke before the answer was there. A fork choice is not: another may have come in between. Fork
 * choices that are to run in order are made one after the other.
 *
 * <p><b>Errors.</b> All methods throw {@link TransportException} without an answer, {@link
 * RpcException} for an error of JSON-RPC or a problem of REST, which has the code of its twin and
 * its JSON as data, and {@link ProtocolException} for an answer of another form. A method's twin
 * {@code ..Async} gives a future that fails with the same.
 */
public final class EngineClient implements AutoCloseable {
  private static final int UNSUPPORTED_FORK = -38005;

  private static final List<Fork> NEWEST_FIRST =
      List.of(Fork.AMSTERDAM, Fork.OSAKA, Fork.PRAGUE, Fork.CANCUN, Fork.SHANGHAI, Fork.PARIS);

  private final Calls calls;
  private final Wire wire;
  private final Builder builder;
  private final @Nullable Fork fixed;
  private volatile Fork accepted = Fork.OSAKA;
  private final AtomicReference<@Nullable Provider> provider = new AtomicReference<>();
  private volatile boolean closed;

  private EngineClient(Builder builder, Wire wire, Calls calls) {
    this.builder = builder;
    this.wire = wire;
    this.calls = calls;
    fixed = builder.fork;
  }

  /**
   * Connects without a secret, as to a Unix socket, and takes the fastest wire.
   *
   * @param address {@code unix:/path}, {@code http://host:port} or {@code ws://host:port}
   * @throws IllegalArgumentException if it is no address
   * @throws TransportException if nobody listens there
   */
  public static EngineClient connect(String address) {
    return at(address).connect();
  }

  /**
   * Begins a connection.
   *
   * @throws IllegalArgumentException if {@code address} is none
   */
  public static Builder at(String address) {
    return new Builder(address);
  }

  /** The settings of a client. */
  public static final class Builder {
    private final String address;
    private @Nullable JwtSecret secret;
    private @Nullable Wire wire;
    private @Nullable Fork fork;
    private Duration timeout = Duration.ofSeconds(120);
    private ClientVersion version =
        new ClientVersion("DP", "deponent-java", "v0.1.0", "0x00000000");
    private Consumer<ProviderBuilder> connections = connection -> {};

    private Builder(String address) {
      Provider.at(address);
      this.address = address;
    }

    /**
     * The secret of the port, of which each request or handshake has a new token (HS256).
     *
     * @throws IllegalArgumentException if it has not 32 bytes
     */
    public Builder secret(byte[] secret) {
      this.secret = JwtSecret.of(secret);
      return this;
    }

    /**
     * The same out of a file: 64 hex digits, with or without {@code 0x}. It is read now.
     *
     * @throws IllegalArgumentException if it cannot be read or has no secret; the message names it
     */
    public Builder secretFile(Path file) {
      secret = JwtSecret.read(file);
      return this;
    }

    /**
     * The wire; without it the fastest that the server has. {@link Wire#DESCRIPTOR} is {@link
     * Wire#SSZ} where the address is no Unix socket, or the module is not there.
     */
    public Builder wire(Wire wire) {
      this.wire = Objects.requireNonNull(wire);
      return this;
    }

    /** Fixes the fork of all calls; without it, it follows from their fields. */
    public Builder fork(Fork fork) {
      this.fork = Objects.requireNonNull(fork);
      return this;
    }

    /**
     * Bounds each call with its repeats; 120 s.
     *
     * @throws IllegalArgumentException if it is not positive
     */
    public Builder timeout(Duration timeout) {
      if (timeout.isNegative() || timeout.isZero()) {
        throw new IllegalArgumentException("a timeout is positive: " + timeout);
      }
      this.timeout = timeout;
      return this;
    }

    /** Who asks, for {@code engine_getClientVersionV1}. */
    public Builder version(ClientVersion version) {
      this.version = Objects.requireNonNull(version);
      return this;
    }

    /** Tells {@code listener} of calls and connections. */
    public Builder listener(Listener listener) {
      return connections(connection -> connection.listener(listener));
    }

    /** Sets further options of each connection, such as {@code ssl} or headers. */
    public Builder connections(Consumer<ProviderBuilder> options) {
      connections = connections.andThen(options);
      return this;
    }

    private boolean isWebSocket() {
      return address.startsWith("ws:") || address.startsWith("wss:");
    }

    ProviderBuilder connection(String address) {
      ProviderBuilder connection =
          Provider.at(address)
              .timeout(timeout)
              .answerBytes(1L << 32)
              .retry(new Retry(3, Duration.ofMillis(50), Duration.ofSeconds(1)));
      JwtSecret key = secret;
      if (key != null) {
        connection.bearer(key);
      }
      connections.accept(connection);
      return connection;
    }

    /**
     * Connects. Where no wire was named the server is asked for {@code GET
     * /engine/v1/capabilities}: {@link Wire#DESCRIPTOR} or {@link Wire#SSZ} if it answers, {@link
     * Wire#JSON} if not, and over a WebSocket.
     *
     * @throws TransportException if nobody listens, or the token is refused
     * @throws IllegalArgumentException if the wire needs HTTP or a Unix socket, and the address is
     *     that of a WebSocket
     */
    public EngineClient connect() {
      Wire chosen = wire;
      if (chosen == Wire.JSON || chosen == null && isWebSocket()) {
        return new EngineClient(this, Wire.JSON, new JsonCalls(connection(address).connect()));
      }
      ProviderBuilder connection = connection(address);
      Optional<Http> byDescriptor =
          chosen == Wire.SSZ ? Optional.empty() : connection.httpByDescriptor();
      Http http = byDescriptor.orElseGet(connection::http);
      Wire best = byDescriptor.isPresent() ? Wire.DESCRIPTOR : Wire.SSZ;
      if (chosen != null) {
        return new EngineClient(this, best, new RestCalls(http));
      }
      boolean hasRest = false;
      try {
        hasRest = hasRest(http);
      } finally {
        if (!hasRest) {
          http.close();
        }
      }
      return hasRest
          ? new EngineClient(this, best, new RestCalls(http))
          : new EngineClient(this, Wire.JSON, new JsonCalls(connection(address).connect()));
    }

    private boolean hasRest(Http http) {
      try {
        Http.Answer answer =
            http.exchange(Http.Ask.get("capabilities", RestCalls.BASE + "capabilities"));
        if (answer.status() == 401 || answer.status() == 403) {
          throw answer.failure();
        }
        if (answer.status() != 200) {
          return false;
        }
        AnswersJson.capabilities(new JsonReader(answer.copy(RestCalls.SHORT)));
        return true;
      } catch (MalformedException | ProtocolException other) {
        // It is another server that answers any GET, or one that speaks no HTTP.
        return false;
      } catch (TransportException failure) {
        // geth's Unix socket takes JSON alone, and hangs up.
        if (failure.kind() == Kind.CLOSED && address.startsWith("unix:")) {
          return false;
        }
        throw failure;
      }
    }
  }

  /** The form in which calls travel. */
  public Wire wire() {
    return wire;
  }

  /** Has a payload validated: {@code engine_newPayload}, {@code POST payloads}. */
  public PayloadStatus newPayload(NewPayload payload) {
    return attempt(forks(payload), calls.newPayload(payload, false), false).status();
  }

  /** As {@link #newPayload}. */
  public CompletableFuture<PayloadStatus> newPayloadAsync(NewPayload payload) {
    return async(() -> newPayload(payload));
  }

  /**
   * Has a payload validated, and returns the witness of a valid one with the verdict: {@code
   * engine_newPayloadWithWitness}, {@code POST payloads/witness}.
   */
  public PayloadWithWitness newPayloadWithWitness(NewPayload payload) {
    return attempt(forks(payload), calls.newPayload(payload, true), false);
  }

  /** As {@link #newPayloadWithWitness}. */
  public CompletableFuture<PayloadWithWitness> newPayloadWithWitnessAsync(NewPayload payload) {
    return async(() -> newPayloadWithWitness(payload));
  }

  /**
   * Makes a block the head, and begins to build on it where there are attributes: {@code
   * engine_forkchoiceUpdated}, {@code POST forkchoice}. After a {@link TransportException} it may
   * have run.
   */
  public ForkchoiceUpdated forkchoiceUpdated(
      ForkchoiceState state, @Nullable PayloadAttributes attributes) {
    return attempt(forks(attributes), calls.forkchoiceUpdated(state, attributes), false);
  }

  /** As {@link #forkchoiceUpdated}. */
  public CompletableFuture<ForkchoiceUpdated> forkchoiceUpdatedAsync(
      ForkchoiceState state, @Nullable PayloadAttributes attributes) {
    return async(() -> forkchoiceUpdated(state, attributes));
  }

  /** The payload that is built under this id: {@code engine_getPayload}. */
  public BuiltPayload getPayload(PayloadId id) {
    return attempt(NEWEST_FIRST, calls.getPayload(id), true);
  }

  /** As {@link #getPayload}. */
  public CompletableFuture<BuiltPayload> getPayloadAsync(PayloadId id) {
    return async(() -> getPayload(id));
  }

  /**
   * The witness of a valid block: {@code GET witnesses/{blockHash}}, or over JSON-RPC {@code
   * debug_executionWitnessByBlockHash} and its names elsewhere, which are on a public port or a
   * Unix socket. It is closed by the caller.
   */
  public Witness witness(Hash block) {
    return calls.witness(block);
  }

  /** As {@link #witness}. */
  public CompletableFuture<Witness> witnessAsync(Hash block) {
    return async(() -> witness(block));
  }

  /**
   * What a prover takes, of a valid block from Paris on: {@code GET stateless-inputs/{blockHash}}.
   *
   * @throws UnsupportedOperationException over JSON-RPC
   */
  public StatelessInput statelessInput(Hash block) {
    return calls.statelessInput(block, false);
  }

  /** As {@link #statelessInput(Hash)}. */
  public CompletableFuture<StatelessInput> statelessInputAsync(Hash block) {
    return async(() -> statelessInput(block));
  }

  /**
   * The same in its older form, which has the signers' public keys.
   *
   * @throws UnsupportedOperationException over JSON-RPC
   */
  public StatelessInput statelessInputWithPublicKeys(Hash block) {
    return calls.statelessInput(block, true);
  }

  /** As {@link #statelessInputWithPublicKeys}. */
  public CompletableFuture<StatelessInput> statelessInputWithPublicKeysAsync(Hash block) {
    return async(() -> statelessInputWithPublicKeys(block));
  }

  /**
   * The bodies of blocks, empty where the server has none: {@code engine_getPayloadBodiesByHash}.
   *
   * @param fork the fork of the blocks; over REST those of another one are not there
   * @param blocks their hashes: at most 1,024 over JSON-RPC and 32 over REST
   */
  public List<Optional<PayloadBody>> payloadBodies(Fork fork, List<Hash> blocks) {
    return calls.payloadBodies(fork, blocks);
  }

  /** As {@link #payloadBodies(Fork, List)}. */
  public CompletableFuture<List<Optional<PayloadBody>>> payloadBodiesAsync(
      Fork fork, List<Hash> blocks) {
    return async(() -> payloadBodies(fork, blocks));
  }

  /**
   * The bodies of canonical blocks up to the head: {@code engine_getPayloadBodiesByRange}.
   *
   * @param fork as of {@link #payloadBodies(Fork, List)}
   * @param from the number of the first one
   * @param count how many: at most 1,024 over JSON-RPC and 32 over REST
   */
  public List<Optional<PayloadBody>> payloadBodies(Fork fork, long from, long count) {
    return calls.payloadBodies(fork, from, count);
  }

  /** As {@link #payloadBodies(Fork, long, long)}. */
  public CompletableFuture<List<Optional<PayloadBody>>> payloadBodiesAsync(
      Fork fork, long from, long count) {
    return async(() -> payloadBodies(fork, from, count));
  }

  /**
   * Blobs of the server's pool: {@code engine_getBlobsV1} to {@code V3}. Without a value the server
   * has no answer: the second version where one of them is missing, later ones where it knows of
   * none.
   *
   * @param version 1 before Osaka, with the proof of each blob; 2 or 3 later, with those of cells
   * @param versionedHashes at most 128
   * @throws IllegalArgumentException if there is no such version
   */
  public Optional<List<Optional<BlobAndProofs>>> getBlobs(int version, List<Hash> versionedHashes) {
    if (version < 1 || version > 3) {
      throw new IllegalArgumentException("versions of whole blobs are 1 to 3, not " + version);
    }
    return calls.blobs(version, versionedHashes);
  }

  /** As {@link #getBlobs}. */
  public CompletableFuture<Optional<List<Optional<BlobAndProofs>>>> getBlobsAsync(
      int version, List<Hash> versionedHashes) {
    return async(() -> getBlobs(version, versionedHashes));
  }

  /**
   * Cells of blobs of the server's pool: {@code engine_getBlobsV4}.
   *
   * @param versionedHashes at most 128
   * @param indices 16 bytes, a bit for each cell that is wanted, the first in the lowest bit of the
   *     first byte
   * @throws IllegalArgumentException if there are not 16 bytes
   */
  public Optional<List<Optional<BlobCells>>> getBlobCells(
      List<Hash> versionedHashes, Bytes indices) {
    if (indices.size() != BlobsBundle.CELLS / 8) {
      throw new IllegalArgumentException("a bit for each cell is 16 bytes, not " + indices.size());
    }
    return calls.cells(versionedHashes, indices.toBytes());
  }

  /** As {@link #getBlobCells}. */
  public CompletableFuture<Optional<List<Optional<BlobCells>>>> getBlobCellsAsync(
      List<Hash> versionedHashes, Bytes indices) {
    return async(() -> getBlobCells(versionedHashes, indices));
  }

  /**
   * What the server can do: {@code engine_exchangeCapabilities}, {@code GET capabilities}.
   *
   * @param ours methods that the caller knows; not sent over REST
   */
  public Capabilities exchangeCapabilities(List<String> ours) {
    return calls.exchangeCapabilities(ours);
  }

  /** As {@link #exchangeCapabilities}. */
  public CompletableFuture<Capabilities> exchangeCapabilitiesAsync(List<String> ours) {
    return async(() -> exchangeCapabilities(ours));
  }

  /**
   * The names and versions of the server and of those behind it: {@code engine_getClientVersionV1},
   * {@code GET identity}.
   */
  public List<ClientVersion> getClientVersion() {
    return calls.clientVersions(builder.version);
  }

  /** As {@link #getClientVersion}. */
  public CompletableFuture<List<ClientVersion>> getClientVersionAsync() {
    return async(this::getClientVersion);
  }

  /**
   * JSON-RPC at the same address, for methods that have none here. It ends with this client.
   *
   * @throws TransportException if there is no connection
   */
  public Provider jsonRpc() {
    if (calls instanceof JsonCalls json) {
      return json.provider;
    }
    Provider known = provider.get();
    if (known == null) {
      Provider made = builder.connection(builder.address).connect();
      known = provider.compareAndSet(null, made) ? made : provider.get();
      if (known != made || closed) {
        made.close();
      }
    }
    return Objects.requireNonNull(known);
  }

  /**
   * Follows witnesses over a connection of its own, a WebSocket where this one is HTTP: {@code
   * deponent_subscribeWitnesses}, which other servers have not. The feed outlives this client.
   *
   * @param after the last block that the caller knows, behind which the server begins; null for
   *     what comes from now on
   * @throws RpcException if the server does not know that block any more (4444)
   */
  public WitnessFeed followWitnesses(@Nullable Hash after) {
    String address = builder.address;
    if (address.startsWith("http")) {
      address = "ws" + address.substring(4);
    }
    return WitnessFeed.open(builder.connection(address).connect(), after);
  }

  private static List<Fork> forks(NewPayload payload) {
    return switch (payload.payload().version()) {
      case 1 -> List.of(Fork.PARIS);
      case 2 -> List.of(Fork.SHANGHAI);
      case 3 ->
          payload.executionRequests().isPresent()
              ? List.of(Fork.OSAKA, Fork.PRAGUE)
              : List.of(Fork.CANCUN);
      default -> List.of(Fork.AMSTERDAM);
    };
  }

  /** The forks whose attributes have these fields. Without attributes it may be any. */
  private static List<Fork> forks(@Nullable PayloadAttributes attributes) {
    if (attributes == null) {
      return NEWEST_FIRST.subList(1, NEWEST_FIRST.size());
    }
    return switch (attributes.version()) {
      case 1 -> List.of(Fork.PARIS);
      case 2 -> List.of(Fork.SHANGHAI);
      case 3 -> List.of(Fork.OSAKA, Fork.PRAGUE, Fork.CANCUN);
      default -> List.of(Fork.AMSTERDAM);
    };
  }

  /** Calls for the fork that was taken last, then for the others as long as each is refused. */
  private <T> T attempt(List<Fork> fitting, Function<Fork, T> call, boolean mayBeMissing) {
    List<Fork> order = new ArrayList<>(fitting);
    Fork last = accepted;
    if (order.remove(last)) {
      order.add(0, last);
    }
    Fork only = fixed;
    if (only != null) {
      order = List.of(only);
    }
    for (int next = 0; ; next++) {
      Fork fork = order.get(next);
      try {
        T answer = call.apply(fork);
        accepted = fork;
        return answer;
      } catch (RpcException refused) {
        boolean isOther =
            refused.code() == UNSUPPORTED_FORK
                || mayBeMissing && refused.code() == JsonCalls.METHOD_NOT_FOUND;
        if (!isOther || next == order.size() - 1) {
          throw refused;
        }
      }
    }
  }

  private static <T> CompletableFuture<T> async(Supplier<T> call) {
    CompletableFuture<T> future = new CompletableFuture<>();
    Thread.startVirtualThread(
        () -> {
          try {
            future.complete(call.get());
          } catch (RuntimeException | Error failure) {
            future.completeExceptionally(failure);
          }
        });
    return future;
  }

  /** Ends all connections, and what waits for them. Witnesses stay. */
  @Override
  public void close() {
    closed = true;
    calls.close();
    Provider other = provider.get();
    if (other != null) {
      other.close();
    }
  }
}
