package deponent.client;

import deponent.eth.AccessListEntry;
import deponent.eth.Address;
import deponent.eth.Authorization;
import deponent.eth.Bytes;
import deponent.eth.Hash;
import deponent.eth.JsonReader;
import deponent.eth.JsonWriter;
import deponent.eth.Wei;
import deponent.rpc.Request;
import deponent.sets.Sets;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.util.EnumSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
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
      case "eth_baseFee" -> Eth.baseFee();
      case "eth_syncing" -> Eth.syncing();
      case "eth_config" -> Eth.config();
      case "eth_capabilities" -> Eth.capabilities();
      case "eth_getProof" ->
          Eth.proof(address(params.get(0)), words((List<?>) params.get(1)), block(2));
      case "eth_getStorageValues" -> Eth.storageValues(slots((Map<?, ?>) params.get(0)), block(1));
      case "eth_createAccessList" -> Eth.createAccessList(call(params.get(0)), block(1));
      case "eth_simulateV1" -> Eth.simulate(simulation((Map<?, ?>) params.get(0)), block(1));
      case "eth_getBlockTransactionCountByHash", "eth_getBlockTransactionCountByNumber" ->
          Eth.blockTransactionCount(block(0));
      case "eth_getTransactionByBlockHashAndIndex", "eth_getTransactionByBlockNumberAndIndex" ->
          Eth.transaction(block(0), number(params.get(1)));
      case "net_version" -> Net.version();
      case "txpool_status" -> TxPool.status();
      case "txpool_content" -> TxPool.content();
      case "txpool_contentFrom" -> TxPool.contentFrom(address(params.get(0)));
      case "debug_getRawBlock" -> Debug.rawBlock(block(0));
      case "debug_getRawHeader" -> Debug.rawHeader(block(0));
      case "debug_getRawReceipts" -> Debug.rawReceipts(block(0));
      case "debug_getRawTransaction" -> Debug.rawTransaction(hash(params.get(0)));
      case "debug_traceTransaction" -> Debug.traceTransaction(hash(params.get(0)), steps());
      case "debug_traceBlockByHash", "debug_traceBlockByNumber" ->
          Debug.traceBlock(block(0), steps());
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
    if (!((String) hex).startsWith("0x")) {
      throw new IllegalArgumentException((String) hex);
    }
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

  private static List<Hash> hashes(List<?> list) {
    return list.stream().map(Asked::hash).toList();
  }

  /** Slots, which may lack their leading zeros. */
  private static List<Hash> words(List<?> list) {
    return Members.list(new JsonReader(ExecutionApisTest.json(list)), Members::word);
  }

  private static Map<Address, List<Hash>> slots(Map<?, ?> given) {
    Map<Address, List<Hash>> slots = new LinkedHashMap<>();
    given.forEach((account, keys) -> slots.put(address(account), hashes((List<?>) keys)));
    return slots;
  }

  private Tracer<StepTrace> steps() {
    Set<Tracer.With> with = EnumSet.noneOf(Tracer.With.class);
    if (params.size() > 1) {
      ((Map<?, ?>) params.get(1))
          .forEach(
              (name, value) -> {
                if (Boolean.TRUE.equals(value)) {
                  with.add(
                      switch ((String) name) {
                        case "enableMemory" -> Tracer.With.MEMORY;
                        case "enableReturnData" -> Tracer.With.RETURN_DATA;
                        case "disableStack" -> Tracer.With.NO_STACK;
                        case "disableStorage" -> Tracer.With.NO_STORAGE;
                        default -> throw new IllegalArgumentException(name.toString());
                      });
                }
              });
    }
    return Tracer.steps(with.toArray(Tracer.With[]::new));
  }

  private static Simulation simulation(Map<?, ?> given) {
    Simulation simulation = null;
    for (Object one : (List<?>) given.get("blockStateCalls")) {
      Map<?, ?> block = (Map<?, ?>) one;
      List<?> list = block.get("calls") == null ? List.of() : (List<?>) block.get("calls");
      Call[] calls = list.stream().map(Asked::call).toArray(Call[]::new);
      Overrides overrides = overrides(block);
      simulation =
          simulation == null ? Simulation.of(overrides, calls) : simulation.then(overrides, calls);
    }
    if (simulation == null) {
      throw new IllegalArgumentException("no blocks");
    }
    simulation =
        Boolean.TRUE.equals(given.get("validation")) ? simulation.withValidation() : simulation;
    simulation =
        Boolean.TRUE.equals(given.get("traceTransfers")) ? simulation.withTransfers() : simulation;
    return Boolean.TRUE.equals(given.get("returnFullTransactions"))
        ? simulation.withTransactions()
        : simulation;
  }

  private static Overrides overrides(Map<?, ?> block) {
    Overrides overrides = Overrides.NONE;
    if (block.get("blockOverrides") instanceof Map<?, ?> members) {
      for (Map.Entry<?, ?> member : members.entrySet()) {
        Object value = member.getValue();
        overrides =
            switch ((String) member.getKey()) {
              case "number" -> overrides.number(number(value));
              case "time" -> overrides.time(number(value));
              case "gasLimit" -> overrides.gasLimit(number(value));
              case "feeRecipient" -> overrides.feeRecipient(address(value));
              case "prevRandao" -> overrides.prevRandao(hash(value));
              case "baseFeePerGas" -> overrides.baseFeePerGas(wei(value));
              case "blobBaseFee" -> overrides.blobBaseFee(wei(value));
              default -> throw new IllegalArgumentException(member.getKey().toString());
            };
      }
    }
    if (block.get("stateOverrides") instanceof Map<?, ?> accounts) {
      for (Map.Entry<?, ?> account : accounts.entrySet()) {
        for (Map.Entry<?, ?> member : ((Map<?, ?>) account.getValue()).entrySet()) {
          overrides = overridden(overrides, address(account.getKey()), member);
        }
      }
    }
    return overrides;
  }

  private static Overrides overridden(Overrides before, Address account, Map.Entry<?, ?> member) {
    Object value = member.getValue();
    return switch ((String) member.getKey()) {
      case "balance" -> before.balance(account, wei(value));
      case "nonce" -> before.nonce(account, number(value));
      case "code" -> before.code(account, Bytes.of((String) value));
      case "movePrecompileToAddress" -> before.movePrecompile(account, address(value));
      case "state" -> {
        Map<Hash, Hash> slots = new LinkedHashMap<>();
        ((Map<?, ?>) value).forEach((slot, content) -> slots.put(hash(slot), hash(content)));
        yield before.storage(account, slots);
      }
      case "stateDiff" -> {
        Overrides all = before;
        for (Map.Entry<?, ?> slot : ((Map<?, ?>) value).entrySet()) {
          all = all.slot(account, hash(slot.getKey()), hash(slot.getValue()));
        }
        yield all;
      }
      default -> throw new IllegalArgumentException(member.getKey().toString());
    };
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
            case "authorizationList" -> call.authorizations(authorizations(value));
            case "blobVersionedHashes" ->
                call.blobs(
                    ((List<?>) value).stream().map(Asked::hash).toList(),
                    wei(members.get("maxFeePerBlobGas")));
            case "maxFeePerBlobGas" -> call.blobs(call.blobVersionedHashes(), wei(value));
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

  private static List<Authorization.Signed> authorizations(Object list) {
    JsonReader json = new JsonReader(ExecutionApisTest.json(list));
    return Members.list(json, Authorizations::read);
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
