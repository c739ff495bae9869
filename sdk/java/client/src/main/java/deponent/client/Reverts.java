package deponent.client;

import deponent.eth.Abi;
import deponent.eth.Bytes;
import deponent.eth.JsonReader;
import deponent.eth.MalformedException;
import deponent.eth.RevertException;
import deponent.eth.RpcException;
import deponent.rpc.Request;
import java.util.Locale;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * Finds reverts among errors of JSON-RPC. Servers tell of them in many ways:
 *
 * <ul>
 *   <li>geth, reth, Erigon, Besu, Nethermind, anvil and Deponent: code 3, {@code data} is hex;
 *   <li>older ones of them: code -32000, {@code data} is hex or absent;
 *   <li>older Nethermind and OpenEthereum: code -32015, {@code data} is {@code "Reverted 0x.."};
 *   <li>hardhat and ganache: {@code data} is an object with hex in {@code data} or {@code result};
 *   <li>providers in front of nodes: an object with the node's error in {@code originalError}.
 * </ul>
 */
final class Reverts {
  /** The errors that each contract may have. */
  static final Abi NONE = Abi.of();

  /** Methods that run contracts, here or at servers that mine at once. */
  private static final Set<String> METHODS =
      Set.of(
          "eth_call",
          "eth_estimateGas",
          "eth_createAccessList",
          "eth_sendTransaction",
          "eth_sendRawTransaction");

  private static final int REVERTED = 3;

  /** Nethermind's and OpenEthereum's code of any fault while running. */
  private static final int VM_ERROR = -32015;

  /** Objects in each other in which the data is looked for. */
  private static final int DEEPEST = 4;

  private static final Pattern WORDS = Pattern.compile("\\brevert(ed)?\\b");

  private Reverts() {}

  /** The revert that the error tells of, decoded by {@code errors}; else the error itself. */
  static RpcException decoded(RpcException error, Abi errors) {
    if (error instanceof RevertException revert) {
      return revert.with(errors);
    }
    Bytes data = dataOf(error.data());
    String message = String.valueOf(error.getMessage());
    if (!isRevert(error, message, data)) {
      return error;
    }
    return RevertException.of(error.code(), message, data == null ? Bytes.EMPTY : data, errors);
  }

  /** Whether a request runs contracts, so that its errors may be reverts. */
  static boolean of(Request<?> request) {
    return METHODS.contains(request.method());
  }

  /** The same future, which fails with reverts; who cancels it cancels the request. */
  static <T> CompletableFuture<T> decoded(CompletableFuture<T> answer) {
    CompletableFuture<T> decoded = new CompletableFuture<>();
    answer.whenComplete(
        (value, failure) -> {
          if (failure == null) {
            decoded.complete(value);
          } else {
            decoded.completeExceptionally(
                failure instanceof RpcException error ? decoded(error, NONE) : failure);
          }
        });
    decoded.whenComplete(
        (value, failure) -> {
          if (decoded.isCancelled()) {
            answer.cancel(false);
          }
        });
    return decoded;
  }

  private static boolean isRevert(RpcException error, String message, @Nullable Bytes data) {
    if (error.code() == REVERTED) {
      return true;
    }
    if (WORDS.matcher(message.toLowerCase(Locale.ROOT)).find()) {
      return true;
    }
    String text = String.valueOf(error.data()).toLowerCase(Locale.ROOT);
    return error.code() == VM_ERROR && (data != null || WORDS.matcher(text).find());
  }

  /** The bytes in an error's data, or null where there are none. */
  private static @Nullable Bytes dataOf(@Nullable String json) {
    if (json == null) {
      return null;
    }
    try {
      return dataIn(new JsonReader(json), 0);
    } catch (MalformedException | IllegalArgumentException other) {
      return null;
    }
  }

  private static @Nullable Bytes dataIn(JsonReader json, int depth) {
    switch (json.peek()) {
      case STRING -> {
        // Words may stand before the digits.
        String text = json.nextString();
        int digits = text.lastIndexOf("0x");
        return digits < 0 ? null : Bytes.of(text.substring(digits).strip());
      }
      case OBJECT -> {
        Bytes found = null;
        json.beginObject();
        while (json.hasNext()) {
          String name = json.nextName();
          boolean holds =
              name.equals("data") || name.equals("result") || name.equals("originalError");
          if (holds && found == null && depth < DEEPEST) {
            found = dataIn(json, depth + 1);
          } else {
            json.skipValue();
          }
        }
        json.endObject();
        return found;
      }
      default -> {
        json.skipValue();
        return null;
      }
    }
  }
}
