package deponent.client;

import deponent.eth.Address;
import deponent.eth.Authorization;
import deponent.eth.BlobSidecar;
import deponent.eth.Bytes;
import deponent.eth.EthException;
import deponent.eth.Hash;
import deponent.eth.JsonReader;
import deponent.eth.RevertException;
import deponent.eth.RpcException;
import deponent.eth.Signature;
import deponent.eth.SignedTransaction;
import deponent.eth.Signer;
import deponent.eth.SigningRequest;
import deponent.eth.TransportException;
import deponent.eth.Wei;
import deponent.rpc.Request;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * An account that sends transactions through a client. What a {@link Call} leaves out is filled in:
 * nonce, gas limit and fees. It may be used by many threads, which belong on virtual ones.
 *
 * <pre>{@code
 * Account me = eth.account(key);
 * Receipt receipt = me.send(Call.to(friend).value(Wei.ether("0.5"))).await();
 * Address contract = me.deploy(initCode).await().contractAddress().orElseThrow();
 * }</pre>
 *
 * <p>Transactions have a fifth more gas than the server's estimate, since blocks that come before
 * may change what they do; payments have what they need.
 */
public final class Account implements Signer {
  /** Tries with another nonce, where somebody else takes them. */
  private static final int TRIES = 5;

  private static final long FIRST_PAUSE_MILLIS = 100;

  /**
   * The most gas of a transaction that delegates: what an authorization costs in the forks up to
   * Amsterdam (EIP-8037), with room.
   */
  private static final long DELEGATE_GAS = 300_000;

  private static final Fees MARKET = Fees.market();

  private final Client client;
  private final Signer signer;

  /** Whether the server signs what it sends. */
  private final boolean ofNode;

  /** Null where they are the market's, or left to a server that signs. */
  private final @Nullable Fees fees;

  private final Nonces nonces;

  private Account(
      Client client, Signer signer, boolean ofNode, @Nullable Fees fees, Nonces nonces) {
    this.client = client;
    this.signer = signer;
    this.ofNode = ofNode;
    this.fees = fees;
    this.nonces = nonces;
  }

  /** An account whose transactions {@code signer} signs. */
  static Account of(Client client, Signer signer, Nonces nonces) {
    return new Account(client, Objects.requireNonNull(signer), false, null, nonces);
  }

  /** An account of which the server has the key, or needs none. */
  static Account ofNode(Client client, Address address, Nonces nonces) {
    return new Account(client, RpcSigner.of(client.provider(), address), true, null, nonces);
  }

  /**
   * The same account with other fees; {@link Fees#market} by default, and those of the server where
   * it signs.
   */
  public Account fees(Fees fees) {
    return new Account(client, signer, ofNode, Objects.requireNonNull(fees), nonces);
  }

  /**
   * The same account with other nonces; by default {@link Nonces#local} ones, which all accounts of
   * the client share.
   */
  public Account nonces(Nonces nonces) {
    return new Account(client, signer, ofNode, fees, Objects.requireNonNull(nonces));
  }

  /** The client through which it sends. */
  public Client client() {
    return client;
  }

  @Override
  public Address address() {
    return signer.address();
  }

  @Override
  public CompletableFuture<Signature> signAsync(SigningRequest request) {
    return signer.signAsync(request);
  }

  @Override
  public Signature sign(SigningRequest request) {
    return signer.sign(request);
  }

  /**
   * Sends a transaction, and returns when the server has taken it.
   *
   * @throws deponent.eth.RevertException if it would revert, with the reason; nothing was sent
   * @throws RpcException if the server does not take it
   * @throws deponent.eth.TransportException without an answer: where it may have run, the
   *     transaction may be in the server's pool; its hash is in the message
   * @throws deponent.eth.ProtocolException if the server names another hash
   * @throws IllegalArgumentException if the call is from another account, or its parts do not go
   *     together
   */
  public PendingTransaction send(Call call) {
    return send(call, null);
  }

  /** The same as {@link #send(Call)}, on a virtual thread. */
  public CompletableFuture<PendingTransaction> sendAsync(Call call) {
    return async(() -> send(call));
  }

  static <T> CompletableFuture<T> async(Supplier<T> what) {
    return CompletableFuture.supplyAsync(what, Thread::startVirtualThread);
  }

  /**
   * Creates a contract by {@code initCode}, which {@link deponent.eth.AbiConstructor#encode} puts
   * together. The contract's address is in the receipt.
   *
   * @throws EthException as {@link #send(Call)}
   */
  public PendingTransaction deploy(Bytes initCode) {
    return send(Call.create(initCode));
  }

  /**
   * Sends a transaction with blobs beside it (EIP-4844), which {@code Blobs.sidecar} of the wallet
   * makes.
   *
   * @throws EthException as {@link #send(Call)}
   * @throws UnsupportedOperationException of an account of the server's
   */
  public PendingTransaction sendBlobs(Call call, BlobSidecar sidecar) {
    return send(call, sidecar);
  }

  /**
   * Has this account run the code of {@code contract} from now on (EIP-7702); the zero address ends
   * that. It signs the authorization, and sends it in a transaction that does nothing else.
   *
   * @throws EthException as {@link #send(Call)}
   * @throws UnsupportedOperationException of a signer that signs no authorizations
   */
  public PendingTransaction delegate(Address contract) {
    try (Nonces.Turn turn = nonces.begin(client, address())) {
      long chain = client.chain();
      Call nothing = Call.to(Address.ZERO).gasLimit(DELEGATE_GAS);
      Fee fee = Filled.feeOf(nothing, this);
      long nonce = turn.take();
      // The transaction itself takes the nonce before that of the authorization.
      Authorization.Signed own = sign(Authorization.of(chain, contract, nonce + 1));
      Filled filled = Filled.with(nothing.authorizations(List.of(own)), fee, this);
      try {
        PendingTransaction pending = published(filled, nonce);
        turn.sent(pending.hash(), nonce + 2);
        return pending;
      } catch (TransportException lost) {
        turn.lost(lost);
        throw lost;
      }
    }
  }

  /**
   * Signs a transaction without sending it. Its nonce is the account's next one at the server,
   * pending transactions counted, unless the call says it; it is not reserved.
   *
   * @throws EthException as {@link #send(Call)}
   */
  public SignedTransaction prepare(Call call) {
    CompletableFuture<Long> nonce =
        call.nonce().isPresent()
            ? CompletableFuture.completedFuture(call.nonce().getAsLong())
            : client.async(Eth.transactionCount(address(), BlockId.PENDING));
    try {
      return sign(Filled.of(call, null, this).at(Joined.of(nonce)));
    } finally {
      nonce.cancel(false);
    }
  }

  /**
   * Sends a transaction that was signed before, by whomever.
   *
   * @throws EthException as {@link #send(Call)}
   */
  public PendingTransaction send(SignedTransaction signed) {
    new Publication(client, signed.hash(), signed.encode()).send();
    return new PendingTransaction(client, signed.hash(), Reverts.NONE);
  }

  /** Leaves what the call does not say to the server. */
  private PendingTransaction sendByNode(Call call) {
    Call whole = call.from(address());
    if (fees != null && call.gasPrice().isEmpty() && call.maxFeePerGas().isEmpty()) {
      whole =
          switch (fee()) {
            case Fee.Legacy(Wei price) -> whole.gasPrice(price);
            case Fee.Market(Wei most, Wei tip) -> whole.fees(most, tip);
          };
    }
    try {
      // Not all servers look first whether it reverts.
      Call with = whole.gasLimit(Joined.of(Filled.gas(whole, client)));
      Request<Hash> request = Request.of("eth_sendTransaction", with::write, JsonReader::nextHash);
      return new PendingTransaction(client, client.request(request), call.errors());
    } catch (RevertException revert) {
      throw revert.with(call.errors());
    }
  }

  private PendingTransaction send(Call call, @Nullable BlobSidecar sidecar) {
    if (!call.from().orElse(address()).equals(address())) {
      throw new IllegalArgumentException(
          "a call from " + call.from().get() + " is not sent by " + address());
    }
    if (ofNode && sidecar != null) {
      throw new UnsupportedOperationException("eth_sendTransaction takes no blobs");
    }
    if (ofNode) {
      return sendByNode(call);
    }
    if (call.nonce().isPresent()) {
      return published(Filled.of(call, sidecar, this), call.nonce().getAsLong());
    }
    Nonces.Turn turn = nonces.begin(client, address());
    try {
      Filled filled = Filled.of(call, sidecar, this);
      long before = -1;
      for (int tried = 1; ; tried++) {
        long nonce = turn.take();
        if (nonce == before) {
          // The server does not know yet that somebody has it.
          turn.close();
          Pauses.millis(FIRST_PAUSE_MILLIS << (tried - 2));
          turn = nonces.begin(client, address());
          nonce = turn.take();
        }
        try {
          PendingTransaction pending = published(filled, nonce);
          turn.sent(pending.hash(), nonce + 1);
          return pending;
        } catch (RpcException refused) {
          boolean taken = Refusals.isNonceTaken(refused) || Refusals.isKnown(refused);
          if (!taken || tried == TRIES) {
            throw refused;
          }
        } catch (TransportException lost) {
          turn.lost(lost);
          throw lost;
        }
        before = nonce;
        turn.close();
        turn = nonces.begin(client, address());
      }
    } finally {
      turn.close();
    }
  }

  private PendingTransaction published(Filled filled, long nonce) {
    SignedTransaction signed = sign(filled.at(nonce));
    new Publication(client, signed.hash(), filled.encoded(signed)).send();
    return new PendingTransaction(this, signed, filled.sidecar(), filled.errors());
  }

  /** Where it has its nonces from. */
  Nonces nonces() {
    return nonces;
  }

  private Fees chosen() {
    return fees == null ? MARKET : fees;
  }

  /** The fee of a transaction that is sent now. */
  Fee fee() {
    return chosen().fee(client);
  }

  /** The fee of blob gas of a transaction that is sent now. */
  Wei blobFee() {
    return chosen().blobFee(client);
  }
}
