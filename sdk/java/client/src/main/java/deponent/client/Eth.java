package deponent.client;

import deponent.eth.AbiFunction;
import deponent.eth.AbiValues;
import deponent.eth.Address;
import deponent.eth.Bytes;
import deponent.eth.Hash;
import deponent.eth.JsonReader;
import deponent.eth.JsonWriter;
import deponent.eth.MalformedException;
import deponent.eth.SignedTransaction;
import deponent.eth.TypedData;
import deponent.eth.Wei;
import deponent.rpc.Decoder;
import deponent.rpc.Params;
import deponent.rpc.Request;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * The requests of Ethereum's JSON-RPC. {@link Client} waits for the result of one, or has a future
 * of it, or puts it into a batch; so does any {@link deponent.rpc.Provider}.
 *
 * <pre>{@code
 * CompletableFuture<Wei> balance = eth.async(Eth.balance(me));
 * CompletableFuture<Long> nonce = batch.add(Eth.transactionCount(me));
 * }</pre>
 *
 * <p>Requests that change nothing are {@linkplain Request#repeatable repeatable}, and so is {@link
 * #sendRawTransaction(Bytes)}. Those that name no block are about the latest.
 */
public final class Eth {
  private static final Members RAW = Members.of("raw");

  private Eth() {}

  /** A request that may be sent again. */
  static <T> Request<T> read(String method, Params params, Decoder<T> result) {
    return Request.of(method, params, result).repeatable();
  }

  private static Request<Long> quantity(String method) {
    return read(method, Params.NONE, JsonReader::nextQuantity);
  }

  private static Request<Wei> price(String method) {
    return read(method, Params.NONE, JsonReader::nextWei);
  }

  /** {@code eth_chainId}: the chain's id (EIP-155). */
  public static Request<Long> chainId() {
    return quantity("eth_chainId");
  }

  /** {@code eth_blockNumber}: the number of the latest block. */
  public static Request<Long> blockNumber() {
    return quantity("eth_blockNumber");
  }

  /** {@code eth_gasPrice}: a price of a unit of gas that legacy transactions are included at. */
  public static Request<Wei> gasPrice() {
    return price("eth_gasPrice");
  }

  /** {@code eth_maxPriorityFeePerGas}: a tip that transactions are included at. */
  public static Request<Wei> maxPriorityFeePerGas() {
    return price("eth_maxPriorityFeePerGas");
  }

  /** {@code eth_blobBaseFee}: the base fee of blob gas of the next block. */
  public static Request<Wei> blobBaseFee() {
    return price("eth_blobBaseFee");
  }

  /** {@code eth_baseFee}: the base fee of the next block. */
  public static Request<Wei> baseFee() {
    return price("eth_baseFee");
  }

  /** {@code eth_coinbase}: who is paid for blocks that the server builds. */
  public static Request<Address> coinbase() {
    return read("eth_coinbase", Params.NONE, JsonReader::nextAddress);
  }

  /** {@code eth_syncing}: how far the server is; none where it has caught up with the chain. */
  public static Request<Optional<SyncStatus>> syncing() {
    return read("eth_syncing", Params.NONE, Eth::syncing);
  }

  private static Optional<SyncStatus> syncing(JsonReader json) {
    if (json.peek() != JsonReader.Kind.BOOLEAN) {
      return Optional.of(SyncStatus.read(json));
    }
    if (json.nextBoolean()) {
      throw new MalformedException("true says not how far it is");
    }
    return Optional.empty();
  }

  /** {@code eth_config}: the rules of the chain (EIP-7910). */
  public static Request<ForkConfigs> config() {
    return read("eth_config", Params.NONE, ForkConfigs::read);
  }

  /** {@code eth_capabilities}: what data the server has. */
  public static Request<Capabilities> capabilities() {
    return read("eth_capabilities", Params.NONE, Capabilities::read);
  }

  /**
   * {@code eth_feeHistory}: the fees of consecutive blocks.
   *
   * @param blocks the number of blocks; servers give fewer where it is large
   * @param newest the newest of them
   * @param percentiles of each block, the rewards at these percentiles of its gas, ascending
   * @throws IllegalArgumentException if {@code blocks} is not positive, {@code newest} a hash, or a
   *     percentile not from 0 to 100
   */
  public static Request<FeeHistory> feeHistory(long blocks, BlockId newest, double... percentiles) {
    if (blocks < 1) {
      throw new IllegalArgumentException("a history has at least one block, not " + blocks);
    }
    if (newest instanceof BlockId.OfHash) {
      throw new IllegalArgumentException("eth_feeHistory takes no hash of a block");
    }
    double[] copy = percentiles.clone();
    for (double one : copy) {
      if (!(one >= 0 && one <= 100)) {
        throw new IllegalArgumentException("a percentile is from 0 to 100, not " + one);
      }
    }
    return read(
        "eth_feeHistory",
        json -> {
          newest.write(json.quantity(blocks));
          json.beginArray();
          for (double one : copy) {
            json.raw(one == (long) one ? Long.toString((long) one) : Double.toString(one));
          }
          json.endArray();
        },
        FeeHistory::read);
  }

  /** {@code eth_getBalance}: the balance of an account. */
  public static Request<Wei> balance(Address account) {
    return balance(account, BlockId.LATEST);
  }

  /** {@code eth_getBalance}: the balance of an account after a block. */
  public static Request<Wei> balance(Address account, BlockId block) {
    return read("eth_getBalance", at(account, block), JsonReader::nextWei);
  }

  /** {@code eth_getTransactionCount}: the nonce of an account. */
  public static Request<Long> transactionCount(Address account) {
    return transactionCount(account, BlockId.LATEST);
  }

  /** {@code eth_getTransactionCount}: the nonce of an account after a block. */
  public static Request<Long> transactionCount(Address account, BlockId block) {
    return read("eth_getTransactionCount", at(account, block), JsonReader::nextQuantity);
  }

  /** {@code eth_getCode}: the code of an account, empty where it has none. */
  public static Request<Bytes> code(Address account) {
    return code(account, BlockId.LATEST);
  }

  /** {@code eth_getCode}: the code of an account after a block, empty where it has none. */
  public static Request<Bytes> code(Address account, BlockId block) {
    return read("eth_getCode", at(account, block), JsonReader::nextBytes);
  }

  private static Params at(Address account, BlockId block) {
    return json -> block.write(json.value(account));
  }

  /** {@code eth_getStorageAt}: the value of a slot of an account's storage. */
  public static Request<Hash> storageAt(Address account, Hash slot) {
    return storageAt(account, slot, BlockId.LATEST);
  }

  /** {@code eth_getStorageAt}: the value of a slot of an account's storage after a block. */
  public static Request<Hash> storageAt(Address account, Hash slot, BlockId block) {
    return read(
        "eth_getStorageAt",
        json -> block.write(json.value(account).value(slot)),
        JsonReader::nextHash);
  }

  /** {@code eth_getStorageValues}: the values of slots of several accounts. */
  public static Request<Map<Address, List<Hash>>> storageValues(Map<Address, List<Hash>> slots) {
    return storageValues(slots, BlockId.LATEST);
  }

  /** {@code eth_getStorageValues}: the values of slots of several accounts after a block. */
  public static Request<Map<Address, List<Hash>>> storageValues(
      Map<Address, List<Hash>> slots, BlockId block) {
    Map<Address, List<Hash>> copy = Members.copy(slots);
    return read(
        "eth_getStorageValues",
        json -> {
          json.beginObject();
          copy.forEach((account, keys) -> hashes(keys, json.name(Members.key(account))));
          block.write(json.endObject());
        },
        json ->
            Members.map(json, Members::address, one -> Members.list(one, JsonReader::nextHash)));
  }

  private static void hashes(List<Hash> hashes, JsonWriter json) {
    json.beginArray();
    hashes.forEach(json::value);
    json.endArray();
  }

  /** {@code eth_getProof}: an account and slots of it, with what proves them (EIP-1186). */
  public static Request<Proof> proof(Address account, List<Hash> slots) {
    return proof(account, slots, BlockId.LATEST);
  }

  /**
   * {@code eth_getProof}: an account and slots of it after a block, with what proves them
   * (EIP-1186).
   */
  public static Request<Proof> proof(Address account, List<Hash> slots, BlockId block) {
    List<Hash> copy = List.copyOf(slots);
    return read(
        "eth_getProof",
        json -> {
          hashes(copy, json.value(account));
          block.write(json);
        },
        Proof::read);
  }

  /** {@code eth_call}: what a call returns. */
  public static Request<Bytes> call(Call call) {
    return call(call, BlockId.LATEST);
  }

  /** {@code eth_call}: what a call after a block returns. */
  public static Request<Bytes> call(Call call, BlockId block) {
    return call(call, block, Overrides.NONE);
  }

  /** {@code eth_call}: what a call after a block returns, in another state or block. */
  public static Request<Bytes> call(Call call, BlockId block, Overrides overrides) {
    return read("eth_call", run(call, block, overrides), JsonReader::nextBytes);
  }

  /**
   * {@code eth_call}: what a function of a contract returns.
   *
   * @throws IllegalArgumentException if the arguments do not fit, with the place of the one
   */
  public static Request<AbiValues> call(
      Address contract, AbiFunction function, Object... arguments) {
    return call(BlockId.LATEST, contract, function, arguments);
  }

  /**
   * {@code eth_call}: what a function of a contract returns after a block.
   *
   * @throws IllegalArgumentException if the arguments do not fit, with the place of the one
   */
  public static Request<AbiValues> call(
      BlockId block, Address contract, AbiFunction function, Object... arguments) {
    Call call = Call.to(contract).data(function, arguments);
    return read(
        "eth_call",
        run(call, block, Overrides.NONE),
        json -> function.decodeResult(json.nextBytes()));
  }

  /** {@code eth_estimateGas}: the least gas limit with which a transaction succeeds. */
  public static Request<Long> estimateGas(Call call) {
    return estimateGas(call, BlockId.LATEST);
  }

  /** {@code eth_estimateGas}: the least gas limit with which a transaction succeeds. */
  public static Request<Long> estimateGas(Call call, BlockId block) {
    return estimateGas(call, block, Overrides.NONE);
  }

  /**
   * {@code eth_estimateGas}: the least gas limit with which a transaction succeeds in another state
   * or block.
   */
  public static Request<Long> estimateGas(Call call, BlockId block, Overrides overrides) {
    return read("eth_estimateGas", run(call, block, overrides), JsonReader::nextQuantity);
  }

  /** {@code eth_createAccessList}: the accounts and slots that a call touches. */
  public static Request<AccessListResult> createAccessList(Call call) {
    return createAccessList(call, BlockId.LATEST);
  }

  /** {@code eth_createAccessList}: the accounts and slots that a call after a block touches. */
  public static Request<AccessListResult> createAccessList(Call call, BlockId block) {
    return read("eth_createAccessList", run(call, block, Overrides.NONE), AccessListResult::read);
  }

  /** {@code eth_simulateV1}: what calls in blocks on top of the latest one do. */
  public static Request<List<SimulatedBlock>> simulate(Simulation simulation) {
    return simulate(simulation, BlockId.LATEST);
  }

  /** {@code eth_simulateV1}: what calls in blocks on top of one do. */
  public static Request<List<SimulatedBlock>> simulate(Simulation simulation, BlockId block) {
    return read(
        "eth_simulateV1",
        json -> {
          simulation.write(json);
          block.write(json);
        },
        json -> Members.list(json, SimulatedBlock::read));
  }

  private static Params run(Call call, BlockId block, Overrides overrides) {
    return json -> {
      call.write(json);
      block.write(json);
      if (overrides.hasState() || overrides.hasBlock()) {
        overrides.writeState(json);
      }
      if (overrides.hasBlock()) {
        overrides.writeBlock(json);
      }
    };
  }

  /**
   * {@code eth_getBlockByNumber} or {@code eth_getBlockByHash}: a block with the hashes of its
   * transactions; none where the server has no such block.
   */
  public static Request<Optional<Block>> block(BlockId block) {
    return block(block, false);
  }

  /**
   * {@code eth_getBlockByNumber} or {@code eth_getBlockByHash}: a block with its transactions; none
   * where the server has no such block.
   */
  public static Request<Optional<Block>> blockWithTransactions(BlockId block) {
    return block(block, true);
  }

  private static Request<Optional<Block>> block(BlockId block, boolean whole) {
    return ofBlock(
        "eth_getBlockByNumber",
        "eth_getBlockByHash",
        block,
        json -> json.value(whole),
        json -> Members.optional(json, Block::read));
  }

  /**
   * {@code eth_getBlockTransactionCountByNumber} or {@code eth_getBlockTransactionCountByHash}: the
   * number of transactions of a block; none where the server has no such block.
   */
  public static Request<Optional<Long>> blockTransactionCount(BlockId block) {
    return ofBlock(
        "eth_getBlockTransactionCountByNumber",
        "eth_getBlockTransactionCountByHash",
        block,
        Params.NONE,
        json -> Members.optional(json, JsonReader::nextQuantity));
  }

  /**
   * {@code eth_getUncleCountByBlockNumber} or {@code eth_getUncleCountByBlockHash}: the number of
   * uncles of a block; none where the server has no such block.
   */
  public static Request<Optional<Long>> uncleCount(BlockId block) {
    return ofBlock(
        "eth_getUncleCountByBlockNumber",
        "eth_getUncleCountByBlockHash",
        block,
        Params.NONE,
        json -> Members.optional(json, JsonReader::nextQuantity));
  }

  /**
   * {@code eth_getUncleByBlockNumberAndIndex} or {@code eth_getUncleByBlockHashAndIndex}: an uncle
   * of a block; none where there is no such.
   *
   * @throws IllegalArgumentException if the place is negative
   */
  public static Request<Optional<BlockHeader>> uncle(BlockId block, long index) {
    return ofBlock(
        "eth_getUncleByBlockNumberAndIndex",
        "eth_getUncleByBlockHashAndIndex",
        block,
        place(index),
        json -> Members.optional(json, BlockHeader::read));
  }

  /**
   * {@code eth_getHeaderByNumber} or {@code eth_getHeaderByHash}, of geth and Deponent: a header;
   * none where the server has no such block.
   */
  public static Request<Optional<BlockHeader>> header(BlockId block) {
    return ofBlock(
        "eth_getHeaderByNumber",
        "eth_getHeaderByHash",
        block,
        Params.NONE,
        json -> Members.optional(json, BlockHeader::read));
  }

  /**
   * {@code eth_getBlockAccessList}: what a block did with each account (EIP-7928); none where the
   * server has no such block.
   */
  public static Request<Optional<List<AccountChanges>>> blockAccessList(BlockId block) {
    return read(
        "eth_getBlockAccessList",
        block::write,
        json -> Members.optional(json, all -> Members.list(all, AccountChanges::read)));
  }

  private static Params place(long index) {
    if (index < 0) {
      throw new IllegalArgumentException("a place in a block is not negative: " + index);
    }
    return json -> json.quantity(index);
  }

  /** A request of a method that has a form for hashes, and one for numbers and tags. */
  static <T> Request<T> ofBlock(
      String byNumber, String byHash, BlockId block, Params others, Decoder<T> result) {
    boolean hash = block instanceof BlockId.OfHash;
    Params params =
        json -> {
          if (block instanceof BlockId.OfHash of) {
            json.value(of.hash());
          } else {
            block.write(json);
          }
          others.write(json);
        };
    return read(hash ? byHash : byNumber, params, result);
  }

  /**
   * {@code eth_getTransactionByHash}: a transaction of the chain or of the server's pool; none
   * where the server does not know it.
   */
  public static Request<Optional<ChainTransaction>> transaction(Hash hash) {
    return read(
        "eth_getTransactionByHash",
        json -> json.value(hash),
        json -> Members.optional(json, ChainTransaction::read));
  }

  /**
   * {@code eth_getTransactionByBlockNumberAndIndex} or {@code
   * eth_getTransactionByBlockHashAndIndex}: a transaction of a block; none where there is no such.
   *
   * @throws IllegalArgumentException if the place is negative
   */
  public static Request<Optional<ChainTransaction>> transaction(BlockId block, long index) {
    return ofBlock(
        "eth_getTransactionByBlockNumberAndIndex",
        "eth_getTransactionByBlockHashAndIndex",
        block,
        place(index),
        json -> Members.optional(json, ChainTransaction::read));
  }

  /**
   * {@code eth_getRawTransactionByHash}: a transaction by EIP-2718, empty where the server does not
   * know it.
   */
  public static Request<Bytes> rawTransaction(Hash hash) {
    return read(
        "eth_getRawTransactionByHash",
        json -> json.value(hash),
        json -> json.nextNull() ? Bytes.EMPTY : json.nextBytes());
  }

  /** {@code eth_getTransactionReceipt}: the receipt of a transaction; none while it has none. */
  public static Request<Optional<Receipt>> receipt(Hash transaction) {
    return read(
        "eth_getTransactionReceipt",
        json -> json.value(transaction),
        json -> Members.optional(json, Receipt::read));
  }

  /**
   * {@code eth_getBlockReceipts}: the receipts of a block; none where the server has no such block.
   */
  public static Request<Optional<List<Receipt>>> blockReceipts(BlockId block) {
    return read(
        "eth_getBlockReceipts",
        block::write,
        json -> Members.optional(json, all -> Members.list(all, Receipt::read)));
  }

  /** {@code eth_getLogs}: the logs that a filter wants, in the order of the chain. */
  public static Request<List<Log>> logs(LogFilter filter) {
    return read("eth_getLogs", filter::write, json -> Members.list(json, Log::read));
  }

  /**
   * {@code eth_newFilter}: a filter of the logs of blocks that become canonical from now on. Those
   * of blocks that leave the chain come once more, as {@linkplain Log#removed removed}.
   */
  public static Request<Filter<Log>> newFilter(LogFilter filter) {
    return Request.of("eth_newFilter", filter::write, json -> filter(json, Log::read));
  }

  /** {@code eth_newBlockFilter}: a filter of the hashes of blocks that become canonical. */
  public static Request<Filter<Hash>> newBlockFilter() {
    return Request.of(
        "eth_newBlockFilter", Params.NONE, json -> filter(json, JsonReader::nextHash));
  }

  /** {@code eth_newPendingTransactionFilter}: a filter of the hashes of new transactions. */
  public static Request<Filter<Hash>> newPendingTransactionFilter() {
    return Request.of(
        "eth_newPendingTransactionFilter", Params.NONE, json -> filter(json, JsonReader::nextHash));
  }

  private static <T> Filter<T> filter(JsonReader json, Decoder<T> read) {
    return new Filter<>(json.nextString(), read);
  }

  /**
   * {@code eth_getFilterChanges}: what is new since the last time. It is not sent again where a
   * connection broke: what the lost answer told is not told again.
   */
  public static <T> Request<List<T>> filterChanges(Filter<T> filter) {
    return Request.of(
        "eth_getFilterChanges",
        json -> json.value(filter.id()),
        json -> Members.list(json, filter.read()::read));
  }

  /** {@code eth_getFilterLogs}: all logs that the filter wants, old ones among them. */
  public static Request<List<Log>> filterLogs(Filter<Log> filter) {
    return read(
        "eth_getFilterLogs",
        json -> json.value(filter.id()),
        json -> Members.list(json, Log::read));
  }

  /** {@code eth_uninstallFilter}: ends a filter, and says whether it was there. */
  public static Request<Boolean> uninstallFilter(Filter<?> filter) {
    return Request.of(
        "eth_uninstallFilter", json -> json.value(filter.id()), JsonReader::nextBoolean);
  }

  /** {@code eth_accounts}: the accounts that the server signs for. */
  public static Request<List<Address>> accounts() {
    return read("eth_accounts", Params.NONE, json -> Members.list(json, JsonReader::nextAddress));
  }

  /** {@code eth_sign}: the server signs a message by EIP-191, 65 bytes. */
  public static Request<Bytes> sign(Address account, Bytes message) {
    return Request.of(
        "eth_sign", json -> json.value(account).value(message), JsonReader::nextBytes);
  }

  /** {@code eth_signTypedData_v4}: the server signs typed data by EIP-712, 65 bytes. */
  public static Request<Bytes> signTypedData(Address account, TypedData data) {
    String json712 = data.toJson();
    return Request.of(
        "eth_signTypedData_v4", json -> json.value(account).raw(json712), JsonReader::nextBytes);
  }

  /** {@code eth_signTransaction}: the server signs a transaction, and has it by EIP-2718. */
  public static Request<Bytes> signTransaction(Call transaction) {
    return Request.of("eth_signTransaction", transaction::write, Eth::signed);
  }

  /** The bytes, or an object that has them. */
  private static Bytes signed(JsonReader json) {
    if (json.peek() == JsonReader.Kind.STRING) {
      return json.nextBytes();
    }
    Bytes[] raw = new Bytes[1];
    RAW.read(json, (name, value) -> raw[0] = value.nextBytes());
    return Members.the("raw", raw[0]);
  }

  /** {@code eth_sendTransaction}: the server signs a transaction and sends it. */
  public static Request<Hash> sendTransaction(Call transaction) {
    return Request.of("eth_sendTransaction", transaction::write, JsonReader::nextHash);
  }

  /**
   * {@code eth_sendRawTransactionSync}: sends a transaction, and has its receipt once it is in a
   * block (EIP-7966). It is not sent again where a connection broke.
   *
   * @param wait for how long the server waits at most; it has a bound of its own
   */
  public static Request<Receipt> sendRawTransactionSync(Bytes transaction, Duration wait) {
    long millis = wait.toMillis();
    return Request.of(
        "eth_sendRawTransactionSync",
        json -> json.value(transaction).quantity(millis),
        Receipt::read);
  }

  /**
   * {@code eth_sendRawTransaction}: sends a transaction, and has its hash. It may be sent again
   * where a connection broke: a server that has it by then says so, and that is a success.
   *
   * @param transaction in its form by EIP-2718; with blobs, beside their sidecar (EIP-7594)
   */
  public static Request<Hash> sendRawTransaction(Bytes transaction) {
    return read("eth_sendRawTransaction", json -> json.value(transaction), JsonReader::nextHash);
  }

  /**
   * {@code eth_sendRawTransaction}: sends a transaction without blobs, and has its hash. It may be
   * sent again where a connection broke: a server that has it by then says so, and that is a
   * success.
   */
  public static Request<Hash> sendRawTransaction(SignedTransaction transaction) {
    return sendRawTransaction(transaction.encode());
  }

  /** {@code newHeads}: the header of each block that becomes canonical. */
  public static SubscriptionRequest<BlockHeader> newHeads() {
    return subscription(json -> json.value("newHeads"), BlockHeader::read);
  }

  /**
   * {@code logs}: the logs that a filter wants, of each block that becomes canonical, and once more
   * as {@linkplain Log#removed removed} when it leaves the chain. The filter's blocks do not count.
   */
  public static SubscriptionRequest<Log> newLogs(LogFilter filter) {
    return subscription(json -> filter.write(json.value("logs"), false), Log::read);
  }

  /** {@code newPendingTransactions}: the hash of each transaction that the pool takes. */
  public static SubscriptionRequest<Hash> newPendingTransactions() {
    return subscription(json -> json.value("newPendingTransactions"), JsonReader::nextHash);
  }

  /**
   * {@code newPendingTransactions} with {@code true}, of geth and Deponent: each transaction that
   * the pool takes.
   */
  public static SubscriptionRequest<ChainTransaction> newWholePendingTransactions() {
    return subscription(
        json -> json.value("newPendingTransactions").value(true), ChainTransaction::read);
  }

  /**
   * {@code transactionReceipts}, of geth and Deponent: the receipts of transactions, once they are
   * in a block; of all transactions where none is named.
   */
  public static SubscriptionRequest<List<Receipt>> newReceipts(Hash... transactions) {
    List<Hash> wanted = List.of(transactions);
    return subscription(
        json -> {
          json.value("transactionReceipts");
          if (!wanted.isEmpty()) {
            hashes(wanted, json.beginObject().name("transactionHashes"));
            json.endObject();
          }
        },
        json -> Members.list(json, Receipt::read));
  }

  private static <T> SubscriptionRequest<T> subscription(Params params, Decoder<T> read) {
    return new SubscriptionRequest<>(
        Request.of("eth_subscribe", params, JsonReader::nextString), read);
  }
}
