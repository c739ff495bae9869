package deponent.client;

import deponent.eth.AbiError;
import deponent.eth.AbiFunction;
import deponent.eth.AbiValues;
import deponent.eth.Address;
import deponent.eth.Bytes;
import deponent.eth.Keccak256;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** A universal resolver with records of its own, and with those of servers that it names. */
final class FakeEns implements Wire.Answers {
  static final AbiFunction RESOLVE =
      AbiFunction.of(
          "resolveWithGateways(bytes name, bytes data, string[] gateways)"
              + " returns (bytes, address)");

  static final AbiFunction REVERSE =
      AbiFunction.of(
          "reverseWithGateways(bytes, uint256, string[]) returns (string, address, address)");

  static final AbiFunction CALLBACK =
      AbiFunction.of("resolved(bytes response, bytes extra) returns (bytes, address)");

  static final AbiFunction BATCH_CALLBACK =
      AbiFunction.of("resolvedAll(bytes response, bytes extra) returns (bytes, address)");

  static final AbiFunction BATCH =
      AbiFunction.of(
          "query((address sender, string[] urls, bytes data)[]) returns (bool[], bytes[])");

  static final AbiError LOOKUP =
      AbiError.of("OffchainLookup(address, string[], bytes, bytes4, bytes)");

  static final AbiError NOT_FOUND = AbiError.of("ResolverNotFound(bytes name)");

  /** Results by the name in DNS's format and the call. */
  final Map<Bytes, Map<Bytes, Bytes>> records = new HashMap<>();

  /** Names by addresses. */
  final Map<Bytes, String> names = new HashMap<>();

  /** Reverts by names. */
  final Map<Bytes, Bytes> reverts = new HashMap<>();

  /** The servers of names whose records are elsewhere. */
  final Map<Bytes, List<String>> servers = new HashMap<>();

  /** Whether requests of servers leave in batches. */
  boolean batches;

  /** Lookups behind the first one. */
  int more;

  /** In whose name it asks. */
  Address sender = Ens.UNIVERSAL_RESOLVER;

  /** The proof that it wants behind a record of another server. */
  static Bytes proven(Bytes record) {
    return Bytes.concat(Bytes.of(Keccak256.hash(record).toBytes()), record);
  }

  @Override
  public synchronized String answer(String method, List<Object> params, Wire.Peer peer) {
    if (!method.equals("eth_call")) {
      throw new Wire.Refusal(-32601, method);
    }
    Map<?, ?> call = (Map<?, ?>) params.get(0);
    if (!Address.of((String) call.get("to")).equals(Ens.UNIVERSAL_RESOLVER)) {
      return "\"0x\"";
    }
    Bytes data =
        Bytes.of((String) (call.get("input") == null ? call.get("data") : call.get("input")));
    return "\"" + run(data) + "\"";
  }

  private Bytes run(Bytes data) {
    if (REVERSE.isCalledBy(data)) {
      Bytes address = REVERSE.decodeArguments(data).bytes(0);
      revertOf(address);
      return REVERSE.encodeResult(names.getOrDefault(address, ""), Address.ZERO, Address.ZERO);
    }
    if (RESOLVE.isCalledBy(data)) {
      AbiValues arguments = RESOLVE.decodeArguments(data);
      Bytes name = arguments.bytes(0);
      revertOf(name);
      if (servers.containsKey(name)) {
        throw lookup(servers.get(name), arguments.bytes(1), more, arguments.list(2));
      }
      Map<Bytes, Bytes> its = records.get(name);
      if (its == null) {
        throw revert(NOT_FOUND.encode(name));
      }
      return result(its.getOrDefault(arguments.bytes(1), Bytes.EMPTY));
    }
    if (BATCH_CALLBACK.isCalledBy(data)) {
      Bytes response = BATCH_CALLBACK.decodeArguments(data).bytes(0);
      AbiValues all = BATCH.decodeResult(response);
      if ((Boolean) all.list(0).get(0)) {
        throw revert((Bytes) all.list(1).get(0));
      }
      return result(checked((Bytes) all.list(1).get(0)));
    }
    AbiValues arguments = CALLBACK.decodeArguments(data);
    Bytes record = checked(arguments.bytes(0));
    int left = arguments.bytes(1).at(0);
    if (left > 0) {
      throw lookup(servers.values().iterator().next(), record, left - 1, List.of());
    }
    return result(record);
  }

  private void revertOf(Bytes key) {
    Bytes revert = reverts.get(key);
    if (revert != null) {
      throw revert(revert);
    }
  }

  private static Bytes result(Bytes record) {
    return RESOLVE.encodeResult(record, Address.ZERO);
  }

  private static Bytes checked(Bytes proven) {
    if (proven.size() < 32 || !proven(proven.slice(32, proven.size())).equals(proven)) {
      throw revert(AbiError.REASON.encode("bad proof"));
    }
    return proven.slice(32, proven.size());
  }

  private Wire.Refusal lookup(List<String> urls, Bytes data, int left, List<Object> gateways) {
    if (batches) {
      Bytes query = BATCH.encode(List.of(List.of(sender, urls, data)));
      Bytes callback = BATCH_CALLBACK.selector();
      return revert(LOOKUP.encode(sender, gateways, query, callback, Bytes.EMPTY));
    }
    Bytes extra = Bytes.of(new byte[] {(byte) left});
    return revert(LOOKUP.encode(sender, urls, data, CALLBACK.selector(), extra));
  }

  private static Wire.Refusal revert(Bytes data) {
    return new Wire.Refusal(3, "execution reverted", ",\"data\":\"" + data + "\"");
  }
}
