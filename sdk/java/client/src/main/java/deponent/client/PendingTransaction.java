package deponent.client;

import deponent.eth.Abi;
import deponent.eth.Address;
import deponent.eth.BlobSidecar;
import deponent.eth.Bytes;
import deponent.eth.EthException;
import deponent.eth.Hash;
import deponent.eth.ProtocolException;
import deponent.eth.ReplacedException;
import deponent.eth.RpcException;
import deponent.eth.SignedTransaction;
import deponent.eth.Transaction;
import deponent.eth.TransportException;
import deponent.eth.TransportException.Kind;
import java.time.Duration;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import org.jspecify.annotations.Nullable;

/**
 * A transaction that a server has accepted. It is included in a block, or replaced by another one
 * with its nonce, or dropped from the pool.
 *
 * <pre>{@code
 * PendingTransaction sent = me.send(Call.to(friend).value(Wei.ether("0.5")));
 * Receipt receipt = sent.await();
 * Receipt settled = sent.await(12, Duration.ofMinutes(10));
 * }</pre>
 */
public final class PendingTransaction {
  /** How long {@link #await()} waits. */
  private static final Duration LIMIT = Duration.ofMinutes(5);

  /**
   * Blocks that come after a nonce is used and the transaction is nowhere, until it is given up:
   * servers behind one address may not have the same head.
   */
  private static final int BLOCKS = 3;

  private final Client client;
  private final Hash hash;
  private final Abi errors;
  private final @Nullable Account account;
  private final @Nullable SignedTransaction signed;
  private final @Nullable BlobSidecar sidecar;

  /** All transactions of {@link #speedUp} and {@link #cancel} with this nonce, this one first. */
  private final List<PendingTransaction> versions;

  /** Whether it takes the place of one that does something else. */
  private final boolean cancels;

  private volatile @Nullable Sender sender;

  private record Sender(Address address, long nonce) {}

  /** Of an account that signed it. */
  PendingTransaction(
      Account account, SignedTransaction signed, @Nullable BlobSidecar sidecar, Abi errors) {
    this(account, signed, sidecar, errors, new CopyOnWriteArrayList<>(), false);
  }

  private PendingTransaction(
      Account account,
      SignedTransaction signed,
      @Nullable BlobSidecar sidecar,
      Abi errors,
      List<PendingTransaction> versions,
      boolean cancels) {
    this.client = account.client();
    this.hash = signed.hash();
    this.errors = errors;
    this.account = account;
    this.signed = signed;
    this.sidecar = sidecar;
    this.versions = versions;
    this.cancels = cancels;
    sender = new Sender(account.address(), signed.transaction().nonce());
    versions.add(this);
  }

  /** Of a hash alone. */
  PendingTransaction(Client client, Hash hash, Abi errors) {
    this.client = client;
    this.hash = hash;
    this.errors = errors;
    account = null;
    signed = null;
    sidecar = null;
    versions = List.of(this);
    cancels = false;
  }

  /** The transaction's hash. */
  public Hash hash() {
    return hash;
  }

  /** The transaction, where it was signed here. */
  public Optional<SignedTransaction> signed() {
    return Optional.ofNullable(signed);
  }

  /**
   * Waits until the transaction is in a block, for 5 minutes at most.
   *
   * @return its receipt, or that of a transaction in its place that does the same for another fee
   * @throws deponent.eth.RevertException if it failed, with the reason; {@link #receipt} is there
   * @throws ReplacedException if a transaction that does something else took its nonce
   * @throws TransportException if it is in no block by then, or the server did not answer
   * @throws ProtocolException if the server tells of another transaction
   */
  public Receipt await() {
    return await(1, LIMIT);
  }

  /**
   * Waits until the transaction is in a block with {@code confirmations - 1} blocks upon it, for
   * {@code limit} at most. A block that leaves the chain does not count any more.
   *
   * @return its receipt, or that of a transaction in its place that does the same for another fee
   * @throws deponent.eth.RevertException if it failed, with the reason; {@link #receipt} is there
   * @throws ReplacedException if a transaction that does something else took its nonce
   * @throws TransportException if it does not have them by then, or the server did not answer
   * @throws ProtocolException if the server tells of another transaction
   * @throws IllegalArgumentException if one of the parameters is not positive
   */
  public Receipt await(int confirmations, Duration limit) {
    if (confirmations < 1 || limit.isNegative() || limit.isZero()) {
      throw new IllegalArgumentException(
          "confirmations and limit are positive, not " + confirmations + " and " + limit);
    }
    Receipt receipt = new Waiting(confirmations, limit).end();
    if (!receipt.succeeded()) {
      throw new Failure(client, receipt, errors).why();
    }
    return receipt;
  }

  /** The same as {@link #await(int, Duration)}, on a virtual thread. */
  public CompletableFuture<Receipt> awaitAsync(int confirmations, Duration limit) {
    return Account.async(() -> await(confirmations, limit));
  }

  /** Requests the receipt. There is none before the transaction is in a block. */
  public Optional<Receipt> receipt() {
    return receiptOf(hash);
  }

  private Optional<Receipt> receiptOf(Hash wanted) {
    Optional<Receipt> receipt = client.receipt(wanted);
    if (receipt.isPresent() && !receipt.get().transactionHash().equals(wanted)) {
      throw new ProtocolException(
          "eth_getTransactionReceipt: the server tells of "
              + receipt.get().transactionHash()
              + ", and "
              + wanted
              + " was asked for");
    }
    return receipt;
  }

  /**
   * Asks whether the server knows the transaction, in a block or in its pool. Pools drop
   * transactions that pay too little; other servers may have one still, so its nonce is best used
   * by {@link #cancel}.
   */
  public boolean isKnown() {
    return client.transaction(hash).isPresent();
  }

  /**
   * Asks whether another transaction with the same nonce is in a block.
   *
   * @return that transaction's hash
   */
  public Optional<Hash> replaced() {
    Optional<Sender> by = sender();
    if (by.isEmpty() || client.transactionCount(by.get().address()) <= by.get().nonce()) {
      return Optional.empty();
    }
    return new Takeover(client, by.get().address(), by.get().nonce())
        .find()
        .map(ChainTransaction::hash)
        .filter(other -> !other.equals(hash));
  }

  /**
   * Replaces the transaction by the same one with higher fees: those of the account now, and at
   * least a tenth more than before, as pools demand it. With blobs they at least double.
   *
   * @return the new transaction; awaiting either one waits for both
   * @throws EthException as {@link Account#send(Call)}; an {@link deponent.eth.RpcException} if it
   *     is in a block by now
   * @throws IllegalStateException if it was not signed here
   */
  public PendingTransaction speedUp() {
    return outbid(false);
  }

  /**
   * Replaces the transaction by a payment of nothing to its sender, with fees as those of {@link
   * #speedUp}. Awaiting the new one throws a {@link ReplacedException} if it came too late.
   *
   * @return the new transaction
   * @throws EthException as {@link Account#send(Call)}; an {@link deponent.eth.RpcException} if it
   *     is in a block by now
   * @throws IllegalStateException if it was not signed here
   */
  public PendingTransaction cancel() {
    return outbid(true);
  }

  private PendingTransaction outbid(boolean cancel) {
    Account by = account;
    if (by == null) {
      throw new IllegalStateException(hash + " was not signed here: the fees cannot be changed");
    }
    PendingTransaction newest = versions.get(versions.size() - 1);
    Transaction old = Objects.requireNonNull(newest.signed).transaction();
    Transaction mine = Objects.requireNonNull(signed).transaction();
    SignedTransaction higher = by.sign(new Outbid(by, old).with(mine, cancel));
    new Publication(client, higher.hash(), bytes(higher)).send();
    return new PendingTransaction(by, higher, sidecar, errors, versions, cancel || cancels);
  }

  /**
   * Sends the same bytes again, such as after a pool dropped them. It is no error if the server has
   * the transaction.
   *
   * @throws EthException as {@link Account#send(Call)}
   * @throws IllegalStateException if it was not signed here
   */
  public void resend() {
    SignedTransaction mine = signed;
    if (mine == null) {
      throw new IllegalStateException(hash + " was not signed here: its bytes are not known");
    }
    new Publication(client, hash, bytes(mine)).resend();
  }

  private Bytes bytes(SignedTransaction of) {
    BlobSidecar blobs = sidecar;
    return blobs == null ? of.encode() : blobs.encode(of);
  }

  private Optional<Sender> sender() {
    Sender known = sender;
    if (known == null) {
      known = client.transaction(hash).map(one -> new Sender(one.from(), one.nonce())).orElse(null);
      sender = known;
    }
    return Optional.ofNullable(known);
  }

  /** The hash. */
  @Override
  public String toString() {
    return hash.toString();
  }

  /** One who waits for the transaction. */
  private final class Waiting {
    private final int confirmations;
    private final Duration limit;
    private final long deadline;
    private @Nullable Receipt found;

    /** The head when the nonce was used first, and no transaction had it. */
    private long missed = -1;

    Waiting(int confirmations, Duration limit) {
      this.confirmations = confirmations;
      this.limit = limit;
      long now = System.nanoTime();
      long most = Long.MAX_VALUE / 4;
      deadline = now + (limit.getSeconds() > most / 1_000_000_000 ? most : limit.toNanos());
    }

    Receipt end() {
      EthException last = null;
      try {
        Optional<Receipt> there = first();
        if (there.isPresent()) {
          return there.get();
        }
      } catch (TransportException | RpcException failure) {
        last = passing(failure);
      }
      try (Heads.Watch watch = client.heads().watch()) {
        // Blocks that came before the watch began are seen by this look.
        for (boolean early = true; ; early = false) {
          try {
            Optional<Receipt> there = early ? first() : look(watch.tick());
            if (there.isPresent()) {
              return there.get();
            }
            last = watch.tick().failure().orElse(null);
          } catch (TransportException | RpcException failure) {
            last = passing(failure);
          }
          if (!watch.next(deadline)) {
            throw late(last);
          }
        }
      }
    }

    /** A failure that may pass: of the connection, or such as of geth while it makes an index. */
    private static EthException passing(EthException failure) {
      if (failure instanceof RpcException refused && Refusals.isNoMethod(refused)) {
        throw refused;
      }
      return failure;
    }

    private Optional<Receipt> first() {
      found = included().orElse(null);
      if (found == null || confirmations == 1) {
        return Optional.ofNullable(found);
      }
      return settled(client.blockNumber());
    }

    private Optional<Receipt> look(Heads.Tick tick) {
      if (found == null) {
        Optional<Sender> by = sender();
        boolean used = by.isPresent() && tick.count(by.get().address()) > by.get().nonce();
        if (by.isPresent() && !used) {
          return Optional.empty();
        }
        found = included().orElse(null);
        if (found == null && used) {
          found = takeover(by.get(), tick.head()).orElse(null);
        }
      }
      return found == null ? Optional.empty() : settled(tick.head());
    }

    /** The receipt of the transaction, or of one that does the same. */
    private Optional<Receipt> included() {
      Optional<Receipt> mine = receipt();
      for (PendingTransaction other : versions) {
        if (mine.isEmpty() && other != PendingTransaction.this) {
          mine = receiptOf(other.hash);
          if (mine.isPresent() && other.cancels != cancels) {
            throw new ReplacedException(hash, other.hash);
          }
        }
      }
      return mine;
    }

    /** What took the nonce, where that was no transaction of this process. */
    private Optional<Receipt> takeover(Sender by, long head) {
      Optional<ChainTransaction> taker = new Takeover(client, by.address(), by.nonce()).find();
      if (taker.isPresent()) {
        ChainTransaction other = taker.get();
        if (other.hash().equals(hash) || doesTheSame(other)) {
          return receiptOf(other.hash());
        }
        throw new ReplacedException(hash, other.hash());
      }
      missed = missed < 0 ? head : missed;
      if (head >= missed + BLOCKS) {
        throw new ReplacedException(hash, null);
      }
      return Optional.empty();
    }

    private boolean doesTheSame(ChainTransaction other) {
      SignedTransaction mine = signed;
      return mine != null
          && Optional.ofNullable(mine.transaction().to()).equals(other.to())
          && mine.transaction().value().equals(other.value())
          && mine.transaction().data().equals(other.input());
    }

    /** The receipt, once its block has enough blocks upon it and is in the chain still. */
    private Optional<Receipt> settled(long head) {
      Receipt seen = Objects.requireNonNull(found);
      if (confirmations == 1) {
        return Optional.of(seen);
      }
      if (head - seen.blockNumber() + 1 < confirmations) {
        return Optional.empty();
      }
      found = receiptOf(seen.transactionHash()).orElse(null);
      Receipt again = found;
      return again != null && head - again.blockNumber() + 1 >= confirmations
          ? Optional.of(again)
          : Optional.empty();
    }

    private TransportException late(@Nullable EthException last) {
      if (last != null) {
        return new TransportException(
            Kind.TIMEOUT,
            true,
            hash + ": the server did not say within " + limit + " what became of it",
            last);
      }
      if (found != null) {
        String how = " has not " + confirmations + " confirmations after " + limit;
        return new TransportException(Kind.TIMEOUT, true, hash + how, null);
      }
      String how = " is in no block after " + limit;
      try {
        how += isKnown() ? ", and waits in the server's pool" : ", and not in the server's pool";
      } catch (EthException nobodySays) {
        how += ", and the server does not say whether it waits in its pool";
      }
      return new TransportException(Kind.TIMEOUT, true, hash + how, null);
    }
  }
}
