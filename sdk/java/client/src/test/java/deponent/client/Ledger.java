package deponent.client;

import deponent.eth.Address;
import deponent.eth.Bytes;
import deponent.eth.Hash;
import deponent.eth.JsonReader;
import deponent.eth.JsonWriter;
import deponent.eth.RpcException;
import deponent.eth.SignedTransaction;
import deponent.eth.Wei;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.TreeMap;

/** A server of one account: a pool, and a block for each transaction that is mined. */
class Ledger implements Scripted.Script {
  private final Address sender;

  /** The transactions that were mined; the one at n has the nonce n. */
  final List<SignedTransaction> mined = new ArrayList<>();

  /** The transactions that wait, by nonce. */
  final TreeMap<Long, SignedTransaction> pool = new TreeMap<>();

  /** All bytes that were sent, in their order. */
  final List<Bytes> sent = new ArrayList<>();

  Ledger(Address sender) {
    this.sender = sender;
  }

  static String quantity(long number) {
    return "\"0x" + Long.toHexString(number) + "\"";
  }

  @Override
  public synchronized String answer(String method, String params) {
    return switch (method) {
      case "eth_chainId" -> quantity(1);
      case "eth_blockNumber" -> quantity(mined.size());
      case "eth_estimateGas" -> quantity(21_000);
      case "eth_gasPrice" -> quantity(1_000);
      case "eth_getTransactionCount" -> quantity(count(params.contains("pending"), params));
      case "eth_sendRawTransaction" -> take(first(params).nextBytes());
      case "eth_getTransactionByHash" -> transaction(first(params).nextHash());
      case "eth_getTransactionReceipt" -> receipt(first(params).nextHash());
      case "eth_getBlockByNumber" -> block(first(params).nextQuantity(), params);
      default -> throw new RpcException(-32601, "no method " + method, null);
    };
  }

  private static JsonReader first(String params) {
    JsonReader json = new JsonReader(params);
    json.beginArray();
    return json;
  }

  /** The account's transactions, after a block or with those that wait. */
  long count(boolean pending, String params) {
    long count = mined.size();
    if (params.contains(",\"0x")) {
      JsonReader json = first(params);
      json.skipValue();
      return Math.min(count, json.nextQuantity());
    }
    while (pending && pool.containsKey(count)) {
      count++;
    }
    return count;
  }

  /** Takes a transaction as nodes do. */
  String take(Bytes raw) {
    sent.add(raw);
    SignedTransaction signed = SignedTransaction.decode(raw);
    long nonce = signed.transaction().nonce();
    if (nonce < mined.size()) {
      throw new RpcException(-32000, "nonce too low: next nonce " + mined.size(), null);
    }
    SignedTransaction there = pool.get(nonce);
    if (signed.equals(there)) {
      throw new RpcException(-32000, "already known", null);
    }
    if (there != null && !isDearer(signed, there)) {
      throw new RpcException(-32000, "replacement transaction underpriced", null);
    }
    pool.put(nonce, signed);
    return "\"" + signed.hash() + "\"";
  }

  private static boolean isDearer(SignedTransaction one, SignedTransaction other) {
    Wei least = other.transaction().maxFeePerGas().times(11).dividedBy(10);
    return one.transaction().maxFeePerGas().compareTo(least) >= 0;
  }

  /** Mines the next transaction, if it is there. */
  synchronized void mine() {
    SignedTransaction next = pool.remove((long) mined.size());
    if (next != null) {
      mined.add(next);
    }
  }

  String transaction(Hash hash) {
    for (SignedTransaction one : pool.values()) {
      if (one.hash().equals(hash)) {
        return json(one, -1);
      }
    }
    for (int i = 0; i < mined.size(); i++) {
      if (mined.get(i).hash().equals(hash)) {
        return json(mined.get(i), i);
      }
    }
    return "null";
  }

  private String json(SignedTransaction one, long place) {
    JsonWriter json = new JsonWriter().beginObject().name("hash").value(one.hash());
    json.name("from").value(sender).name("nonce").quantity(one.transaction().nonce());
    Address to = one.transaction().to();
    if (to != null) {
      json.name("to").value(to);
    }
    json.name("gas").quantity(one.transaction().gasLimit());
    json.name("value").quantity(one.transaction().value());
    json.name("input").value(one.transaction().data());
    json.name("gasPrice").quantity(one.transaction().maxFeePerGas());
    if (place >= 0) {
      json.name("blockHash").value(Blocks.hash(place + 1));
      json.name("blockNumber").quantity(place + 1).name("transactionIndex").quantity(0);
    }
    return text(json.endObject());
  }

  static String text(JsonWriter json) {
    return new String(json.toBytes(), StandardCharsets.UTF_8);
  }

  String receipt(Hash hash) {
    for (int i = 0; i < mined.size(); i++) {
      if (mined.get(i).hash().equals(hash)) {
        return receipt(hash, i + 1, true);
      }
    }
    return "null";
  }

  String receipt(Hash hash, long block, boolean success) {
    JsonWriter json = new JsonWriter().beginObject().name("transactionHash").value(hash);
    json.name("transactionIndex").quantity(0).name("blockHash").value(Blocks.hash(block));
    json.name("blockNumber").quantity(block).name("from").value(sender);
    json.name("status").quantity(success ? 1 : 0).name("gasUsed").quantity(21_000);
    json.name("cumulativeGasUsed").quantity(21_000).name("effectiveGasPrice").quantity(1);
    json.name("logs").beginArray().endArray().name("logsBloom").hex(new byte[256]);
    return text(json.endObject());
  }

  String block(long number, String params) {
    if (number > mined.size()) {
      return "null";
    }
    boolean whole = number > 0 && params.contains("true");
    String transactions = whole ? json(mined.get((int) number - 1), number - 1) : "";
    return Blocks.block(number, number, "0x1", transactions);
  }
}
