package deponent.client;

import deponent.eth.AbiError;
import deponent.eth.AbiFunction;
import deponent.eth.AbiValues;
import deponent.eth.Address;
import deponent.eth.Bytes;
import deponent.eth.EthException;
import deponent.eth.MalformedException;
import deponent.eth.ProtocolException;
import deponent.eth.RevertException;
import java.util.ArrayList;
import java.util.List;

/**
 * Calls of contracts that need data off the chain (EIP-3668): such a call reverts with {@code
 * OffchainLookup}, which names servers; the contract verifies what they answer.
 */
final class CcipRead {
  /** What names this side as the server of a batch of requests (ENSIP-21). */
  static final String LOCAL_BATCH = "x-batch-gateway:true";

  private static final AbiError LOOKUP =
      AbiError.of(
          "OffchainLookup(address sender, string[] urls, bytes callData, bytes4 callbackFunction,"
              + " bytes extraData)");

  private static final AbiFunction BATCH =
      AbiFunction.of(
          "query((address sender, string[] urls, bytes data)[]) view"
              + " returns (bool[] failures, bytes[] responses)");

  private static final AbiError HTTP = AbiError.of("HttpError(uint16 status, string message)");
  private static final AbiFunction CALLBACK = AbiFunction.of("callback(bytes, bytes)");

  /** Lookups that follow each other at most, as EIP-3668 proposes. */
  private static final int ROUNDS = 4;

  /** Batches in each other at most. */
  private static final int DEEPEST = 2;

  /** Servers that are asked for one call at most, bytes that they answer together, and the time. */
  private static final int REQUESTS = 64;

  private static final long BYTES = 16 << 20;
  private static final long NANOS = 30_000_000_000L;

  private final Client client;
  private final Gateway gateway;
  private final BlockId block;
  private final long begun = System.nanoTime();
  private int requests;
  private long bytes;

  /** For one call. */
  CcipRead(Client client, Gateway gateway, BlockId block) {
    this.client = client;
    this.gateway = gateway;
    this.block = block;
  }

  /**
   * What a call of {@code contract} returns in the end.
   *
   * @throws ProtocolException if the contract or a server does not keep to EIP-3668, or there is no
   *     end
   * @throws EthException as a call throws it, and a {@link Gateway}
   */
  Bytes call(Address contract, Bytes data) {
    Bytes now = data;
    for (int round = 0; ; round++) {
      try {
        return client.call(Call.to(contract).data(now), block);
      } catch (RevertException revert) {
        if (!LOOKUP.isIn(revert.revertData())) {
          throw revert;
        }
        if (round == ROUNDS) {
          throw new ProtocolException("CCIP-read: more than " + ROUNDS + " lookups in a row");
        }
        now = next(contract, revert.revertData());
      }
    }
  }

  private Bytes next(Address contract, Bytes revert) {
    try {
      return looked(contract, revert);
    } catch (OverLimit over) {
      throw over.failure;
    }
  }

  /** The data of the callback, after a lookup. */
  private Bytes looked(Address contract, Bytes revert) {
    AbiValues lookup;
    try {
      lookup = LOOKUP.decode(revert);
    } catch (MalformedException other) {
      throw new ProtocolException("CCIP-read: " + other.getMessage(), other);
    }
    Address sender = lookup.address("sender");
    if (!sender.equals(contract)) {
      throw new ProtocolException(
          "CCIP-read: the contract " + contract + " asks in the name of " + sender);
    }
    Bytes response = ask(sender, lookup.list("urls"), lookup.bytes("callData"), 0);
    Bytes call = CALLBACK.encode(response, lookup.bytes("extraData"));
    return Bytes.concat(lookup.bytes("callbackFunction"), call.slice(4, call.size()));
  }

  private Bytes ask(Address sender, List<Object> urls, Bytes data, int depth) {
    if (urls.contains(LOCAL_BATCH)) {
      return batch(data, depth);
    }
    EthException last = null;
    for (Object url : urls) {
      count();
      try {
        Bytes answer = gateway.ask((String) url, sender, data);
        bytes += answer.size();
        if (bytes > BYTES) {
          throw new OverLimit("servers answered more than " + BYTES + " bytes");
        }
        return answer;
      } catch (EthException failure) {
        if (failure.getCause() instanceof Gateway.Refusal) {
          throw failure;
        }
        last = failure;
      }
    }
    throw last == null ? new ProtocolException("CCIP-read: a lookup without servers") : last;
  }

  /** Counts a request, and refuses one too many. */
  private void count() {
    if (++requests > REQUESTS) {
      throw new OverLimit("more than " + REQUESTS + " requests of servers");
    }
    if (System.nanoTime() - begun > NANOS) {
      throw new OverLimit("more than 30 s");
    }
  }

  /** Ends the call, also where it is thrown within a batch, whose failures are answers. */
  private static final class OverLimit extends RuntimeException {
    private static final long serialVersionUID = 1;
    final ProtocolException failure;

    OverLimit(String what) {
      failure = new ProtocolException("CCIP-read: " + what + " for one call");
    }
  }

  /** Answers a batch of requests as a server of batches would. */
  private Bytes batch(Bytes data, int depth) {
    if (depth == DEEPEST) {
      throw new ProtocolException("CCIP-read: batches in batches");
    }
    List<Object> queries;
    try {
      queries = BATCH.decodeArguments(data).list(0);
    } catch (MalformedException other) {
      throw new ProtocolException("CCIP-read: a batch: " + other.getMessage(), other);
    }
    List<Object> failures = new ArrayList<>();
    List<Object> responses = new ArrayList<>();
    for (Object one : queries) {
      AbiValues query = (AbiValues) one;
      Bytes response;
      boolean failed = false;
      try {
        response = ask(query.address("sender"), query.list("urls"), query.bytes("data"), depth + 1);
      } catch (EthException failure) {
        failed = true;
        response = error(failure);
      }
      failures.add(failed);
      responses.add(response);
    }
    return BATCH.encodeResult(failures, responses);
  }

  private static Bytes error(EthException failure) {
    String message = String.valueOf(failure.getMessage());
    return failure.getCause() instanceof Gateway.Refusal refusal
        ? HTTP.encode(refusal.status(), message)
        : AbiError.REASON.encode(message);
  }
}
