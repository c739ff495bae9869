package deponent.client;

import deponent.eth.Bytes;
import deponent.eth.Hash;
import deponent.eth.JsonReader;
import deponent.rpc.Params;
import deponent.rpc.Request;
import java.util.List;

/**
 * The requests of {@code debug_*}, which servers offer to their owners as a rule.
 *
 * <pre>{@code
 * CallFrame calls = eth.request(Debug.traceTransaction(hash, Tracer.calls()));
 * }</pre>
 */
public final class Debug {
  private Debug() {}

  /** {@code debug_getRawBlock}: a block in RLP. */
  public static Request<Bytes> rawBlock(BlockId block) {
    return Eth.read("debug_getRawBlock", block::write, JsonReader::nextBytes);
  }

  /** {@code debug_getRawHeader}: a header in RLP. */
  public static Request<Bytes> rawHeader(BlockId block) {
    return Eth.read("debug_getRawHeader", block::write, JsonReader::nextBytes);
  }

  /** {@code debug_getRawReceipts}: the receipts of a block, each as in the trie of receipts. */
  public static Request<List<Bytes>> rawReceipts(BlockId block) {
    return Eth.read(
        "debug_getRawReceipts", block::write, json -> Members.list(json, JsonReader::nextBytes));
  }

  /** {@code debug_getRawTransaction}: a transaction by EIP-2718, empty where it is not known. */
  public static Request<Bytes> rawTransaction(Hash hash) {
    return Eth.read("debug_getRawTransaction", json -> json.value(hash), JsonReader::nextBytes);
  }

  /** {@code debug_getRawBlockAccessList}: the access list of a block (EIP-7928) in RLP. */
  public static Request<Bytes> rawBlockAccessList(BlockId block) {
    return Eth.read("debug_getRawBlockAccessList", block::write, JsonReader::nextBytes);
  }

  /** {@code debug_getBadBlocks}: blocks that the server found invalid. */
  public static Request<List<BadBlock>> badBlocks() {
    return Eth.read("debug_getBadBlocks", Params.NONE, json -> Members.list(json, BadBlock::read));
  }

  /**
   * {@code debug_executionWitness}: the state with which a block can be run by someone who has
   * none.
   */
  public static Request<ExecutionWitness> executionWitness(BlockId block) {
    return Eth.read("debug_executionWitness", block::write, ExecutionWitness::read);
  }

  /** {@code debug_traceTransaction}: what a tracer sees of a transaction that is in a block. */
  public static <T> Request<T> traceTransaction(Hash transaction, Tracer<T> tracer) {
    return Eth.read(
        "debug_traceTransaction",
        json -> tracer.write(json.value(transaction), Overrides.NONE),
        tracer::read);
  }

  /**
   * {@code debug_traceBlockByNumber} or {@code debug_traceBlockByHash}: what a tracer sees of each
   * transaction of a block.
   */
  public static <T> Request<List<TransactionTrace<T>>> traceBlock(BlockId block, Tracer<T> tracer) {
    return Eth.ofBlock(
        "debug_traceBlockByNumber",
        "debug_traceBlockByHash",
        block,
        json -> tracer.write(json, Overrides.NONE),
        json -> Members.list(json, one -> TransactionTrace.read(one, tracer)));
  }

  /** {@code debug_traceCall}: what a tracer sees of a call after a block. */
  public static <T> Request<T> traceCall(Call call, BlockId block, Tracer<T> tracer) {
    return traceCall(call, block, tracer, Overrides.NONE);
  }

  /** {@code debug_traceCall}: what a tracer sees of a call in another state or block. */
  public static <T> Request<T> traceCall(
      Call call, BlockId block, Tracer<T> tracer, Overrides overrides) {
    return Eth.read(
        "debug_traceCall",
        json -> {
          call.write(json);
          block.write(json);
          tracer.write(json, overrides);
        },
        tracer::read);
  }
}
