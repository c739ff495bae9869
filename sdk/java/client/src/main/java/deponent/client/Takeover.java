package deponent.client;

import deponent.eth.Address;
import deponent.eth.RpcException;
import java.util.Optional;

/** Finds the transaction that used a nonce, by the account's transactions after earlier blocks. */
final class Takeover {
  private final Client client;
  private final Address account;
  private final long nonce;

  Takeover(Client client, Address account, long nonce) {
    this.client = client;
    this.account = account;
    this.nonce = nonce;
  }

  /**
   * The transaction of the chain that has the nonce; none where an authorization used it, or the
   * server has no states so old.
   */
  Optional<ChainTransaction> find() {
    long used = client.blockNumber();
    long free = used;
    try {
      for (long step = 1; isUsedAfter(free); step *= 2) {
        if (free == 0) {
          return Optional.empty();
        }
        used = free;
        free = Math.max(0, free - step);
      }
      while (used - free > 1) {
        long middle = free + (used - free) / 2;
        if (isUsedAfter(middle)) {
          used = middle;
        } else {
          free = middle;
        }
      }
    } catch (RpcException noState) {
      return Optional.empty();
    }
    return in(used);
  }

  private boolean isUsedAfter(long block) {
    return client.transactionCount(account, BlockId.of(block)) > nonce;
  }

  private Optional<ChainTransaction> in(long number) {
    return client
        .blockWithTransactions(BlockId.of(number))
        .flatMap(
            block ->
                block.transactions().stream()
                    .filter(one -> one.nonce() == nonce && one.from().equals(account))
                    .findFirst());
  }
}
