package deponent.client;

import deponent.eth.AbiEvent;
import deponent.eth.Address;
import deponent.eth.Hash;
import deponent.eth.JsonWriter;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * A filter of logs by contracts, topics and blocks. It does not change: each setter returns a copy.
 *
 * <pre>{@code
 * LogFilter.of(TRANSFER, null, me).from(token).fromBlock(23_000_000);   // transfers to me
 * LogFilter.ALL.topic(0, first.topic(), second.topic());                // of either event
 * }</pre>
 */
public final class LogFilter {
  /** Topics of a log at most. */
  private static final int TOPICS = 4;

  /** The filter that matches all logs of the latest block. */
  public static final LogFilter ALL = new LogFilter(List.of(), List.of(), null, null, null);

  private final List<Address> addresses;

  /** The alternatives of each place; none where any topic will do. */
  private final List<List<Hash>> topics;

  private final @Nullable BlockId from;
  private final @Nullable BlockId to;
  private final @Nullable Hash at;

  private LogFilter(
      List<Address> addresses,
      List<List<Hash>> topics,
      @Nullable BlockId from,
      @Nullable BlockId to,
      @Nullable Hash at) {
    this.addresses = addresses;
    this.topics = topics;
    this.from = from;
    this.to = to;
    this.at = at;
  }

  /**
   * A filter of the logs of {@code event} whose first indexed fields have these values. {@code
   * null} matches any value.
   *
   * @throws IllegalArgumentException if a value does not fit, or there are more values than fields
   */
  public static LogFilter of(AbiEvent event, @Nullable Object... indexed) {
    LogFilter filter = ALL;
    List<@Nullable Hash> topics = event.topics(indexed);
    for (int i = 0; i < topics.size(); i++) {
      Hash topic = topics.get(i);
      if (topic != null) {
        filter = filter.topic(i, topic);
      }
    }
    return filter;
  }

  /** Sets the contracts. If there is none, logs of all contracts match. */
  public LogFilter from(Address... contracts) {
    return new LogFilter(List.of(contracts), topics, from, to, at);
  }

  /**
   * Sets the topics that match at a place. If there is none, any topic matches.
   *
   * @param index the place, from 0 to 3
   * @throws IllegalArgumentException if the place is another
   */
  public LogFilter topic(int index, Hash... alternatives) {
    if (index < 0 || index >= TOPICS) {
      throw new IllegalArgumentException("a log has topics 0 to 3, not " + index);
    }
    List<List<Hash>> changed = new ArrayList<>(topics);
    while (changed.size() <= index) {
      changed.add(List.of());
    }
    changed.set(index, List.of(alternatives));
    while (!changed.isEmpty() && changed.getLast().isEmpty()) {
      changed.removeLast();
    }
    return new LogFilter(addresses, Collections.unmodifiableList(changed), from, to, at);
  }

  /** Sets the first block. */
  public LogFilter fromBlock(long number) {
    return fromBlock(BlockId.of(number));
  }

  /**
   * Sets the first block.
   *
   * @throws IllegalArgumentException if it is named by its hash
   */
  public LogFilter fromBlock(BlockId block) {
    return new LogFilter(addresses, topics, noHash(block), to, null);
  }

  /** Sets the last block. */
  public LogFilter toBlock(long number) {
    return toBlock(BlockId.of(number));
  }

  /**
   * Sets the last block.
   *
   * @throws IllegalArgumentException if it is named by its hash
   */
  public LogFilter toBlock(BlockId block) {
    return new LogFilter(addresses, topics, from, noHash(block), null);
  }

  /** Sets the one block whose logs match (EIP-234). It may have left the chain. */
  public LogFilter atBlock(Hash block) {
    return new LogFilter(addresses, topics, null, null, block);
  }

  private static BlockId noHash(BlockId block) {
    if (block instanceof BlockId.OfHash) {
      throw new IllegalArgumentException("a range has no hashes: atBlock takes one");
    }
    return block;
  }

  /** The contracts. The list is empty where all match. */
  public List<Address> addresses() {
    return addresses;
  }

  /** The alternatives of each place; none where any topic will do. */
  public List<List<Hash>> topics() {
    return topics;
  }

  /** The first block of the range. */
  public Optional<BlockId> fromBlock() {
    return Optional.ofNullable(from);
  }

  /** The last block of the range. */
  public Optional<BlockId> toBlock() {
    return Optional.ofNullable(to);
  }

  /** The one block. */
  public Optional<Hash> atBlock() {
    return Optional.ofNullable(at);
  }

  /** Whether the contract and the topics of a log match. Blocks are not compared. */
  public boolean matches(Log log) {
    if (!addresses.isEmpty() && !addresses.contains(log.address())
        || topics.size() > log.topics().size()) {
      return false;
    }
    for (int i = 0; i < topics.size(); i++) {
      if (!topics.get(i).isEmpty() && !topics.get(i).contains(log.topics().get(i))) {
        return false;
      }
    }
    return true;
  }

  /** Writes the filter as a parameter. */
  public void write(JsonWriter json) {
    write(json, true);
  }

  /** Writes it, with its blocks or without: a subscription has none. */
  void write(JsonWriter json, boolean blocks) {
    json.beginObject();
    if (blocks) {
      fromBlock().ifPresent(block -> block.write(json.name("fromBlock")));
      toBlock().ifPresent(block -> block.write(json.name("toBlock")));
      atBlock().ifPresent(block -> json.name("blockHash").value(block));
    }
    if (!addresses.isEmpty()) {
      json.name("address");
      json.beginArray();
      addresses.forEach(json::value);
      json.endArray();
    }
    if (!topics.isEmpty()) {
      json.name("topics").beginArray();
      topics.forEach(alternatives -> place(alternatives, json));
      json.endArray();
    }
    json.endObject();
  }

  private static void place(List<Hash> alternatives, JsonWriter json) {
    switch (alternatives.size()) {
      case 0 -> json.nullValue();
      case 1 -> json.value(alternatives.getFirst());
      default -> {
        json.beginArray();
        alternatives.forEach(json::value);
        json.endArray();
      }
    }
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof LogFilter filter && toString().equals(filter.toString());
  }

  @Override
  public int hashCode() {
    return toString().hashCode();
  }

  /** Its JSON. */
  @Override
  public String toString() {
    JsonWriter json = new JsonWriter();
    write(json);
    return new String(json.array(), 0, json.size(), java.nio.charset.StandardCharsets.US_ASCII);
  }
}
