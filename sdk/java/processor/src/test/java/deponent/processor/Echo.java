package deponent.processor;

import deponent.eth.Bytes;
import deponent.eth.JsonReader;
import deponent.eth.JsonWriter;
import deponent.rpc.Batch;
import deponent.rpc.Decoder;
import deponent.rpc.Provider;
import deponent.rpc.Request;
import deponent.rpc.Subscription;
import java.util.concurrent.CompletableFuture;

/** A server for which a call returns what stands behind its selector, or what it is told. */
final class Echo implements Provider {
  /** The call that came last. */
  String call = "";

  /** The data of the call that came last. */
  Bytes data = Bytes.EMPTY;

  /** What the next call returns; its arguments if null. */
  Bytes answer;

  @Override
  public <T> T request(Request<T> request) {
    JsonWriter json = new JsonWriter();
    json.beginArray();
    request.params().write(json);
    json.endArray();
    call = new String(json.array(), 0, json.size(), java.nio.charset.StandardCharsets.UTF_8);
    JsonReader reader = new JsonReader(call);
    reader.beginArray();
    reader.beginObject();
    while (reader.hasNext()) {
      String name = reader.nextName();
      if (name.equals("input") || name.equals("data")) {
        data = reader.nextBytes();
      } else {
        reader.skipValue();
      }
    }
    Bytes result = answer != null ? answer : data.slice(4, data.size());
    return request.result().read(new JsonReader("\"" + result + "\""));
  }

  @Override
  public <T> CompletableFuture<T> requestAsync(Request<T> request) {
    return CompletableFuture.supplyAsync(() -> request(request));
  }

  @Override
  public Batch batch() {
    throw new UnsupportedOperationException();
  }

  @Override
  public <T> Subscription<T> subscribe(Request<String> open, Decoder<T> read) {
    throw new UnsupportedOperationException();
  }

  @Override
  public void close() {}
}
