package deponent.testing;

import deponent.client.Call;
import deponent.client.Client;
import deponent.eth.Address;
import deponent.eth.Bytes;
import deponent.eth.Hash;
import deponent.eth.JsonReader;
import deponent.eth.Wei;
import deponent.rpc.Decoder;
import deponent.rpc.Params;
import deponent.rpc.Request;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Objects;

/**
 * Steers a chain for tests: {@code deponent dev} or anvil. Its methods wait for the answer, may be
 * called from many threads, and throw what {@link Client}'s do.
 *
 * <pre>{@code
 * TestClient chain = node.client();
 * try (Snapshot start = chain.snapshot()) {
 *   chain.setBalance(friend, Wei.ether("10"));
 *   chain.increaseTime(Duration.ofDays(1));
 *   chain.mine();
 * } // the chain is as it was
 * }</pre>
 */
public final class TestClient implements AutoCloseable {
  private final Client client;

  private TestClient(Client client) {
    this.client = client;
  }

  /** Steers the chain of {@code client}, which {@link #close} closes. */
  public static TestClient of(Client client) {
    return new TestClient(Objects.requireNonNull(client));
  }

  /**
   * Connects to a chain for tests that runs already, such as {@code ws://127.0.0.1:8545}.
   *
   * @throws IllegalArgumentException if it is no address
   * @throws deponent.eth.TransportException if there is no connection within 20 s
   */
  public static TestClient connect(String address) {
    return of(Client.connect(address));
  }

  /** The client of the chain. */
  public Client eth() {
    return client;
  }

  private <T> T ask(String method, Params params, Decoder<T> result) {
    return client.request(Request.of(method, params, result));
  }

  private void tell(String method, Params params) {
    ask(
        method,
        params,
        json -> {
          json.skipValue();
          return Boolean.TRUE;
        });
  }

  // Blocks and time.

  /** Mines a block with the pending transactions. */
  public void mine() {
    mine(1);
  }

  /**
   * Mines {@code blocks} blocks. The first includes the pending transactions.
   *
   * @throws IllegalArgumentException if the number is not positive
   */
  public void mine(int blocks) {
    checkBlocks(blocks);
    tell("anvil_mine", json -> json.quantity(blocks));
  }

  /**
   * Mines {@code blocks} blocks, whose timestamps are {@code apart}.
   *
   * @throws IllegalArgumentException if the number is not positive, or the time no whole seconds
   */
  public void mine(int blocks, Duration apart) {
    checkBlocks(blocks);
    long seconds = seconds(apart);
    tell("anvil_mine", json -> json.quantity(blocks).quantity(seconds));
  }

  private static void checkBlocks(int blocks) {
    if (blocks < 1) {
      throw new IllegalArgumentException("the number of blocks is positive, not " + blocks);
    }
  }

  private static long seconds(Duration time) {
    if (time.isNegative() || time.getNano() != 0) {
      throw new IllegalArgumentException("a chain's time is in whole seconds, not " + time);
    }
    return time.toSeconds();
  }

  /** Sets whether a block is mined for each transaction. */
  public void automine(boolean on) {
    tell("evm_setAutomine", json -> json.value(on));
  }

  /**
   * Mines a block every {@code time}. Zero ends that.
   *
   * @throws IllegalArgumentException if it is no whole number of seconds
   */
  public void interval(Duration time) {
    long seconds = seconds(time);
    tell("evm_setIntervalMining", json -> json.value(seconds));
  }

  /**
   * Sets the time of the next block, in seconds.
   *
   * @throws deponent.eth.RpcException if it is not after that of the latest block
   */
  public void setNextBlockTimestamp(Instant time) {
    tell("evm_setNextBlockTimestamp", json -> json.value(time.getEpochSecond()));
  }

  /**
   * Advances the chain's clock. The timestamps of later blocks are later by {@code time}.
   *
   * @throws IllegalArgumentException if it is no whole number of seconds
   */
  public void increaseTime(Duration time) {
    long seconds = seconds(time);
    tell("evm_increaseTime", json -> json.value(seconds));
  }

  /** Sets the base fee of the next block. */
  public void setNextBlockBaseFee(Wei fee) {
    tell("anvil_setNextBlockBaseFeePerGas", json -> json.quantity(fee));
  }

  /** Sets the gas limit of later blocks. */
  public void setBlockGasLimit(long gas) {
    tell("evm_setBlockGasLimit", json -> json.quantity(gas));
  }

  /** Sets who gets the fees of later blocks. */
  public void setCoinbase(Address account) {
    tell("anvil_setCoinbase", json -> json.value(account));
  }

  /**
   * Replaces the last {@code depth} blocks by as many empty ones. One that was empty may come
   * again.
   *
   * @throws IllegalArgumentException if the number is not positive
   */
  public void reorg(int depth) {
    reorg(depth, List.of());
  }

  /**
   * Replaces the last {@code depth} blocks by as many others with these transactions, which the
   * node or an impersonated account sends.
   *
   * @throws IllegalArgumentException if the number is not positive, or a block not among them
   */
  public void reorg(int depth, List<Replacement> transactions) {
    checkBlocks(depth);
    List<Replacement> all = List.copyOf(transactions);
    for (Replacement one : all) {
      if (one.block() >= depth) {
        throw new IllegalArgumentException(
            "of " + depth + " blocks none is at " + one.block() + ": they count from 0 on");
      }
    }
    tell(
        "anvil_reorg",
        json -> {
          json.value(depth).beginArray();
          for (Replacement one : all) {
            json.beginArray();
            one.transaction().write(json);
            json.value(one.block()).endArray();
          }
          json.endArray();
        });
  }

  /**
   * A transaction of a block that replaces another one.
   *
   * @param transaction what is sent; it names its sender
   * @param block the place of its block among the new ones, from 0 on
   */
  public record Replacement(Call transaction, int block) {
    /** Checks the parts. */
    public Replacement {
      if (transaction.from().isEmpty()) {
        throw new IllegalArgumentException("the transaction of a new block names its sender");
      }
      if (block < 0) {
        throw new IllegalArgumentException("blocks count from 0 on, and there is no " + block);
      }
    }
  }

  /**
   * Removes the last {@code depth} blocks.
   *
   * @throws IllegalArgumentException if the number is not positive
   */
  public void rollback(int depth) {
    checkBlocks(depth);
    tell("anvil_rollback", json -> json.value(depth));
  }

  /** Remembers the chain as it is; closing the snapshot reverts to it. */
  public Snapshot snapshot() {
    return new Snapshot(this, ask("evm_snapshot", Params.NONE, JsonReader::nextString));
  }

  boolean revert(String id) {
    return ask("evm_revert", json -> json.value(id), JsonReader::nextBoolean);
  }

  // Accounts.

  /** Sets the balance of an account. */
  public void setBalance(Address account, Wei balance) {
    tell("anvil_setBalance", json -> json.value(account).quantity(balance));
  }

  /** Sets the code of an account; its constructor does not run. */
  public void setCode(Address account, Bytes code) {
    tell("anvil_setCode", json -> json.value(account).value(code));
  }

  /** Sets the nonce of an account. */
  public void setNonce(Address account, long nonce) {
    tell("anvil_setNonce", json -> json.value(account).quantity(nonce));
  }

  /** Sets a slot of an account's storage. */
  public void setStorageAt(Address account, Hash slot, Hash value) {
    tell("anvil_setStorageAt", json -> json.value(account).value(slot).value(value));
  }

  /** Lets transactions of an account be sent without its key, until the result is closed. */
  public Impersonation impersonate(Address account) {
    tell("anvil_impersonateAccount", json -> json.value(account));
    return new Impersonation(this, account);
  }

  void stopImpersonating(Address account) {
    tell("anvil_stopImpersonatingAccount", json -> json.value(account));
  }

  /** Whether transactions of any account can be sent without a key. */
  public void autoImpersonate(boolean on) {
    tell("anvil_autoImpersonateAccount", json -> json.value(on));
  }

  /**
   * Sends a transaction without a key: of an account of the node, or an impersonated one. Gas, fees
   * and nonce are filled in by the node.
   *
   * @param transaction what is sent; it names its sender
   * @return its hash
   * @throws IllegalArgumentException if it names no sender
   */
  public Hash send(Call transaction) {
    if (transaction.from().isEmpty()) {
      throw new IllegalArgumentException("what the node sends names its sender: Call.from(..)");
    }
    return ask("eth_sendTransaction", transaction::write, JsonReader::nextHash);
  }

  // Transactions that wait.

  /** Drops a transaction that waits, and says whether there was such a one. */
  public boolean dropTransaction(Hash transaction) {
    return ask(
        "anvil_dropTransaction",
        json -> json.value(transaction),
        json -> {
          boolean there = json.peek() == JsonReader.Kind.STRING;
          json.skipValue();
          return there;
        });
  }

  /** Drops all transactions that wait. */
  public void dropAllTransactions() {
    tell("anvil_dropAllTransactions", Params.NONE);
  }

  // The state as a whole.

  /** All accounts as they are, for {@link #loadState}. */
  public Bytes dumpState() {
    return ask("anvil_dumpState", Params.NONE, JsonReader::nextBytes);
  }

  /** Sets accounts as {@link #dumpState} had them, of this chain or another one. */
  public void loadState(Bytes state) {
    tell("anvil_loadState", json -> json.value(state));
  }

  /** Ends the connection. */
  @Override
  public void close() {
    client.close();
  }
}
