package deponent.client;

import deponent.eth.Hash;
import deponent.eth.JsonReader;
import deponent.eth.MalformedException;
import deponent.rpc.Request;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Where a {@link Feed} has its values from.
 *
 * @param <T> the type of values
 */
interface FeedSource<T> {
  /**
   * A block.
   *
   * @param value the block's own value, where that is what the feed has; else null
   */
  record Head<T>(long number, Hash hash, Hash parent, @Nullable T value) {}

  /** Reads a block as {@code eth_getBlockByNumber} and {@code newHeads} have it. */
  Head<T> read(JsonReader json);

  /** The values of one block. */
  List<T> at(Head<T> block, Asker asker);

  /** The values of the blocks of these numbers that are in the chain, in their order. */
  List<T> range(long from, long to, Asker asker);

  /** The blocks of a range at most. */
  int longest();

  /** The number of a value's block. */
  long numberOf(T value);

  /** The hash of a value's block. */
  Hash hashOf(T value);

  /** Sends requests, and ends them when the feed is closed. */
  interface Asker {
    /** As {@link deponent.rpc.Provider#request}. */
    <R> R ask(Request<R> request);

    /** Sends all at once. */
    <R> List<R> askAll(List<Request<R>> requests);
  }

  /** Reads the number and the hashes of a block. */
  static <T> Head<T> skim(JsonReader json) {
    long number = -1;
    Hash hash = null;
    Hash parent = null;
    json.beginObject();
    while (json.hasNext()) {
      switch (json.nextName()) {
        case "number" -> number = json.nextQuantity();
        case "hash" -> hash = json.nextHash();
        case "parentHash" -> parent = json.nextHash();
        default -> json.skipValue();
      }
    }
    json.endObject();
    if (number < 0 || hash == null || parent == null) {
      throw new MalformedException("a block without number, hash or parentHash");
    }
    return new Head<>(number, hash, parent, null);
  }
}
