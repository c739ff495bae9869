package deponent.client;

import deponent.eth.AbiFunction;
import deponent.eth.AbiValues;
import deponent.eth.Address;
import deponent.eth.Bytes;
import deponent.eth.Hash;
import deponent.eth.JsonReader;
import deponent.eth.SignedTransaction;
import deponent.eth.Wei;
import deponent.rpc.Decoder;
import deponent.rpc.Params;
import deponent.rpc.Request;
import java.util.List;
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

  private static <T> SubscriptionRequest<T> subscription(Params params, Decoder<T> read) {
    return new SubscriptionRequest<>(
        Request.of("eth_subscribe", params, JsonReader::nextString), read);
  }
}
