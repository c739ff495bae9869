package deponent.rpc.internal;

import deponent.eth.Abi;
import deponent.eth.Bytes;
import deponent.eth.JsonReader;
import deponent.eth.JsonReader.Kind;
import deponent.eth.JsonReader.Names;
import deponent.eth.JsonWriter;
import deponent.eth.MalformedException;
import deponent.eth.ProtocolException;
import deponent.eth.RevertException;
import deponent.eth.RpcException;
import deponent.rpc.Decoder;
import deponent.rpc.Request;
import java.util.Locale;
import org.jspecify.annotations.Nullable;

/** Messages of JSON-RPC 2.0, written and read. */
public final class Messages {
  private static final Names MEMBERS =
      Names.of("jsonrpc", "id", "result", "error", "method", "params");

  private static final int ID = 1;
  private static final int RESULT = 2;
  private static final int ERROR = 3;
  private static final int METHOD = 4;
  private static final int PARAMS = 5;

  /** An answer has no request of ours in it. */
  private static final long NONE = -1;

  private static final Abi NO_ABI = Abi.of();

  private Messages() {}

  /** Writes a request. */
  public static void write(long id, Request<?> request, JsonWriter json) {
    json.beginObject().name("jsonrpc").value("2.0").name("id").value(id);
    json.name("method").value(request.method()).name("params").beginArray();
    request.params().write(json);
    json.endArray().endObject();
  }

  /**
   * Reads a message: an answer, a notification, or an array of them.
   *
   * @throws ProtocolException if it is something else. What was read before it has been told; the
   *     rest of the message cannot be read
   */
  public static void read(JsonReader json, Answers answers) {
    try {
      if (json.peek() == Kind.ARRAY) {
        json.beginArray();
        while (json.hasNext()) {
          one(json, answers);
        }
        json.endArray();
      } else {
        one(json, answers);
      }
    } catch (MalformedException malformed) {
      throw new ProtocolException("no message of JSON-RPC: " + malformed.getMessage(), malformed);
    }
  }

  /** Reads an object, whose members come in any order. */
  private static void one(JsonReader json, Answers answers) {
    long id = NONE;
    boolean answered = false;
    String result = null;
    RpcException error = null;
    boolean notification = false;
    String params = null;
    json.beginObject();
    while (json.hasNext()) {
      switch (json.nextName(MEMBERS)) {
        case ID -> id = id(json);
        case RESULT -> {
          // Some servers have null beside an error.
          if (id == NONE || error != null) {
            result = json.nextJson();
          } else {
            result(id, json, answers);
            answered = true;
          }
        }
        case ERROR -> error = json.nextNull() ? null : error(json);
        case METHOD -> {
          json.skipValue();
          notification = true;
        }
        case PARAMS -> {
          if (notification) {
            notified(json, answers);
            params = "";
          } else {
            params = json.nextJson();
          }
        }
        default -> json.skipValue();
      }
    }
    json.endObject();
    if (notification) {
      if (params != null && !params.isEmpty()) {
        notified(new JsonReader(params), answers);
      }
    } else if (!answered) {
      finish(id, result, error, answers);
    }
  }

  private static void finish(
      long id, @Nullable String result, @Nullable RpcException error, Answers answers) {
    if (error != null && id == NONE) {
      answers.refused(error);
    } else if (error != null) {
      answers.failed(id, error);
    } else if (result == null || id == NONE) {
      throw new MalformedException("an answer without an id, or with neither result nor error");
    } else {
      result(id, new JsonReader(result), answers);
    }
  }

  /** Ours are numbers; some servers give them back as texts. */
  private static long id(JsonReader json) {
    if (json.nextNull()) {
      return NONE;
    }
    if (json.peek() != Kind.STRING) {
      return json.nextLong();
    }
    String text = json.nextString();
    try {
      return Long.parseLong(text);
    } catch (NumberFormatException foreign) {
      return NONE;
    }
  }

  private static void result(long id, JsonReader json, Answers answers) {
    Decoder<?> decoder = answers.decoder(id);
    if (decoder == null) {
      json.skipValue();
      return;
    }
    Object result;
    try {
      result = decoder.read(json);
    } catch (MalformedException malformed) {
      answers.failed(id, new ProtocolException("the result: " + malformed.getMessage(), malformed));
      throw malformed;
    }
    answers.answered(id, result);
  }

  private static void notified(JsonReader json, Answers answers) {
    String subscription = null;
    String early = null;
    json.beginObject();
    while (json.hasNext()) {
      switch (json.nextName()) {
        case "subscription" -> subscription = json.nextString();
        case "result" -> {
          if (subscription == null) {
            early = json.nextJson();
          } else {
            answers.notified(subscription, json);
          }
        }
        default -> json.skipValue();
      }
    }
    json.endObject();
    if (subscription == null) {
      throw new MalformedException("a notification of no subscription");
    }
    if (early != null) {
      answers.notified(subscription, new JsonReader(early));
    }
  }

  private static RpcException error(JsonReader json) {
    int code = 0;
    String message = "";
    String data = null;
    String text = null;
    json.beginObject();
    while (json.hasNext()) {
      switch (json.nextName()) {
        case "code" -> code = Math.toIntExact(bounded(json.nextLong()));
        case "message" -> message = json.nextNull() ? "" : json.nextString();
        case "data" -> {
          if (json.peek() == Kind.STRING) {
            text = json.nextString();
            data = text;
          } else if (!json.nextNull()) {
            data = json.nextJson();
          }
        }
        default -> json.skipValue();
      }
    }
    json.endObject();
    Bytes reverted = revertData(code, message, text);
    return reverted == null
        ? new RpcException(code, message, data)
        : RevertException.of(code, message, reverted, NO_ABI);
  }

  private static long bounded(long code) {
    return Math.clamp(code, Integer.MIN_VALUE, Integer.MAX_VALUE);
  }

  /** The bytes of a revert: code 3 as geth has it, or the word in the message of others. */
  private static @Nullable Bytes revertData(int code, String message, @Nullable String data) {
    boolean revert = code == 3 || message.toLowerCase(Locale.ROOT).contains("revert");
    if (!revert) {
      return null;
    }
    try {
      return data == null || !data.startsWith("0x") ? Bytes.EMPTY : Bytes.of(data);
    } catch (IllegalArgumentException no) {
      return null;
    }
  }
}
