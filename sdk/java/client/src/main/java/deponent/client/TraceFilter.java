package deponent.client;

import deponent.eth.Address;
import deponent.eth.JsonWriter;
import java.util.List;

/**
 * Says which traces are wanted ({@code trace_filter}). Each method gives a new one.
 *
 * <pre>{@code
 * TraceFilter.blocks(23_000_000, 23_000_099).to(token).first(1_000);
 * }</pre>
 */
public final class TraceFilter {
  private final BlockId fromBlock;
  private final BlockId toBlock;
  private final List<Address> from;
  private final List<Address> to;
  private final boolean either;
  private final long after;
  private final long count;

  private TraceFilter(
      BlockId fromBlock,
      BlockId toBlock,
      List<Address> from,
      List<Address> to,
      boolean either,
      long after,
      long count) {
    this.fromBlock = fromBlock;
    this.toBlock = toBlock;
    this.from = from;
    this.to = to;
    this.either = either;
    this.after = after;
    this.count = count;
  }

  /** Of these blocks, both included. */
  public static TraceFilter blocks(long first, long last) {
    return blocks(BlockId.of(first), BlockId.of(last));
  }

  /**
   * Of these blocks, both included.
   *
   * @throws IllegalArgumentException if one is named by its hash
   */
  public static TraceFilter blocks(BlockId first, BlockId last) {
    if (first instanceof BlockId.OfHash || last instanceof BlockId.OfHash) {
      throw new IllegalArgumentException("a range has no hashes");
    }
    return new TraceFilter(first, last, List.of(), List.of(), false, 0, -1);
  }

  /** From one of these accounts. */
  public TraceFilter from(Address... accounts) {
    return new TraceFilter(fromBlock, toBlock, List.of(accounts), to, either, after, count);
  }

  /** To one of these accounts. */
  public TraceFilter to(Address... accounts) {
    return new TraceFilter(fromBlock, toBlock, from, List.of(accounts), either, after, count);
  }

  /** From one of its accounts or to one of them; both have to fit otherwise. */
  public TraceFilter either() {
    return new TraceFilter(fromBlock, toBlock, from, to, true, after, count);
  }

  /**
   * Without the first ones.
   *
   * @throws IllegalArgumentException if their number is negative
   */
  public TraceFilter skip(long traces) {
    if (traces < 0) {
      throw new IllegalArgumentException("a number of traces is not negative: " + traces);
    }
    return new TraceFilter(fromBlock, toBlock, from, to, either, traces, count);
  }

  /**
   * So many at most.
   *
   * @throws IllegalArgumentException if their number is negative
   */
  public TraceFilter first(long traces) {
    if (traces < 0) {
      throw new IllegalArgumentException("a number of traces is not negative: " + traces);
    }
    return new TraceFilter(fromBlock, toBlock, from, to, either, after, traces);
  }

  void write(JsonWriter json) {
    json.beginObject();
    fromBlock.write(json.name("fromBlock"));
    toBlock.write(json.name("toBlock"));
    accounts("fromAddress", from, json);
    accounts("toAddress", to, json);
    if (either) {
      json.name("mode").value("union");
    }
    if (after > 0) {
      json.name("after").value(after);
    }
    if (count >= 0) {
      json.name("count").value(count);
    }
    json.endObject();
  }

  private static void accounts(String name, List<Address> accounts, JsonWriter json) {
    if (!accounts.isEmpty()) {
      json.name(name).beginArray();
      accounts.forEach(json::value);
      json.endArray();
    }
  }
}
