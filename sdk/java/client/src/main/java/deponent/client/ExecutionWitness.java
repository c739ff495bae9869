package deponent.client;

import deponent.eth.Bytes;
import deponent.eth.JsonReader;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The state with which a block can be run by someone who has none, as JSON has it.
 *
 * @param state trie nodes
 * @param codes codes of contracts
 * @param keys addresses and slots, from servers that have them
 * @param headers headers of ancestors in RLP, the oldest first
 */
public record ExecutionWitness(
    List<Bytes> state, List<Bytes> codes, List<Bytes> keys, List<Bytes> headers) {
  private static final Members MEMBERS = Members.of("state", "codes", "keys", "headers");

  /** With copies. */
  public ExecutionWitness {
    state = List.copyOf(state);
    codes = List.copyOf(codes);
    keys = List.copyOf(keys);
    headers = List.copyOf(headers);
  }

  /** Headers in RLP, or geth's: objects, the newest first. */
  private static List<Bytes> headers(JsonReader json) {
    boolean[] objects = new boolean[1];
    List<Bytes> headers =
        Members.list(
            json,
            one -> {
              if (one.peek() == JsonReader.Kind.STRING) {
                return one.nextBytes();
              }
              objects[0] = true;
              return BlockHeader.read(one).encode();
            });
    return objects[0] ? headers.reversed() : headers;
  }

  static ExecutionWitness read(JsonReader json) {
    Parts parts = new Parts();
    MEMBERS.read(json, parts);
    return parts.made();
  }

  private static final class Parts implements Members.Taker {
    private @Nullable List<Bytes> state;
    private @Nullable List<Bytes> codes;
    private List<Bytes> keys = List.of();
    private @Nullable List<Bytes> headers;

    @Override
    public void take(String name, JsonReader json) {
      switch (name) {
        case "state" -> state = Members.list(json, JsonReader::nextBytes);
        case "codes" -> codes = Members.list(json, JsonReader::nextBytes);
        case "keys" -> keys = Members.list(json, JsonReader::nextBytes);
        case "headers" -> headers = headers(json);
        default -> throw new AssertionError(name);
      }
    }

    ExecutionWitness made() {
      return new ExecutionWitness(
          Members.the("state", state),
          Members.the("codes", codes),
          keys,
          Members.the("headers", headers));
    }
  }
}
