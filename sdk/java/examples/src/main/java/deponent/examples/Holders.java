package deponent.examples;

import deponent.client.Client;
import deponent.client.Feed;
import deponent.client.Log;
import deponent.client.LogFilter;
import deponent.client.Update;
import deponent.client.Update.Added;
import deponent.client.Update.Gap;
import deponent.client.Update.Removed;
import deponent.eth.Address;
import java.math.BigInteger;
import java.util.HashMap;
import java.util.Map;

/**
 * 6. An application: who holds how much of a token, from its logs, over reorganisations and dropped
 * connections.
 */
public final class Holders {
  private final Address token;
  private final Map<Address, BigInteger> held = new HashMap<>();

  Holders(Address token) {
    this.token = token;
  }

  Feed<Log> follow(Client eth, long fromBlock) {
    LogFilter transfers = LogFilter.of(Erc20Contract.TRANSFER.abi()).from(token);
    return eth.follow(transfers.fromBlock(fromBlock));
  }

  /** Takes what happened next. */
  void take(Update<Log> update) {
    switch (update) {
      case Added<Log>(Log log) -> book(Erc20Contract.TRANSFER.decode(log), 1);
      case Removed<Log>(Log log) -> book(Erc20Contract.TRANSFER.decode(log), -1);
      // What could not be fetched again: a real application reads those blocks elsewhere.
      case Gap<Log>(long from, long to, String why) ->
          throw new IllegalStateException("nothing is known of " + from + " to " + to + ": " + why);
    }
  }

  private void book(Erc20.Transfer transfer, int sign) {
    BigInteger value = transfer.value().multiply(BigInteger.valueOf(sign));
    held.merge(transfer.to(), value, BigInteger::add);
    if (!transfer.from().equals(Address.ZERO)) {
      held.merge(transfer.from(), value.negate(), BigInteger::add);
    }
  }

  BigInteger of(Address account) {
    return held.getOrDefault(account, BigInteger.ZERO);
  }

  /** Prints who holds the token at each change: the node, the token, the first block. */
  public static void main(String[] arguments) {
    Holders holders = new Holders(Address.of(arguments[1]));
    try (Client eth = Client.connect(arguments[0]);
        Feed<Log> feed = holders.follow(eth, Long.parseLong(arguments[2]))) {
      for (Update<Log> update : feed) {
        holders.take(update);
        System.out.println(holders.held);
      }
    }
  }
}
