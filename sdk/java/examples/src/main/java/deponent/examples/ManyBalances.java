package deponent.examples;

import deponent.client.Client;
import deponent.client.Eth;
import deponent.eth.Address;
import deponent.eth.Wei;
import deponent.rpc.Batch;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/** 5. Many balances: in one JSON-RPC batch, or by plain calls of virtual threads. */
public final class ManyBalances {
  private ManyBalances() {}

  static List<Wei> inOneBatch(Client eth, List<Address> people) {
    Batch batch = eth.batch();
    List<CompletableFuture<Wei>> balances =
        people.stream().map(one -> batch.add(Eth.balance(one))).toList();
    batch.send();
    return balances.stream().map(CompletableFuture::join).toList();
  }

  /** Calls that wait at the same time leave in one write. */
  static List<Wei> onVirtualThreads(Client eth, List<Address> people)
      throws InterruptedException, ExecutionException {
    try (ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor()) {
      List<Future<Wei>> balances =
          people.stream().map(one -> threads.submit(() -> eth.balance(one))).toList();
      List<Wei> all = new ArrayList<>();
      for (Future<Wei> one : balances) {
        all.add(one.get());
      }
      return all;
    }
  }

  /** Prints the balances of the accounts that follow the node's address. */
  public static void main(String[] arguments) {
    List<Address> people = List.of(arguments).stream().skip(1).map(Address::of).toList();
    try (Client eth = Client.connect(arguments[0])) {
      inOneBatch(eth, people).forEach(System.out::println);
    }
  }
}
