package deponent.client;

import deponent.eth.Abi;
import deponent.eth.AbiFunction;
import deponent.eth.AbiValues;
import deponent.eth.Address;
import deponent.eth.Bytes;
import deponent.eth.EthException;
import deponent.eth.MalformedException;
import deponent.eth.RevertException;
import deponent.eth.RpcException;
import deponent.rpc.Batch;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import org.jspecify.annotations.Nullable;

/**
 * Calls of functions that run together, on the state after one block. The contract Multicall3 runs
 * them where the chain has it, so they cost one request; else they leave in a JSON-RPC batch, in
 * the name of that contract. It belongs to one thread.
 *
 * <pre>{@code
 * Multicall calls = eth.multicall();
 * holders.forEach(holder -> calls.add(token, balanceOf, holder));
 * for (Outcome outcome : calls.run()) {
 *   switch (outcome) {
 *     case Outcome.Value(AbiValues values) -> sum = sum.add(values.integer(0));
 *     case Outcome.Failed(EthException why) -> log(why);
 *   }
 * }
 * }</pre>
 *
 * <p>Calls leave in parts of at most 500 calls and 96 KiB of data; a part that the server gives up
 * is halved. A call that reverts without data, as one does that ran out of gas, is tried once more
 * on its own.
 */
public final class Multicall {
  /** Where chains have Multicall3. */
  public static final Address CONTRACT = Address.of("0xcA11bde05977b3631167028862bE2a173976CA11");

  private static final AbiFunction AGGREGATE =
      AbiFunction.of(
          "aggregate3((address target, bool allowFailure, bytes callData)[] calls) payable"
              + " returns ((bool success, bytes returnData)[] returnData)");

  private static final int MOST_CALLS = 500;
  private static final int MOST_BYTES = 96 << 10;

  /** The code and message that geth has for reverts. */
  private static final int REVERTED = 3;

  private static final int NO_METHOD = -32601;
  private static final int THROTTLED = -32005;

  private static final String MESSAGE = "execution reverted";

  private final Client client;
  private final List<Part> parts = new ArrayList<>();
  private BlockId block = BlockId.LATEST;
  private Abi errors = Abi.of();

  Multicall(Client client) {
    this.client = client;
  }

  /** A call, and what became of it, once that is known. */
  private static final class Part {
    final Address to;
    final AbiFunction function;
    final Bytes data;
    @Nullable Outcome outcome;

    Part(Address to, AbiFunction function, Bytes data) {
      this.to = to;
      this.function = function;
      this.data = data;
    }

    /** Its bytes in the arguments of Multicall3, about. */
    int bytes() {
      return 5 * 32 + data.size() + 31;
    }
  }

  /** On the state after this block. A tag is looked up once, so all calls have the same block. */
  public Multicall at(BlockId block) {
    this.block = block;
    return this;
  }

  /** Knows the errors of {@code abi} by name, where a call reverts. */
  public Multicall errors(Abi abi) {
    errors = abi;
    return this;
  }

  /**
   * Adds a call.
   *
   * @throws IllegalArgumentException if the arguments do not fit, with the place of the one
   */
  public Multicall add(Address contract, AbiFunction function, Object... arguments) {
    parts.add(new Part(contract, function, function.encode(arguments)));
    return this;
  }

  /**
   * Runs the calls that were added, and has their outcomes in that order. It can be run again.
   *
   * @throws EthException if the server could not be asked
   */
  public List<Outcome> run() {
    if (parts.isEmpty()) {
      return List.of();
    }
    BlockId pinned = pinned();
    parts.forEach(part -> part.outcome = null);
    List<Part> alone = new ArrayList<>();
    for (int from = 0; from < parts.size(); ) {
      int to = from + 1;
      int bytes = parts.get(from).bytes();
      while (to < parts.size() && to - from < MOST_CALLS) {
        bytes += parts.get(to).bytes();
        if (bytes > MOST_BYTES) {
          break;
        }
        to++;
      }
      if (!together(parts.subList(from, to), pinned, alone)) {
        alone.addAll(parts.subList(from, parts.size()));
        break;
      }
      from = to;
    }
    alone(alone, pinned);
    return parts.stream().map(part -> java.util.Objects.requireNonNull(part.outcome)).toList();
  }

  /** The block by its number, where it is named by a tag that moves. */
  private BlockId pinned() {
    if (!(block instanceof BlockId.Tag) || block == BlockId.PENDING) {
      return block;
    }
    if (block == BlockId.LATEST) {
      return BlockId.of(client.blockNumber());
    }
    return client
        .block(block)
        .map(found -> BlockId.of(found.header().number()))
        .orElseThrow(() -> new RpcException(-32001, "the server has no block " + block, null));
  }

  /**
   * Runs calls by Multicall3, and adds those to {@code alone} that have to be run on their own;
   * false if the chain has no such contract.
   */
  private boolean together(List<Part> some, BlockId at, List<Part> alone) {
    if (some.size() == 1) {
      alone.addAll(some);
      return true;
    }
    List<Object> calls = new ArrayList<>();
    some.forEach(part -> calls.add(Arrays.asList(part.to, true, part.data)));
    Bytes returned;
    try {
      returned = client.call(Call.to(CONTRACT).data(AGGREGATE, calls), at);
    } catch (RpcException refused) {
      if (refused.code() == NO_METHOD || refused.code() == THROTTLED) {
        throw refused;
      }
      // Too much gas, time or data: for the server, or for the contract itself.
      int half = some.size() / 2;
      return together(some.subList(0, half), at, alone)
          && together(some.subList(half, some.size()), at, alone);
    }
    List<Object> results = returned.isEmpty() ? List.of() : results(returned);
    if (results.size() != some.size()) {
      return false;
    }
    for (int i = 0; i < some.size(); i++) {
      AbiValues result = (AbiValues) results.get(i);
      Part part = some.get(i);
      Bytes data = result.bytes(1);
      if (result.bool(0)) {
        part.outcome = returned(part, data);
      } else if (data.isEmpty()) {
        alone.add(part);
      } else {
        part.outcome = new Outcome.Failed(RevertException.of(REVERTED, MESSAGE, data, errors));
      }
    }
    return true;
  }

  /** The results, or none where another contract returned something else. */
  private static List<Object> results(Bytes returned) {
    try {
      return AGGREGATE.decodeResult(returned).list(0);
    } catch (MalformedException other) {
      return List.of();
    }
  }

  private static Outcome returned(Part part, Bytes data) {
    try {
      return new Outcome.Value(part.function.decodeResult(data));
    } catch (MalformedException other) {
      return new Outcome.Failed(other);
    }
  }

  /** Runs calls on their own, in one JSON-RPC batch, with the sender that they have otherwise. */
  private void alone(List<Part> some, BlockId at) {
    if (some.isEmpty()) {
      return;
    }
    Batch batch = client.batch();
    List<CompletableFuture<Bytes>> futures = new ArrayList<>();
    for (Part part : some) {
      Call call = Call.to(part.to).from(CONTRACT).data(part.data);
      futures.add(batch.add(Eth.call(call, at)));
    }
    batch.sendAndWait();
    for (int i = 0; i < some.size(); i++) {
      Part part = some.get(i);
      try {
        part.outcome = returned(part, futures.get(i).get());
      } catch (ExecutionException failure) {
        part.outcome = failed(failure.getCause());
      } catch (InterruptedException interrupted) {
        Thread.currentThread().interrupt();
        throw new deponent.eth.TransportException(
            deponent.eth.TransportException.Kind.TIMEOUT, true, "interrupted", interrupted);
      }
    }
  }

  private Outcome failed(Throwable cause) {
    if (cause instanceof RpcException error) {
      return new Outcome.Failed(Reverts.decoded(error, errors));
    }
    if (cause instanceof RuntimeException as) {
      throw as;
    }
    throw new IllegalStateException(cause);
  }
}
