package deponent.client;

import deponent.eth.Bytes;
import deponent.eth.Hash;
import deponent.eth.JsonWriter;
import deponent.rpc.Request;
import java.util.EnumSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;

/**
 * The requests of {@code trace_*}, OpenEthereum's module, which erigon, reth, Nethermind, Besu and
 * Deponent have.
 *
 * <pre>{@code
 * List<FlatTrace> traces = eth.request(Trace.block(BlockId.of(23_000_000))).orElseThrow();
 * }</pre>
 */
public final class Trace {
  private Trace() {}

  /** What is told of a transaction that runs again. */
  public enum Kind {
    /** Its calls. */
    TRACE("trace"),
    /** What it changes in the state. */
    STATE_DIFF("stateDiff"),
    /** Its instructions. */
    VM_TRACE("vmTrace");

    private final String word;

    Kind(String word) {
      this.word = word;
    }
  }

  /** {@code trace_block}: what was done in a block; none where there is no such block. */
  public static Request<Optional<List<FlatTrace>>> block(BlockId block) {
    return Eth.read(
        "trace_block",
        block::write,
        json -> Members.optional(json, all -> Members.list(all, FlatTrace::read)));
  }

  /** {@code trace_transaction}: what a transaction did; none where it is in no block. */
  public static Request<Optional<List<FlatTrace>>> transaction(Hash transaction) {
    return Eth.read(
        "trace_transaction",
        json -> json.value(transaction),
        json -> Members.optional(json, all -> Members.list(all, FlatTrace::read)));
  }

  /** {@code trace_get}: one of the things that a transaction did; none where there is no such. */
  public static Request<Optional<FlatTrace>> get(Hash transaction, long... traceAddress) {
    long[] place = traceAddress.clone();
    return Eth.read(
        "trace_get",
        json -> {
          json.value(transaction).beginArray();
          for (long one : place) {
            json.quantity(one);
          }
          json.endArray();
        },
        json -> Members.optional(json, FlatTrace::read));
  }

  /** {@code trace_filter}: what a filter wants, in the order of the chain. */
  public static Request<List<FlatTrace>> filter(TraceFilter filter) {
    return Eth.read("trace_filter", filter::write, json -> Members.list(json, FlatTrace::read));
  }

  /** {@code trace_call}: what a call after a block does. */
  public static Request<Replay> call(Call call, BlockId block, Kind... kinds) {
    Set<Kind> wanted = set(kinds);
    return Eth.read(
        "trace_call",
        json -> {
          call.write(json);
          kinds(wanted, json);
          block.write(json);
        },
        Replay::read);
  }

  /** {@code trace_callMany}: what calls after a block do, each behind those before it. */
  public static Request<List<Replay>> calls(List<Call> calls, BlockId block, Kind... kinds) {
    List<Call> all = List.copyOf(calls);
    Set<Kind> wanted = set(kinds);
    return Eth.read(
        "trace_callMany",
        json -> {
          json.beginArray();
          for (Call call : all) {
            call.write(json.beginArray());
            kinds(wanted, json);
            json.endArray();
          }
          block.write(json.endArray());
        },
        json -> Members.list(json, Replay::read));
  }

  /** {@code trace_rawTransaction}: what a signed transaction would do, which is not sent. */
  public static Request<Replay> rawTransaction(Bytes transaction, Kind... kinds) {
    Set<Kind> wanted = set(kinds);
    return Eth.read(
        "trace_rawTransaction", json -> kinds(wanted, json.value(transaction)), Replay::read);
  }

  /** {@code trace_replayTransaction}: a transaction of a block runs again. */
  public static Request<Replay> replayTransaction(Hash transaction, Kind... kinds) {
    Set<Kind> wanted = set(kinds);
    return Eth.read(
        "trace_replayTransaction", json -> kinds(wanted, json.value(transaction)), Replay::read);
  }

  /** {@code trace_replayBlockTransactions}: all transactions of a block run again. */
  public static Request<List<Replay>> replayBlock(BlockId block, Kind... kinds) {
    Set<Kind> wanted = set(kinds);
    return Eth.read(
        "trace_replayBlockTransactions",
        json -> {
          block.write(json);
          kinds(wanted, json);
        },
        json -> Members.list(json, Replay::read));
  }

  private static Set<Kind> set(Kind... kinds) {
    Set<Kind> wanted = EnumSet.noneOf(Kind.class);
    wanted.addAll(List.of(kinds));
    return wanted;
  }

  private static void kinds(Set<Kind> kinds, JsonWriter json) {
    json.beginArray();
    kinds.forEach(kind -> json.value(kind.word));
    json.endArray();
  }
}
