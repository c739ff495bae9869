package deponent.bench;

import deponent.eth.JsonReader;
import deponent.rpc.Batch;
import deponent.rpc.Params;
import deponent.rpc.Provider;
import deponent.rpc.Request;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;

/** This SDK's connections. */
record Ours(Provider provider) implements Contender {
  private static final Request<Long> NUMBER =
      Request.of("eth_blockNumber", Params.NONE, JsonReader::nextQuantity).repeatable();

  static Ours at(String address) {
    return new Ours(Provider.at(address).connect());
  }

  @Override
  public void call() {
    provider.request(NUMBER);
  }

  @Override
  public void batch(int count) {
    Batch batch = provider.batch();
    List<CompletableFuture<Long>> all = new ArrayList<>(count);
    for (int i = 0; i < count; i++) {
      all.add(batch.add(NUMBER));
    }
    batch.sendAndWait();
    all.forEach(CompletableFuture::join);
  }

  @Override
  public void pipelined(int count) {
    List<CompletableFuture<Long>> all = new ArrayList<>(count);
    for (int i = 0; i < count; i++) {
      all.add(provider.requestAsync(NUMBER));
    }
    all.forEach(CompletableFuture::join);
  }

  @Override
  public void close() {
    provider.close();
  }
}
