package deponent.client;

import deponent.eth.AbiFunction;
import deponent.eth.AbiValues;
import deponent.eth.Address;
import deponent.eth.Bytes;
import deponent.eth.Hash;
import deponent.eth.RevertException;
import deponent.eth.RpcException;
import deponent.eth.SignedTransaction;
import deponent.eth.Signer;
import deponent.eth.TypedData;
import deponent.eth.Wei;
import deponent.rpc.Batch;
import deponent.rpc.Provider;
import deponent.rpc.Request;
import deponent.rpc.Subscription;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;

/**
 * An Ethereum node that is asked. Its methods wait for the answer, and may be called from many
 * threads; {@link #async} and {@link #batch} take the same requests from {@link Eth}.
 *
 * <pre>{@code
 * try (Client eth = Client.connect("wss://eth.example/KEY")) {
 *   Wei balance = eth.balance(me);
 *   CompletableFuture<Wei> other = eth.async(Eth.balance(friend));
 * }
 * }</pre>
 *
 * <p>Methods that name no block are about the latest. What goes wrong is an {@link
 * deponent.eth.EthException}, as {@link Provider#request} throws it.
 */
public final class Client implements AutoCloseable {
  private final Provider provider;
  private final Nonces nonces = Nonces.local();
  private final Heads heads = new Heads(this);

  /** The chain's id, which does not change; 0 while it was not asked for. */
  private volatile long chain;

  private Client(Provider provider) {
    this.provider = provider;
  }

  /**
   * Connects to {@code ws://}, {@code wss://}, {@code http://}, {@code https://} or {@code
   * unix:/path}. HTTP connects at the first request.
   *
   * @throws IllegalArgumentException if the address is none of them
   * @throws deponent.eth.TransportException if there is no connection within 20 s
   */
  public static Client connect(String address) {
    return of(Provider.at(address).connect());
  }

  /** A client that sends its requests by {@code provider}, which {@link #close} closes. */
  public static Client of(Provider provider) {
    return new Client(Objects.requireNonNull(provider));
  }

  /** The provider that sends the requests. */
  public Provider provider() {
    return provider;
  }

  /**
   * Sends a request, and waits for its result.
   *
   * @throws deponent.eth.RevertException if a contract reverted, in whatever words the server says
   *     it
   */
  public <T> T request(Request<T> request) {
    try {
      return provider.request(request);
    } catch (RpcException error) {
      throw Reverts.of(request) ? Reverts.decoded(error, Reverts.NONE) : error;
    }
  }

  /** Sends a request. The future of its result fails as {@link #request} does. */
  public <T> CompletableFuture<T> async(Request<T> request) {
    CompletableFuture<T> future = provider.requestAsync(request);
    return Reverts.of(request) ? Reverts.decoded(future) : future;
  }

  /**
   * An account that sends transactions by this client, and has {@code signer} sign them: a private
   * key, or a service.
   */
  public Account account(Signer signer) {
    return Account.of(this, signer, nonces);
  }

  /**
   * An account of which the server has the key, or needs none: of a chain for tests, impersonated
   * ones among them, or of a node with keys. The server fills in what a {@link Call} leaves out,
   * and signs, by {@code eth_sendTransaction}.
   */
  public Account account(Address address) {
    return Account.ofNode(this, address, nonces);
  }

  /** A transaction that was sent before, by its hash. */
  public PendingTransaction pending(Hash transaction) {
    return new PendingTransaction(this, transaction, Reverts.NONE);
  }

  /** Who tells of new blocks. */
  Heads heads() {
    return heads;
  }

  /** The chain's id, which is asked for once. */
  long chain() {
    long known = chain;
    if (known == 0) {
      known = chainId();
      chain = known;
    }
    return known;
  }

  /** Begins a JSON-RPC batch. */
  public Batch batch() {
    return provider.batch();
  }

  /**
   * Subscribes, and waits until the server has confirmed it.
   *
   * @throws UnsupportedOperationException over HTTP
   */
  public <T> Subscription<T> subscribe(SubscriptionRequest<T> to) {
    return provider.subscribe(to.open(), to.read());
  }

  /**
   * Whether an account signed a hash: by its key, or as a contract (EIP-1271), also as one that is
   * not there yet (EIP-6492). A contract decides by its own rules, and may decide otherwise later.
   *
   * @param hash what is signed, such as that of a message (EIP-191) or of typed data (EIP-712)
   */
  public boolean isSignedBy(Address account, Hash hash, Bytes signature) {
    return isSignedBy(account, hash, signature, BlockId.LATEST);
  }

  /** Whether an account signed a hash, as it is after a block. */
  public boolean isSignedBy(Address account, Hash hash, Bytes signature, BlockId block) {
    return new SignatureCheck(this, block).isValid(account, hash, signature);
  }

  /** Names of ENS, by the universal resolver at its usual place and gateways over HTTPS. */
  public Ens ens() {
    return new Ens(this);
  }

  /** Begins calls of functions that run together, on the state after one block. */
  public Multicall multicall() {
    return new Multicall(this);
  }

  /**
   * The logs that a filter wants, of its first block and of those behind it as they come; of those
   * to come alone where it names no block.
   *
   * @throws IllegalArgumentException if the filter has a last block, or is for one block
   */
  public Feed<Log> follow(LogFilter filter) {
    if (filter.toBlock().isPresent() || filter.atBlock().isPresent()) {
      throw new IllegalArgumentException("a feed has no end: " + filter);
    }
    return Feed.open(provider, new LogSource(filter), filter.fromBlock().orElse(null));
  }

  /** The headers of the blocks to come. */
  public Feed<BlockHeader> followHeads() {
    return Feed.open(provider, new HeadSource(), null);
  }

  /**
   * The headers of a block and of those behind it.
   *
   * @throws IllegalArgumentException if {@code fromBlock} is negative
   */
  public Feed<BlockHeader> followHeads(long fromBlock) {
    return Feed.open(provider, new HeadSource(), BlockId.of(fromBlock));
  }

  /** Closes the connections, and ends subscriptions and requests in flight. */
  @Override
  public void close() {
    heads.close();
    provider.close();
  }

  /** The chain's id (EIP-155). */
  public long chainId() {
    return request(Eth.chainId());
  }

  /** The number of the latest block. */
  public long blockNumber() {
    return request(Eth.blockNumber());
  }

  /** A price of a unit of gas that legacy transactions are included at. */
  public Wei gasPrice() {
    return request(Eth.gasPrice());
  }

  /** A tip that transactions are included at. */
  public Wei maxPriorityFeePerGas() {
    return request(Eth.maxPriorityFeePerGas());
  }

  /** The base fee of blob gas of the next block. */
  public Wei blobBaseFee() {
    return request(Eth.blobBaseFee());
  }

  /** The base fee of the next block. */
  public Wei baseFee() {
    return request(Eth.baseFee());
  }

  /** Who is paid for blocks that the server builds. */
  public Address coinbase() {
    return request(Eth.coinbase());
  }

  /** How far the server is; none where it has caught up with the chain. */
  public Optional<SyncStatus> syncing() {
    return request(Eth.syncing());
  }

  /** The rules of the chain (EIP-7910). */
  public ForkConfigs config() {
    return request(Eth.config());
  }

  /** What data the server has. */
  public Capabilities capabilities() {
    return request(Eth.capabilities());
  }

  /**
   * The fees of consecutive blocks, with the rewards at these percentiles of their gas.
   *
   * @throws IllegalArgumentException if {@code blocks} is not positive, {@code newest} a hash, or a
   *     percentile not from 0 to 100
   */
  public FeeHistory feeHistory(long blocks, BlockId newest, double... percentiles) {
    return request(Eth.feeHistory(blocks, newest, percentiles));
  }

  /** The balance of an account. */
  public Wei balance(Address account) {
    return request(Eth.balance(account));
  }

  /** The balance of an account after a block. */
  public Wei balance(Address account, BlockId block) {
    return request(Eth.balance(account, block));
  }

  /** The nonce of an account. */
  public long transactionCount(Address account) {
    return request(Eth.transactionCount(account));
  }

  /** The nonce of an account after a block. */
  public long transactionCount(Address account, BlockId block) {
    return request(Eth.transactionCount(account, block));
  }

  /** The code of an account, empty where it has none. */
  public Bytes code(Address account) {
    return request(Eth.code(account));
  }

  /** The code of an account after a block, empty where it has none. */
  public Bytes code(Address account, BlockId block) {
    return request(Eth.code(account, block));
  }

  /** The value of a slot of an account's storage. */
  public Hash storageAt(Address account, Hash slot) {
    return request(Eth.storageAt(account, slot));
  }

  /** The value of a slot of an account's storage after a block. */
  public Hash storageAt(Address account, Hash slot, BlockId block) {
    return request(Eth.storageAt(account, slot, block));
  }

  /** Runs a call, and decodes errors that its contract has. */
  private <T> T run(Call call, Request<T> request) {
    try {
      return request(request);
    } catch (RevertException revert) {
      throw revert.with(call.errors());
    }
  }

  /** The values of slots of several accounts. */
  public Map<Address, List<Hash>> storageValues(Map<Address, List<Hash>> slots) {
    return request(Eth.storageValues(slots));
  }

  /** The values of slots of several accounts after a block. */
  public Map<Address, List<Hash>> storageValues(Map<Address, List<Hash>> slots, BlockId block) {
    return request(Eth.storageValues(slots, block));
  }

  /** An account and slots of it, with what proves them (EIP-1186). */
  public Proof proof(Address account, List<Hash> slots) {
    return request(Eth.proof(account, slots));
  }

  /** An account and slots of it after a block, with what proves them (EIP-1186). */
  public Proof proof(Address account, List<Hash> slots, BlockId block) {
    return request(Eth.proof(account, slots, block));
  }

  /** What a call returns. */
  public Bytes call(Call call) {
    return run(call, Eth.call(call));
  }

  /** What a call after a block returns. */
  public Bytes call(Call call, BlockId block) {
    return run(call, Eth.call(call, block));
  }

  /** What a call after a block returns, in another state or block. */
  public Bytes call(Call call, BlockId block, Overrides overrides) {
    return run(call, Eth.call(call, block, overrides));
  }

  /**
   * What a function of a contract returns.
   *
   * @throws IllegalArgumentException if the arguments do not fit, with the place of the one
   */
  public AbiValues call(Address contract, AbiFunction function, Object... arguments) {
    return request(Eth.call(contract, function, arguments));
  }

  /**
   * What a function of a contract returns after a block.
   *
   * @throws IllegalArgumentException if the arguments do not fit, with the place of the one
   */
  public AbiValues call(
      BlockId block, Address contract, AbiFunction function, Object... arguments) {
    return request(Eth.call(block, contract, function, arguments));
  }

  /** The least gas limit with which a transaction succeeds. */
  public long estimateGas(Call call) {
    return run(call, Eth.estimateGas(call));
  }

  /** The least gas limit with which a transaction succeeds after a block. */
  public long estimateGas(Call call, BlockId block) {
    return run(call, Eth.estimateGas(call, block));
  }

  /** The least gas limit with which a transaction succeeds, in another state or block. */
  public long estimateGas(Call call, BlockId block, Overrides overrides) {
    return run(call, Eth.estimateGas(call, block, overrides));
  }

  /** The accounts and slots that a call touches. */
  public AccessListResult createAccessList(Call call) {
    return request(Eth.createAccessList(call));
  }

  /** The accounts and slots that a call after a block touches. */
  public AccessListResult createAccessList(Call call, BlockId block) {
    return request(Eth.createAccessList(call, block));
  }

  /** What calls in blocks on top of the latest one do. */
  public List<SimulatedBlock> simulate(Simulation simulation) {
    return request(Eth.simulate(simulation));
  }

  /** What calls in blocks on top of one do. */
  public List<SimulatedBlock> simulate(Simulation simulation, BlockId block) {
    return request(Eth.simulate(simulation, block));
  }

  /** A block with the hashes of its transactions; none where the server has no such block. */
  public Optional<Block> block(BlockId block) {
    return request(Eth.block(block));
  }

  /** A block with its transactions; none where the server has no such block. */
  public Optional<Block> blockWithTransactions(BlockId block) {
    return request(Eth.blockWithTransactions(block));
  }

  /** The header of a block, of geth and Deponent; none where the server has no such block. */
  public Optional<BlockHeader> header(BlockId block) {
    return request(Eth.header(block));
  }

  /** The number of transactions of a block; none where the server has no such block. */
  public Optional<Long> blockTransactionCount(BlockId block) {
    return request(Eth.blockTransactionCount(block));
  }

  /** The number of uncles of a block; none where the server has no such block. */
  public Optional<Long> uncleCount(BlockId block) {
    return request(Eth.uncleCount(block));
  }

  /**
   * An uncle of a block; none where there is no such.
   *
   * @throws IllegalArgumentException if the place is negative
   */
  public Optional<BlockHeader> uncle(BlockId block, long index) {
    return request(Eth.uncle(block, index));
  }

  /** What a block did with each account (EIP-7928); none where the server has no such block. */
  public Optional<List<AccountChanges>> blockAccessList(BlockId block) {
    return request(Eth.blockAccessList(block));
  }

  /** A transaction of the chain or of the server's pool; none where it is not known. */
  public Optional<ChainTransaction> transaction(Hash hash) {
    return request(Eth.transaction(hash));
  }

  /**
   * A transaction of a block; none where there is no such.
   *
   * @throws IllegalArgumentException if the place is negative
   */
  public Optional<ChainTransaction> transaction(BlockId block, long index) {
    return request(Eth.transaction(block, index));
  }

  /** A transaction by EIP-2718, empty where the server does not know it. */
  public Bytes rawTransaction(Hash hash) {
    return request(Eth.rawTransaction(hash));
  }

  /** The receipt of a transaction; none while it has none. */
  public Optional<Receipt> receipt(Hash transaction) {
    return request(Eth.receipt(transaction));
  }

  /** The receipts of a block; none where the server has no such block. */
  public Optional<List<Receipt>> blockReceipts(BlockId block) {
    return request(Eth.blockReceipts(block));
  }

  /** The logs that a filter wants, in the order of the chain. */
  public List<Log> logs(LogFilter filter) {
    return request(Eth.logs(filter));
  }

  /** A filter of the logs of blocks that become canonical from now on, or leave the chain. */
  public Filter<Log> newFilter(LogFilter filter) {
    return request(Eth.newFilter(filter));
  }

  /** A filter of the hashes of blocks that become canonical. */
  public Filter<Hash> newBlockFilter() {
    return request(Eth.newBlockFilter());
  }

  /** A filter of the hashes of new transactions. */
  public Filter<Hash> newPendingTransactionFilter() {
    return request(Eth.newPendingTransactionFilter());
  }

  /** What is new since the last time. */
  public <T> List<T> filterChanges(Filter<T> filter) {
    return request(Eth.filterChanges(filter));
  }

  /** All logs that the filter wants, old ones among them. */
  public List<Log> filterLogs(Filter<Log> filter) {
    return request(Eth.filterLogs(filter));
  }

  /** Ends a filter, and says whether it was there. */
  public boolean uninstallFilter(Filter<?> filter) {
    return request(Eth.uninstallFilter(filter));
  }

  /** The accounts that the server signs for. */
  public List<Address> accounts() {
    return request(Eth.accounts());
  }

  /** The server signs a message by EIP-191, 65 bytes. */
  public Bytes sign(Address account, Bytes message) {
    return request(Eth.sign(account, message));
  }

  /** The server signs typed data by EIP-712, 65 bytes. */
  public Bytes signTypedData(Address account, TypedData data) {
    return request(Eth.signTypedData(account, data));
  }

  /** The server signs a transaction, and has it by EIP-2718. */
  public Bytes signTransaction(Call transaction) {
    return request(Eth.signTransaction(transaction));
  }

  /** The server signs a transaction and sends it. */
  public Hash sendTransaction(Call transaction) {
    return request(Eth.sendTransaction(transaction));
  }

  /**
   * Sends a transaction, and returns its receipt once it is in a block (EIP-7966).
   *
   * @param wait for how long the server waits at most; it has a bound of its own
   */
  public Receipt sendRawTransactionSync(Bytes transaction, Duration wait) {
    return request(Eth.sendRawTransactionSync(transaction, wait));
  }

  /**
   * Sends a transaction, and returns its hash. It is sent again where a connection broke. It is no
   * error if the server has the transaction by then.
   *
   * @param transaction in its form by EIP-2718; with blobs, beside their sidecar (EIP-7594)
   */
  public Hash sendRawTransaction(Bytes transaction) {
    return request(Eth.sendRawTransaction(transaction));
  }

  /** Sends a transaction without blobs, and returns its hash, as the other method does. */
  public Hash sendRawTransaction(SignedTransaction transaction) {
    return request(Eth.sendRawTransaction(transaction));
  }
}
