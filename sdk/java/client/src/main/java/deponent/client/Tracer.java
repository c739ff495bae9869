package deponent.client;

import deponent.eth.Address;
import deponent.eth.JsonReader;
import deponent.eth.JsonWriter;
import deponent.rpc.Decoder;
import java.time.Duration;
import java.util.EnumSet;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * What a server looks at while it runs a transaction again, by geth's tracers.
 *
 * <pre>{@code
 * CallFrame calls = eth.request(Debug.traceTransaction(hash, Tracer.calls()));
 * StateChange change = eth.request(Debug.traceTransaction(hash, Tracer.changes()));
 * }</pre>
 *
 * @param <T> what it sees
 */
public final class Tracer<T> {
  /** What instructions are told with; the stack and touched slots are by themselves. */
  public enum With {
    /** The memory before each instruction. */
    MEMORY,
    /** What the last call returned. */
    RETURN_DATA,
    /** No stack. */
    NO_STACK,
    /** No slots. */
    NO_STORAGE
  }

  private final @Nullable String name;
  private final String config;
  private final Decoder<T> read;
  private final @Nullable Duration timeout;

  private Tracer(
      @Nullable String name, String config, Decoder<T> read, @Nullable Duration timeout) {
    this.name = name;
    this.config = config;
    this.read = read;
    this.timeout = timeout;
  }

  /** The calls in each other: {@code callTracer}. */
  public static Tracer<CallFrame> calls() {
    return new Tracer<>("callTracer", "{}", CallFrame::read, null);
  }

  /** The calls in each other with their logs: {@code callTracer}. */
  public static Tracer<CallFrame> callsWithLogs() {
    return new Tracer<>("callTracer", "{\"withLog\":true}", CallFrame::read, null);
  }

  /** The state that the transaction needs: {@code prestateTracer}. */
  public static Tracer<Map<Address, AccountState>> state() {
    return new Tracer<>(
        "prestateTracer",
        "{}",
        json -> Members.map(json, Members::address, AccountState::read),
        null);
  }

  /** What the transaction changes in the state: {@code prestateTracer} in its mode of changes. */
  public static Tracer<StateChange> changes() {
    return new Tracer<>("prestateTracer", "{\"diffMode\":true}", StateChange::read, null);
  }

  /** The instructions that run: the struct logger. */
  public static Tracer<StepTrace> steps(With... options) {
    Set<With> with = EnumSet.noneOf(With.class);
    with.addAll(Set.of(options));
    JsonWriter json = new JsonWriter().beginObject();
    flag("enableMemory", with.contains(With.MEMORY), json);
    flag("enableReturnData", with.contains(With.RETURN_DATA), json);
    flag("disableStack", with.contains(With.NO_STACK), json);
    flag("disableStorage", with.contains(With.NO_STORAGE), json);
    return new Tracer<>(null, text(json.endObject()), StepTrace::read, null);
  }

  private static void flag(String name, boolean value, JsonWriter json) {
    if (value) {
      json.name(name).value(true);
    }
  }

  private static String text(JsonWriter json) {
    return new String(json.toBytes(), java.nio.charset.StandardCharsets.UTF_8);
  }

  /**
   * Any other one.
   *
   * @param name its name, or its JavaScript
   * @param config its configuration, an object of JSON
   * @param read the reader of what it sees
   */
  public static <T> Tracer<T> of(String name, String config, Decoder<T> read) {
    return new Tracer<>(Objects.requireNonNull(name), config, read, null);
  }

  /** The same, which the server ends after so much time; 5 s by default in geth. */
  public Tracer<T> timeout(Duration limit) {
    return new Tracer<>(name, config, read, limit);
  }

  T read(JsonReader json) {
    return read.read(json);
  }

  /** Writes it as a parameter; {@code overrides} are those of a call. */
  void write(JsonWriter json, Overrides overrides) {
    json.beginObject();
    if (name != null) {
      json.name("tracer").value(name).name("tracerConfig").raw(config);
    } else if (config.length() > 2) {
      members(json);
    }
    if (timeout != null) {
      json.name("timeout").value(timeout.toMillis() + "ms");
    }
    if (overrides.hasState()) {
      overrides.writeState(json.name("stateOverrides"));
    }
    if (overrides.hasBlock()) {
      overrides.writeBlock(json.name("blockOverrides"));
    }
    json.endObject();
  }

  /** The struct logger's options are members beside the others. */
  private void members(JsonWriter json) {
    JsonReader options = new JsonReader(config);
    options.beginObject();
    while (options.hasNext()) {
      json.name(options.nextName()).raw(options.nextJson());
    }
    options.endObject();
  }
}
