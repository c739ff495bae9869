package deponent.client;

import deponent.eth.Address;
import deponent.eth.Hash;
import deponent.eth.RpcException;
import deponent.eth.TransportException;
import deponent.eth.TransportException.Kind;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/** Nonces that are counted here, one transaction after the other. */
final class LocalNonces implements Nonces {
  private final ConcurrentHashMap<Address, Line> lines = new ConcurrentHashMap<>();

  @Override
  public Turn begin(Client client, Address account) {
    return lines.computeIfAbsent(account, Line::new).begin(client);
  }

  /** The transactions of one account. */
  private static final class Line {
    private final Address account;

    /** Whoever has it may send, and reads and writes the fields below. */
    private final Semaphore sending = new Semaphore(1, true);

    /** Turns that have begun and not ended. */
    private final AtomicInteger open = new AtomicInteger();

    /** Turns that were taken in all. */
    private volatile long taken;

    /** Turns that were lost in all. */
    private volatile long losses;

    private @Nullable TransportException loss;
    private boolean counted;
    private long next;
    private @Nullable Hash last;

    Line(Address account) {
      this.account = account;
    }

    Turn begin(Client client) {
      boolean alone = open.getAndIncrement() == 0;
      return new LocalTurn(this, client, alone);
    }

    /** The next nonce, with what the server says, which was asked after the last turn ended. */
    void ask(Client client, long pending) {
      boolean behind = pending < next && waits(client, last);
      if (!behind) {
        next = pending;
        counted = true;
      }
    }

    /**
     * Whether the last transaction waits in the server's pool. If so a lower number of transactions
     * is old, as from another server behind the same address. If not the transaction has left: the
     * chain was set back, or the pool dropped it.
     */
    private static boolean waits(Client client, @Nullable Hash last) {
      try {
        return last != null
            && client.transaction(last).map(known -> known.inclusion().isEmpty()).orElse(false);
      } catch (RpcException nobodySays) {
        return true;
      }
    }
  }

  private static final class LocalTurn implements Turn {
    private final Line line;
    private final Client client;

    /** Turns of others that were taken when this one began. */
    private final long before;

    /** Turns that were lost when this one began. */
    private final long losses;

    private final @Nullable CompletableFuture<Long> ahead;
    private boolean has;
    private boolean sent;
    private boolean closed;

    LocalTurn(Line line, Client client, boolean alone) {
      this.line = line;
      this.client = client;
      before = line.taken;
      losses = line.losses;
      ahead = alone ? client.async(Eth.transactionCount(line.account, BlockId.PENDING)) : null;
    }

    @Override
    public long take() {
      if (has || closed) {
        throw new IllegalStateException("a turn is taken once");
      }
      try {
        line.sending.acquire();
      } catch (InterruptedException interrupted) {
        Thread.currentThread().interrupt();
        throw new TransportException(
            Kind.TIMEOUT, false, "the thread was interrupted", interrupted);
      }
      has = true;
      TransportException loss = line.loss;
      if (losses != line.losses && loss != null) {
        throw new TransportException(
            loss.kind(),
            false,
            "a transaction before this one was lost: " + loss.getMessage(),
            loss);
      }
      boolean fresh = ahead != null && line.taken == before;
      line.taken++;
      try {
        if (fresh) {
          line.ask(client, Joined.of(ahead));
        } else if (!line.counted) {
          line.ask(client, client.transactionCount(line.account, BlockId.PENDING));
        }
      } catch (TransportException failure) {
        lost(failure);
        throw failure;
      }
      return line.next;
    }

    @Override
    public void sent(Hash transaction, long next) {
      line.next = next;
      line.last = transaction;
      sent = true;
    }

    @Override
    public void lost(TransportException why) {
      line.loss = why;
      line.losses++;
    }

    @Override
    public void close() {
      if (closed) {
        return;
      }
      closed = true;
      if (has) {
        line.counted &= sent;
        line.sending.release();
      } else if (ahead != null) {
        ahead.cancel(false);
      }
      line.open.decrementAndGet();
    }
  }
}
