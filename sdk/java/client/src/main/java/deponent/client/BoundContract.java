package deponent.client;

import deponent.eth.Abi;
import deponent.eth.Address;
import deponent.eth.Bytes;
import deponent.eth.MalformedException;
import deponent.eth.ProtocolException;
import deponent.eth.RevertException;
import deponent.rpc.Request;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * A contract at an address, called through a client or by an account: what code that was generated
 * for a {@link Contract} rests on. Reverts are decoded by the errors of its ABI.
 */
public final class BoundContract {
  private final Client client;
  private final @Nullable Account account;
  private final Address address;
  private final Abi abi;
  private final BlockId block;

  private BoundContract(
      Client client, @Nullable Account account, Address address, Abi abi, BlockId block) {
    this.client = Objects.requireNonNull(client);
    this.account = account;
    this.address = Objects.requireNonNull(address);
    this.abi = Objects.requireNonNull(abi);
    this.block = Objects.requireNonNull(block);
  }

  /** A contract to which no transactions are sent. */
  public static BoundContract at(Client client, Address address, Abi abi) {
    return new BoundContract(client, null, address, abi, BlockId.LATEST);
  }

  /** A contract to which {@code account} sends transactions; it is the sender of calls, too. */
  public static BoundContract at(Account account, Address address, Abi abi) {
    return new BoundContract(account.client(), account, address, abi, BlockId.LATEST);
  }

  /** The same contract, called on the state after a block; by default that is the latest. */
  public BoundContract at(BlockId block) {
    return new BoundContract(client, account, address, abi, block);
  }

  /** The contract's address. */
  public Address address() {
    return address;
  }

  /** The account; none where no transactions are sent. */
  public Optional<Account> account() {
    return Optional.ofNullable(account);
  }

  /** A call of the contract with this data. */
  public Call prepare(Bytes data) {
    Call call = Call.to(address).data(data).errors(abi);
    return account == null ? call : call.from(account.address());
  }

  /**
   * Calls, and reads what is returned.
   *
   * @throws RevertException if the contract reverts
   * @throws ProtocolException if what is returned does not decode, as where there is no contract
   */
  public <T> T call(Call call, Function<Bytes, T> result) {
    try {
      return read(result, client.call(call, block));
    } catch (RevertException revert) {
      throw revert.with(abi);
    }
  }

  /** The same as a future. */
  public <T> CompletableFuture<T> callAsync(Call call, Function<Bytes, T> result) {
    return client
        .async(Eth.call(call, block))
        .handle(
            (returned, failure) -> {
              if (failure == null) {
                return read(result, returned);
              }
              Throwable cause =
                  failure instanceof CompletionException ? failure.getCause() : failure;
              throw new CompletionException(
                  cause instanceof RevertException revert ? revert.with(abi) : cause);
            });
  }

  /** As a provider reads the answer of {@link #request}. */
  private static <T> T read(Function<Bytes, T> result, Bytes returned) {
    try {
      return result.apply(returned);
    } catch (MalformedException other) {
      throw new ProtocolException("eth_call: " + other.getMessage(), other);
    }
  }

  /** The request of a call, whose answer is read. */
  public <T> Request<T> request(Call call, Function<Bytes, T> result) {
    Request<Bytes> plain = Eth.call(call, block);
    return Request.of(
            plain.method(), plain.params(), json -> result.apply(plain.result().read(json)))
        .repeatable();
  }

  /**
   * Sends a transaction.
   *
   * @throws IllegalStateException if there is no account
   * @throws deponent.eth.EthException as {@link Account#send(Call)}
   */
  public PendingTransaction send(Call call) {
    return sender().send(call);
  }

  /** The same as a future. */
  public CompletableFuture<PendingTransaction> sendAsync(Call call) {
    return sender().sendAsync(call);
  }

  private Account sender() {
    if (account == null) {
      throw new IllegalStateException(
          "a client sends no transactions: at(account, address) takes the account that does");
    }
    return account;
  }
}
