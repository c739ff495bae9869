package deponent.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import deponent.eth.AbiFunction;
import deponent.eth.AccessListEntry;
import deponent.eth.Address;
import deponent.eth.Bytes;
import deponent.eth.Hash;
import deponent.eth.JsonReader;
import deponent.eth.Keccak256;
import deponent.eth.ProtocolException;
import deponent.eth.RpcException;
import deponent.eth.SignedTransaction;
import deponent.eth.SigningRequest;
import deponent.eth.Transaction;
import deponent.eth.Wei;
import deponent.rpc.Batch;
import deponent.rpc.Notice;
import deponent.rpc.Params;
import deponent.rpc.Provider;
import deponent.rpc.Request;
import deponent.rpc.Subscription;
import deponent.sets.Node;
import deponent.sets.Sets;
import deponent.wallet.PrivateKey;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;

/** All requests, at real nodes. */
class RequestsTest {
  private static final Hash TOPIC = Hash.of("0x" + "00".repeat(31) + "77");

  /** Slot 0 becomes 42, a log with a topic has 1 as data, and 1 is returned. */
  private static final String RUNTIME = "602a6000556001600052607760206000a160206000f3";

  private static final Bytes INIT = Bytes.of("6016600c60003960166000f3" + RUNTIME);

  private static final String GETH_KEY =
      "0xb71c71a67e1177ad4e901695e1b4b9ee17ae16c6668d313eac2f96dbcda3f291";

  private static final AbiFunction ANYTHING = AbiFunction.of("anything() returns (uint256)");

  /** A transaction of the first account with this nonce. */
  private static SignedTransaction payment(long nonce) {
    Transaction payment =
        Transaction.to(Address.ZERO)
            .chainId(31337)
            .nonce(nonce)
            .value(Wei.of(1))
            .gasLimit(30_000)
            .fees(Wei.gwei("20"), Wei.gwei("1"))
            .build();
    return Nodes.key(0).sign(payment);
  }

  /** Asks for the JSON as well, and compares it with what was read of it. */
  private static <T> T both(Client eth, Request<T> request) {
    String json = eth.request(Request.of(request.method(), request.params(), JsonReader::nextJson));
    T value = eth.request(request);
    // Nodes may say more than records have.
    Walk.equal(request.method(), Sets.tree(new JsonReader(json)), value, more -> {});
    return value;
  }

  /** As {@link #both}, where the node has the method. */
  private static <T> void maybe(At at, Client eth, Request<T> request) {
    try {
      both(eth, request);
    } catch (RpcException error) {
      assertTrue(at.hasFewer, request + ": " + error);
    }
  }

  /** The kind of a node: its chain, and whether it has fewer methods than ours. */
  private record At(long chainId, boolean hasFewer) {}

  private static Receipt mined(Client eth, Hash transaction) {
    Nodes.mine(eth);
    return both(eth, Eth.receipt(transaction)).orElseThrow();
  }

  /** A chain with a contract that was called. */
  private record Chain(Address me, Address contract, Receipt created, Receipt called) {}

  private static Chain chain(Client eth) {
    Address me = both(eth, Eth.accounts()).getFirst();
    Hash creation = eth.sendTransaction(Call.create(INIT).from(me).gasLimit(200_000));
    Receipt created = mined(eth, creation);
    Address contract = created.contractAddress().orElseThrow();
    Hash call = eth.sendTransaction(Call.to(contract).from(me).gasLimit(200_000));
    Receipt called = mined(eth, call);
    assertTrue(called.succeeded());
    return new Chain(me, contract, created, called);
  }

  @Test
  void readsAreThose() throws Exception {
    Nodes.each(
        List.of(),
        node -> {
          try (Client eth = node.client("ws")) {
            all(new At(31337, node.isAnvil), eth, chain(eth));
          }
        });
  }

  @Test
  void readsAreThoseOfGeth() throws Exception {
    try (Node geth = Node.gethDev()) {
      if (geth == null) {
        return;
      }
      Provider provider = Provider.at(Node.webSocket(geth.http)).timeout(Nodes.LONG).connect();
      try (Client eth = Client.of(provider)) {
        // geth's own account for development.
        Account me = eth.account(PrivateKey.of(GETH_KEY));
        Receipt created = me.deploy(INIT).await(1, Nodes.LONG);
        Address contract = created.contractAddress().orElseThrow();
        Receipt called = me.send(Call.to(contract)).await(1, Nodes.LONG);
        all(new At(1337, true), eth, new Chain(me.address(), contract, created, called));
      }
    }
  }

  private static void all(At node, Client eth, Chain chain) {
    numbers(node, eth);
    state(node, eth, chain);
    blocks(node, eth, chain);
    calls(node, eth, chain);
  }

  private static void numbers(At node, Client eth) {
    assertEquals(node.chainId, both(eth, Eth.chainId()));
    assertTrue(both(eth, Eth.blockNumber()) >= 2);
    both(eth, Eth.gasPrice());
    both(eth, Eth.maxPriorityFeePerGas());
    both(eth, Eth.blobBaseFee());
    maybe(node, eth, Eth.baseFee());
    maybe(node, eth, Eth.coinbase());
    FeeHistory history = both(eth, Eth.feeHistory(2, BlockId.LATEST, 25, 50, 99.5));
    assertEquals(3, history.baseFeePerGas().size());
    assertEquals(3, history.reward().getFirst().size());
    both(eth, Eth.syncing());
    maybe(node, eth, Eth.config());
    maybe(node, eth, Eth.capabilities());
    assertEquals(Long.toString(node.chainId), both(eth, Net.version()));
    both(eth, Net.listening());
    maybe(node, eth, Net.peerCount());
    assertFalse(both(eth, Web3.clientVersion()).isEmpty());
    Bytes bytes = Bytes.of("0x010203");
    assertEquals(Keccak256.hash(bytes), both(eth, Web3.sha3(bytes)));
    both(eth, TxPool.status());
    both(eth, TxPool.content());
    maybe(node, eth, TxPool.contentFrom(Address.ZERO));
  }

  private static void state(At node, Client eth, Chain chain) {
    long before = chain.created.blockNumber() - 1;
    assertTrue(both(eth, Eth.balance(chain.me)).compareTo(Wei.ether("1")) > 0);
    assertEquals(2, both(eth, Eth.transactionCount(chain.me)));
    assertEquals(0, both(eth, Eth.transactionCount(chain.me, BlockId.of(before))));
    assertEquals(Bytes.of(RUNTIME), both(eth, Eth.code(chain.contract)));
    BlockId creation = BlockId.of(chain.created.blockHash());
    Hash answer = Hash.of("0x" + "00".repeat(31) + "2a");
    assertEquals(answer, both(eth, Eth.storageAt(chain.contract, Hash.ZERO)));
    assertEquals(Hash.ZERO, both(eth, Eth.storageAt(chain.contract, Hash.ZERO, creation)));
    maybe(node, eth, Eth.storageValues(Map.of(chain.contract, List.of(Hash.ZERO))));
    Proof proof = both(eth, Eth.proof(chain.contract, List.of(Hash.ZERO, TOPIC)));
    assertEquals(answer, proof.storageProof().getFirst().value());
    assertEquals(Hash.ZERO, proof.storageProof().getLast().value());
    Hash root = eth.block(BlockId.LATEST).orElseThrow().header().stateRoot();
    proof.verify(root);
    both(eth, Eth.proof(chain.me, List.of(TOPIC))).verify(root);
    Address nobody = Address.of("0x00000000000000000000000000000000000000a9");
    both(eth, Eth.proof(nobody, List.of(TOPIC))).verify(root);
  }

  private static void blocks(At node, Client eth, Chain chain) {
    Hash hash = chain.called.transactionHash();
    BlockId at = BlockId.of(chain.called.blockNumber());
    BlockId ofHash = BlockId.of(chain.called.blockHash());
    Block block = both(eth, Eth.block(at)).orElseThrow();
    assertEquals(List.of(hash), block.hashes());
    assertEquals(block.hash(), block.header().computeHash());
    assertEquals(block, both(eth, Eth.block(ofHash)).orElseThrow());
    Block whole = both(eth, Eth.blockWithTransactions(ofHash)).orElseThrow();
    assertEquals(block.hashes(), whole.hashes());
    ChainTransaction transaction = whole.transactions().getFirst();
    assertEquals(hash, transaction.signed().orElseThrow().hash());
    assertEquals(transaction, both(eth, Eth.transaction(hash)).orElseThrow());
    assertEquals(transaction, both(eth, Eth.transaction(at, 0)).orElseThrow());
    assertEquals(transaction, both(eth, Eth.transaction(ofHash, 0)).orElseThrow());
    assertTrue(both(eth, Eth.transaction(at, 1)).isEmpty());
    assertEquals(List.of(chain.called), both(eth, Eth.blockReceipts(at)).orElseThrow());
    assertEquals(
        chain.called.logs(), both(eth, Eth.logs(LogFilter.ALL.topic(0, TOPIC).fromBlock(0))));
    LogFilter one = LogFilter.ALL.from(chain.contract).atBlock(chain.called.blockHash());
    assertEquals(chain.called.logs(), both(eth, Eth.logs(one)));
    assertEquals(1, both(eth, Eth.blockTransactionCount(at)).orElseThrow());
    assertEquals(0, both(eth, Eth.uncleCount(ofHash)).orElseThrow());
    assertTrue(both(eth, Eth.uncle(at, 0)).isEmpty());
    assertTrue(both(eth, Eth.block(BlockId.of(1_000_000))).isEmpty());
    assertTrue(both(eth, Eth.transaction(TOPIC)).isEmpty());
    assertTrue(both(eth, Eth.receipt(TOPIC)).isEmpty());
    assertEquals(hash, SignedTransaction.decode(both(eth, Eth.rawTransaction(hash))).hash());
    maybe(node, eth, Eth.header(at));
    eth.request(Eth.block(BlockId.PENDING));
    for (Request<?> raw :
        List.of(
            Debug.rawBlock(at),
            Debug.rawHeader(at),
            Debug.rawReceipts(at),
            Debug.rawTransaction(hash),
            Debug.badBlocks(),
            Debug.executionWitness(at))) {
      maybe(node, eth, raw);
    }
    traces(node, eth, chain);
  }

  private static void traces(At node, Client eth, Chain chain) {
    Hash hash = chain.called.transactionHash();
    BlockId at = BlockId.of(chain.called.blockNumber());
    BlockId creation = BlockId.of(chain.created.blockHash());
    Call call = Call.to(chain.contract).from(chain.me);
    List<Tracer<?>> tracers =
        List.of(
            Tracer.calls(),
            Tracer.callsWithLogs().timeout(Duration.ofSeconds(5)),
            Tracer.state(),
            Tracer.changes(),
            Tracer.steps(Tracer.With.MEMORY, Tracer.With.RETURN_DATA),
            Tracer.of("4byteTracer", "{}", JsonReader::nextJson));
    for (Tracer<?> tracer : tracers) {
      both(eth, Debug.traceTransaction(hash, tracer));
      maybe(node, eth, Debug.traceBlock(at, tracer));
      maybe(node, eth, Debug.traceBlock(creation, tracer));
      maybe(node, eth, Debug.traceCall(call, BlockId.LATEST, tracer));
    }
    CallFrame frame = eth.request(Debug.traceTransaction(hash, Tracer.callsWithLogs()));
    assertEquals(List.of(TOPIC), frame.logs().getFirst().topics());
    Trace.Kind[] all = Trace.Kind.values();
    TraceFilter filter = TraceFilter.blocks(0, chain.called.blockNumber()).to(chain.contract);
    if (!node.hasFewer) {
      List<FlatTrace> traces = both(eth, Trace.transaction(hash)).orElseThrow();
      assertTrue(traces.getFirst().action() instanceof FlatTrace.CallAction);
    }
    for (Request<?> trace :
        List.of(
            Trace.transaction(hash),
            Trace.block(at),
            Trace.block(creation),
            Trace.filter(filter),
            Trace.get(hash),
            Trace.call(call, BlockId.LATEST, all),
            Trace.calls(List.of(call, call), BlockId.LATEST, all),
            Trace.replayTransaction(hash, all),
            Trace.replayBlock(at, all),
            Trace.rawTransaction(payment(2).encode(), all))) {
      maybe(node, eth, trace);
    }
  }

  private static void calls(At node, Client eth, Chain chain) {
    Call call = Call.to(chain.contract).from(chain.me);
    assertEquals(32, both(eth, Eth.call(call)).size());
    assertEquals(1, eth.call(chain.contract, ANYTHING).integer(0).intValueExact());
    BlockId before = BlockId.of(chain.created.blockNumber() - 1);
    assertEquals(Bytes.EMPTY, both(eth, Eth.call(call, before)));
    Address other = Address.of("0x00000000000000000000000000000000000000a1");
    // The balance of the caller, the number, and slot 1 of the contract.
    Bytes seen = Bytes.of("0x33316000524360205260015460405260606000f3");
    Overrides overrides =
        Overrides.NONE
            .balance(other, Wei.of(5))
            .code(chain.contract, seen)
            .slot(chain.contract, Hash.of("0x" + "00".repeat(31) + "01"), TOPIC);
    Call asOther = Call.to(chain.contract).from(other);
    Bytes result = both(eth, Eth.call(asOther, BlockId.LATEST, overrides));
    assertEquals(5, result.at(31));
    assertEquals(0x77, result.at(95));
    Bytes later = both(eth, Eth.call(asOther, BlockId.LATEST, overrides.number(100)));
    assertEquals(100, later.at(63));
    long gas = both(eth, Eth.estimateGas(call));
    assertTrue(gas > 21_000 && gas < 100_000, "gas " + gas);
    AccessListResult list = both(eth, Eth.createAccessList(call));
    assertEquals(
        List.of(new AccessListEntry(chain.contract, List.of(Hash.ZERO))), list.accessList());
    Simulation plan =
        Simulation.of(Overrides.NONE.balance(other, Wei.ether("3")), asOther.value(Wei.of(1)))
            .then(call, call)
            .withTransfers()
            .withTransactions();
    List<SimulatedBlock> blocks = both(eth, Eth.simulate(plan));
    assertEquals(2, blocks.size());
    assertEquals(2, blocks.getLast().calls().size());
    assertTrue(blocks.getLast().calls().getFirst().succeeded());
  }

  @Test
  void filtersAndSubscriptionsTellWhatIsNew() throws Exception {
    Nodes.each(
        List.of(),
        node -> {
          try (Client eth = node.client("ws");
              Client http = node.client("http");
              Subscription<BlockHeader> heads = eth.subscribe(Eth.newHeads());
              Subscription<Log> logs = eth.subscribe(Eth.newLogs(LogFilter.ALL.topic(0, TOPIC)));
              Subscription<Hash> pending = eth.subscribe(Eth.newPendingTransactions())) {
            Filter<Log> ofLogs = http.newFilter(LogFilter.ALL.topic(0, TOPIC).fromBlock(0));
            Filter<Hash> ofBlocks = http.newBlockFilter();
            Filter<Hash> ofPending = http.newPendingTransactionFilter();
            Chain chain = chain(eth);
            List<Hash> both =
                List.of(chain.created.transactionHash(), chain.called.transactionHash());
            assertEquals(both, List.of(next(pending), next(pending)));
            assertEquals(chain.called.logs().getFirst(), next(logs));
            BlockHeader head = next(heads);
            assertEquals(head.hash(), head.computeHash());
            assertEquals(eth.block(BlockId.of(head.hash())).orElseThrow().header(), head);
            assertEquals(chain.called.logs(), http.filterChanges(ofLogs));
            assertEquals(List.of(), http.filterChanges(ofLogs));
            assertEquals(chain.called.logs(), http.filterLogs(ofLogs));
            assertEquals(head.hash(), http.filterChanges(ofBlocks).getFirst());
            assertEquals(both, http.filterChanges(ofPending));
            assertTrue(http.uninstallFilter(ofLogs));
            assertFalse(http.uninstallFilter(ofLogs));
          }
        });
  }

  private static <T> T next(Subscription<T> subscription) {
    Notice<T> notice = subscription.next(Nodes.LONG).orElseThrow();
    return assertValue(notice);
  }

  private static <T> T assertValue(Notice<T> notice) {
    if (notice instanceof Notice.Value<T>(T value)) {
      return value;
    }
    throw new AssertionError(notice);
  }

  @Test
  void oneRequestHasThreeWays() throws Exception {
    Nodes.each(
        List.of(),
        node -> {
          for (String scheme : List.of("ws", "http")) {
            try (Client eth = node.client(scheme)) {
              List<Address> people = eth.accounts();
              Batch batch = eth.batch();
              List<CompletableFuture<Wei>> balances = new ArrayList<>();
              for (Address one : people) {
                balances.add(batch.add(Eth.balance(one)));
              }
              batch.send();
              for (int i = 0; i < people.size(); i++) {
                Wei balance = eth.balance(people.get(i));
                assertEquals(balance, balances.get(i).get());
                assertEquals(balance, eth.async(Eth.balance(people.get(i))).get());
              }
              Request<String> other = Eth.read("eth_noSuch", Params.NONE, JsonReader::nextJson);
              assertThrows(RpcException.class, () -> eth.request(other));
              Request<Receipt> wrong =
                  Eth.read(
                      "eth_getBlockByNumber", Eth.block(BlockId.LATEST).params(), Receipt::read);
              ProtocolException fault =
                  assertThrows(ProtocolException.class, () -> eth.request(wrong));
              assertEquals(
                  "eth_getBlockByNumber: 'transactionHash' is missing", fault.getMessage());
            }
          }
        });
  }

  @Test
  void aSignedTransactionIsSentAndKnownTheSecondTime() throws Exception {
    Nodes.each(
        List.of("--no-mining"),
        node -> {
          try (Client eth = node.client("ws")) {
            SignedTransaction signed = payment(0);
            assertEquals(signed.hash(), eth.sendRawTransaction(signed));
            ChainTransaction waiting = both(eth, Eth.transaction(signed.hash())).orElseThrow();
            assertTrue(waiting.inclusion().isEmpty());
            assertEquals(signed, waiting.signed().orElseThrow());
            assertEquals(1, both(eth, TxPool.status()).pending());
            Address from = Nodes.key(0).address();
            Map<Long, ChainTransaction> mine = both(eth, TxPool.content()).pending().get(from);
            assertEquals(waiting.signed(), mine.get(0L).signed());
            assertThrows(RpcException.class, () -> eth.sendRawTransaction(signed));
          }
        });
  }

  @Test
  void serversSignAndSend() throws Exception {
    Nodes.each(
        List.of(),
        node -> {
          try (Client eth = node.client("ws")) {
            PrivateKey key = Nodes.key(0);
            Bytes message = Bytes.of("0x0102");
            assertEquals(
                key.sign(new SigningRequest.OfMessage(message)).toBytes(),
                eth.sign(key.address(), message));
            Call payment =
                Call.to(Address.ZERO)
                    .from(key.address())
                    .value(Wei.of(1))
                    .nonce(0)
                    .chainId(31337)
                    .gasLimit(30_000)
                    .fees(Wei.gwei("20"), Wei.gwei("1"));
            Bytes signed = eth.signTransaction(payment);
            assertEquals(payment(0), SignedTransaction.decode(signed));
            // anvil's takes no time to wait, and has neither of the subscriptions.
            if (!node.isAnvil) {
              Receipt receipt = eth.sendRawTransactionSync(signed, Duration.ofSeconds(20));
              assertEquals(payment(0).hash(), receipt.transactionHash());
              assertEquals(receipt, eth.receipt(receipt.transactionHash()).orElseThrow());
              try (Subscription<List<Receipt>> all = eth.subscribe(Eth.newReceipts());
                  Subscription<ChainTransaction> pool =
                      eth.subscribe(Eth.newWholePendingTransactions())) {
                Hash sent = eth.sendRawTransaction(payment(1));
                assertEquals(sent, next(pool).hash());
                assertEquals(sent, next(all).getFirst().transactionHash());
              }
            }
          }
        });
  }
}
