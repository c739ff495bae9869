package deponent.rpc;

import deponent.eth.EthException;
import deponent.eth.JsonReader;
import deponent.eth.JsonReader.Kind;
import deponent.eth.MalformedException;
import deponent.eth.ProtocolException;
import deponent.eth.RpcException;
import java.io.UncheckedIOException;
import org.jspecify.annotations.Nullable;

/** Reads answers and notifications of JSON-RPC 2.0, and decodes results where they are. */
abstract class Answers {
  private static final JsonReader.Names MEMBERS =
      JsonReader.Names.of("jsonrpc", "id", "result", "error", "method", "params");

  private static final JsonReader.Names ERROR = JsonReader.Names.of("code", "message", "data");

  private static final JsonReader.Names PARAMS = JsonReader.Names.of("subscription", "result");

  private final JsonReader json;

  Answers(JsonReader json) {
    this.json = json;
  }

  /** The call of an id, or null where nobody waits for it. */
  abstract @Nullable Call<?> call(long id);

  /** Takes the outcome of a call. */
  abstract <T> void ended(Call<T> call, @Nullable T value, @Nullable Throwable failure, long bytes);

  /** The reader of a subscription's values, or null where they are kept as JSON. */
  abstract @Nullable Subscription<?> subscription(String id);

  /** Takes a value of a subscription that is not known. */
  abstract void unknown(String subscription, String value);

  /** Takes an error that names no call. */
  abstract void unnamed(RpcException error);

  /** Reads one text of JSON: an answer, a notification, or an array of them. */
  final void document() {
    switch (json.peek()) {
      case ARRAY -> {
        json.beginArray();
        while (json.hasNext()) {
          one();
        }
        json.endArray();
      }
      case OBJECT -> one();
      default ->
          throw new ProtocolException("no answer of JSON-RPC: " + Head.quoted(json.nextJson()));
    }
  }

  private final class Outcome<T> {
    final Call<T> call;
    @Nullable T value;
    @Nullable Throwable failure;
    boolean there;

    Outcome(Call<T> call) {
      this.call = call;
    }

    void read(JsonReader from) {
      there = true;
      int depth = from.depth();
      try {
        value = call.request.result().read(from);
      } catch (UncheckedIOException lost) {
        throw lost;
      } catch (MalformedException other) {
        failure = new ProtocolException(call.request.method() + ": " + other.getMessage(), other);
      } catch (RuntimeException | Error other) {
        failure = other;
      }
      from.leaveTo(depth);
    }

    void end(@Nullable RpcException error, long bytes) {
      if (error != null) {
        ended(call, null, error, bytes);
      } else if (there) {
        ended(call, value, failure, bytes);
      } else {
        String what = call.request.method() + ": an answer without result and error";
        ended(call, null, new ProtocolException(what), bytes);
      }
    }
  }

  private void one() {
    long begin = json.position();
    json.beginObject();
    Outcome<?> outcome = null;
    boolean named = false;
    boolean notice = false;
    String early = null;
    RpcException error = null;
    while (json.hasNext()) {
      switch (json.nextName(MEMBERS)) {
        case 1 -> {
          if (json.peek() == Kind.NUMBER) {
            named = true;
            Call<?> call = call(json.nextLong());
            outcome = call == null ? null : new Outcome<>(call);
          } else {
            json.skipValue();
          }
        }
        case 2 -> {
          if (outcome != null) {
            outcome.read(json);
          } else if (named || notice) {
            json.skipValue();
          } else {
            early = json.nextJson();
          }
        }
        case 3 -> error = error();
        case 4 -> {
          json.skipValue();
          notice = true;
        }
        case 5 -> notification();
        default -> json.skipValue();
      }
    }
    json.endObject();
    if (outcome != null) {
      if (early != null && !outcome.there) {
        outcome.read(new JsonReader(early));
      }
      outcome.end(error, json.position() - begin);
    } else if (error != null && !named) {
      unnamed(error);
    }
  }

  private @Nullable RpcException error() {
    if (json.nextNull()) {
      return null;
    }
    if (json.peek() != Kind.OBJECT) {
      return new RpcException(0, json.nextJson(), null);
    }
    int code = 0;
    String message = "";
    String data = null;
    json.beginObject();
    while (json.hasNext()) {
      switch (json.nextName(ERROR)) {
        case 0 -> {
          String number = json.nextJson();
          code = number.matches("-?[0-9]{1,9}|-?1[0-9]{9}") ? Integer.parseInt(number) : 0;
        }
        case 1 -> message = json.peek() == Kind.STRING ? json.nextString() : json.nextJson();
        case 2 -> data = json.nextNull() ? null : json.nextJson();
        default -> json.skipValue();
      }
    }
    json.endObject();
    return new RpcException(code, message, data);
  }

  private void notification() {
    if (json.peek() != Kind.OBJECT) {
      json.skipValue();
      return;
    }
    json.beginObject();
    String id = null;
    String value = null;
    while (json.hasNext()) {
      switch (json.nextName(PARAMS)) {
        case 0 -> id = json.peek() == Kind.STRING ? json.nextString() : json.nextJson();
        case 1 -> {
          Subscription<?> known = id == null ? null : subscription(id);
          if (known == null) {
            value = json.nextJson();
          } else {
            int depth = json.depth();
            known.read(json);
            json.leaveTo(depth);
          }
        }
        default -> json.skipValue();
      }
    }
    json.endObject();
    if (id != null && value != null) {
      Subscription<?> known = subscription(id);
      if (known == null) {
        unknown(id, value);
      } else {
        known.read(new JsonReader(value));
      }
    }
  }

  /** The exception for what is no JSON, with its place. */
  static EthException noJson(MalformedException fault) {
    return new ProtocolException("no answer of JSON-RPC: " + fault.getMessage(), fault);
  }
}
