package deponent.client;

import deponent.eth.AccessListEntry;
import deponent.eth.Address;
import deponent.eth.Bytes;
import deponent.eth.Hash;
import deponent.eth.JsonReader;
import deponent.eth.JsonWriter;
import deponent.eth.Wei;
import deponent.rpc.Request;
import deponent.sets.Sets;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** Makes our request of the method and parameters of another's. */
final class Asked {
  private final List<?> params;

  private Asked(List<?> params) {
    this.params = params;
  }

  /** Our request, or null where we have none of this method, or refuse such parameters. */
  static @Nullable Request<?> of(String method, List<?> params) {
    Asked asked = new Asked(params);
    try {
      return asked.request(method);
    } catch (IllegalArgumentException | ClassCastException refused) {
      return null;
    }
  }

  private @Nullable Request<?> request(String method) {
    return switch (method) {
      case "eth_chainId" -> Eth.chainId();
      case "eth_blockNumber" -> Eth.blockNumber();
      case "eth_gasPrice" -> Eth.gasPrice();
      case "eth_maxPriorityFeePerGas" -> Eth.maxPriorityFeePerGas();
      case "eth_blobBaseFee" -> Eth.blobBaseFee();
      case "eth_feeHistory" -> Eth.feeHistory(number(params.get(0)), block(1), percentiles());
      case "eth_getBalance" -> Eth.balance(address(params.get(0)), block(1));
      case "eth_getTransactionCount" -> Eth.transactionCount(address(params.get(0)), block(1));
      case "eth_getCode" -> Eth.code(address(params.get(0)), block(1));
      case "eth_getStorageAt" ->
          Eth.storageAt(address(params.get(0)), hash(params.get(1)), block(2));
      case "eth_call" -> Eth.call(call(params.get(0)), block(1));
      case "eth_estimateGas" -> Eth.estimateGas(call(params.get(0)), block(1));
      case "eth_getBlockByNumber", "eth_getBlockByHash" ->
          (Boolean) params.get(1) ? Eth.blockWithTransactions(block(0)) : Eth.block(block(0));
      case "eth_getTransactionByHash" -> Eth.transaction(hash(params.get(0)));
      case "eth_getTransactionReceipt" -> Eth.receipt(hash(params.get(0)));
      case "eth_getBlockReceipts" -> Eth.blockReceipts(block(0));
      case "eth_getLogs" -> Eth.logs(filter((Map<?, ?>) params.get(0)));
      case "eth_sendRawTransaction" -> Eth.sendRawTransaction(Bytes.of((String) params.get(0)));
      default -> null;
    };
  }

  static long number(Object quantity) {
    String digits = (String) quantity;
    if (!digits.startsWith("0x")) {
      throw new IllegalArgumentException(digits);
    }
    return Long.parseLong(digits.substring(2), 16);
  }

  static Wei wei(Object quantity) {
    return Wei.of(new BigInteger(((String) quantity).substring(2), 16));
  }

  static Address address(Object hex) {
    return Address.of((String) hex);
  }

  static Hash hash(Object hex) {
    return Hash.of((String) hex);
  }

  private BlockId block(int index) {
    return index < params.size() ? block(params.get(index)) : BlockId.LATEST;
  }

  static BlockId block(Object named) {
    if (named instanceof Map<?, ?> object) {
      boolean required = Boolean.TRUE.equals(object.get("requireCanonical"));
      return new BlockId.OfHash(hash(object.get("blockHash")), required);
    }
    String text = (String) named;
    if (text.length() == 66) {
      return BlockId.of(hash(text));
    }
    for (BlockId.Tag tag : BlockId.Tag.values()) {
      if (tag.toString().equals(text)) {
        return tag;
      }
    }
    return BlockId.of(number(text));
  }

  private double[] percentiles() {
    List<?> list = params.size() > 2 ? (List<?>) params.get(2) : List.of();
    return list.stream().mapToDouble(one -> ((BigDecimal) one).doubleValue()).toArray();
  }

  static Call call(Object given) {
    Map<?, ?> members = (Map<?, ?>) given;
    Call call =
        members.get("to") == null ? Call.create(Bytes.EMPTY) : Call.to(address(members.get("to")));
    for (Map.Entry<?, ?> member : members.entrySet()) {
      Object value = member.getValue();
      call =
          switch ((String) member.getKey()) {
            case "to", "type" -> call;
            case "from" -> call.from(address(value));
            case "value" -> call.value(wei(value));
            case "input", "data" -> call.data(Bytes.of((String) value));
            case "gas" -> call.gasLimit(number(value));
            case "gasPrice" -> call.gasPrice(wei(value));
            case "maxFeePerGas" ->
                call.fees(wei(value), call.maxPriorityFeePerGas().orElse(Wei.ZERO));
            case "maxPriorityFeePerGas" -> call.fees(wei(members.get("maxFeePerGas")), wei(value));
            case "nonce" -> call.nonce(number(value));
            case "chainId" -> call.chainId(number(value));
            case "accessList" -> call.accessList(entries((List<?>) value));
            case "blobVersionedHashes" ->
                call.blobs(
                    ((List<?>) value).stream().map(Asked::hash).toList(),
                    wei(members.get("maxFeePerBlobGas")));
            case "maxFeePerBlobGas" -> call;
            default -> throw new IllegalArgumentException(member.getKey().toString());
          };
    }
    return call;
  }

  private static List<AccessListEntry> entries(List<?> list) {
    return list.stream()
        .map(one -> (Map<?, ?>) one)
        .map(
            one ->
                new AccessListEntry(
                    address(one.get("address")),
                    ((List<?>) one.get("storageKeys")).stream().map(Asked::hash).toList()))
        .toList();
  }

  private static LogFilter filter(Map<?, ?> members) {
    LogFilter filter = LogFilter.ALL;
    if (members.get("address") instanceof List<?> several) {
      filter = filter.from(several.stream().map(Asked::address).toArray(Address[]::new));
    } else if (members.get("address") != null) {
      filter = filter.from(address(members.get("address")));
    }
    if (members.get("topics") instanceof List<?> topics) {
      for (int i = 0; i < topics.size(); i++) {
        Object topic = topics.get(i);
        if (topic instanceof List<?> several) {
          filter = filter.topic(i, several.stream().map(Asked::hash).toArray(Hash[]::new));
        } else if (topic != null) {
          filter = filter.topic(i, hash(topic));
        }
      }
    }
    if (members.get("blockHash") != null && members.get("fromBlock") != null) {
      throw new IllegalArgumentException("both a block and a range");
    }
    if (members.get("blockHash") != null) {
      filter = filter.atBlock(hash(members.get("blockHash")));
    }
    if (members.get("fromBlock") != null) {
      filter = filter.fromBlock(block(members.get("fromBlock")));
    }
    if (members.get("toBlock") != null) {
      filter = filter.toBlock(block(members.get("toBlock")));
    }
    return filter;
  }

  /** The parameters of a request, as a tree. */
  static List<?> params(Request<?> request) {
    JsonWriter json = new JsonWriter().beginArray();
    request.params().write(json);
    return (List<?>) Sets.tree(new JsonReader(json.endArray().toBytes()));
  }
}
