package deponent.bench;

import java.io.IOException;
import java.net.URI;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.web3j.protocol.Web3jService;
import org.web3j.protocol.core.BatchRequest;
import org.web3j.protocol.core.Request;
import org.web3j.protocol.core.Response;
import org.web3j.protocol.core.methods.response.EthBlockNumber;
import org.web3j.protocol.http.HttpService;
import org.web3j.protocol.ipc.UnixIpcService;
import org.web3j.protocol.websocket.WebSocketClient;
import org.web3j.protocol.websocket.WebSocketService;

/** web3j's connections. */
record Web3j(Web3jService service) implements Contender {
  static Web3j webSocket(String address) throws IOException {
    WebSocketService service =
        new WebSocketService(new WebSocketClient(URI.create(address)), false);
    service.connect();
    return new Web3j(service);
  }

  static Web3j http(String address) {
    return new Web3j(new HttpService(address));
  }

  static Web3j unix(String path) {
    return new Web3j(new UnixIpcService(path));
  }

  private Request<Object, EthBlockNumber> number() {
    return new Request<>("eth_blockNumber", List.of(), service, EthBlockNumber.class);
  }

  private static void check(Response<?> response) {
    if (response.hasError() || ((EthBlockNumber) response).getBlockNumber().signum() < 0) {
      throw new IllegalStateException(response.getError().getMessage());
    }
  }

  @Override
  public void call() throws IOException {
    check(number().send());
  }

  @Override
  public void batch(int count) throws IOException {
    BatchRequest batch = new BatchRequest(service);
    for (int i = 0; i < count; i++) {
      batch.add(number());
    }
    batch.send().getResponses().forEach(Web3j::check);
  }

  @Override
  public void pipelined(int count) {
    List<CompletableFuture<EthBlockNumber>> all = new ArrayList<>(count);
    for (int i = 0; i < count; i++) {
      all.add(number().sendAsync());
    }
    all.forEach(one -> check(one.join()));
  }

  @Override
  public void close() throws IOException {
    service.close();
  }
}
