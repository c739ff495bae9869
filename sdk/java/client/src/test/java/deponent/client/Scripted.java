package deponent.client;

import deponent.eth.JsonReader;
import deponent.eth.JsonWriter;
import deponent.rpc.Batch;
import deponent.rpc.Decoder;
import deponent.rpc.Provider;
import deponent.rpc.Request;
import deponent.rpc.Subscription;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.CompletableFuture;

/** A server in this process that does what a script says. */
final class Scripted implements Provider {
  /** What is answered. */
  interface Script {
    /** The JSON of the result; it throws where there is none. */
    String answer(String method, String params);
  }

  private final Script script;

  private Scripted(Script script) {
    this.script = script;
  }

  /** A client of it. */
  static Client client(Script script) {
    return Client.of(new Scripted(script));
  }

  @Override
  public <T> T request(Request<T> request) {
    JsonWriter json = new JsonWriter().beginArray();
    request.params().write(json);
    String params = new String(json.endArray().toBytes(), StandardCharsets.UTF_8);
    return request.result().read(new JsonReader(script.answer(request.method(), params)));
  }

  @Override
  public <T> CompletableFuture<T> requestAsync(Request<T> request) {
    CompletableFuture<T> future = new CompletableFuture<>();
    try {
      future.complete(request(request));
    } catch (RuntimeException failure) {
      future.completeExceptionally(failure);
    }
    return future;
  }

  @Override
  public Batch batch() {
    throw new UnsupportedOperationException("no batches");
  }

  @Override
  public <T> Subscription<T> subscribe(Request<String> open, Decoder<T> read) {
    throw new UnsupportedOperationException("no subscriptions");
  }

  @Override
  public void close() {}
}
