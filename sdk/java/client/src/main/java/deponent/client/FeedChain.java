package deponent.client;

import deponent.client.FeedSource.Head;
import deponent.client.Update.Added;
import deponent.client.Update.Gap;
import deponent.client.Update.Removed;
import deponent.eth.Hash;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * What a feed has told, by block, as far back as it is kept, and what it has to tell.
 *
 * @param <T> the type of values
 */
final class FeedChain<T> {
  /** Blocks that are kept at most; those before them count as settled. */
  static final int BLOCKS = 1_024;

  /** Values that are kept at most: some 50 MB of logs. */
  static final int VALUES = 100_000;

  /** A block and what was told of it; null where that is not kept any more. */
  private static final class Block<T> {
    final long number;
    final Hash hash;
    @Nullable List<T> told;

    Block(long number, Hash hash, List<T> told) {
      this.number = number;
      this.hash = hash;
      this.told = told;
    }
  }

  private final FeedSource<T> source;
  private final int blocks;
  private final int values;

  /** The first block whose values are wanted. */
  private final long start;

  /** In ascending order; blocks without values may be missing between. */
  private final ArrayDeque<Block<T>> kept = new ArrayDeque<>();

  private final ArrayDeque<Update<T>> ready = new ArrayDeque<>();
  private int keptValues;

  /** The last block of which something was told and that is kept no more. */
  private long settled = -1;

  /** The first block that was not looked at. */
  private long next;

  /** The last block that left and of which it is not known what was told, or -1. */
  private long forgotten = -1;

  /** Blocks up to this one are not looked at again, unless one that is kept left the chain. */
  private long floor;

  /** Whether a block that was kept left since the last time that the feed went on. */
  private boolean removed;

  /** The head of the chain that is gone on in, or null. */
  private @Nullable Hash joined;

  FeedChain(FeedSource<T> source, long start, int blocks, int values) {
    this.source = source;
    this.start = start;
    this.next = start;
    this.floor = start - 1;
    this.blocks = blocks;
    this.values = values;
  }

  /** The next update that is ready, or null. */
  @Nullable Update<T> poll() {
    return ready.poll();
  }

  /** The first block that was not looked at. */
  long next() {
    return next;
  }

  /** Whether a block is the last one that was looked at, or one before. */
  boolean knows(Head<T> block) {
    for (Block<T> one : kept) {
      if (one.number == block.number() && one.hash.equals(block.hash())) {
        return true;
      }
    }
    return false;
  }

  /** Whether a block follows the last one that was looked at. */
  boolean isFollowedBy(Head<T> block) {
    Block<T> last = kept.peekLast();
    return last != null
        && last.number == next - 1
        && next == block.number()
        && last.hash.equals(block.parent());
  }

  /** The last block that is kept, or null. */
  @Nullable Head<T> last() {
    Block<T> last = kept.peekLast();
    return last == null ? null : new Head<>(last.number, last.hash, Hash.ZERO, null);
  }

  /** Notes that the last block that is kept left the chain. */
  void remove() {
    Block<T> last = kept.removeLast();
    removed = true;
    joined = null;
    List<T> told = last.told;
    if (told == null) {
      forgotten = Math.max(forgotten, last.number);
      return;
    }
    keptValues -= told.size();
    for (int i = told.size() - 1; i >= 0; i--) {
      ready.add(new Removed<>(told.get(i)));
    }
  }

  /** Whether it goes on in the chain of {@code head} already. */
  boolean isJoined(Head<T> head) {
    return head.hash().equals(joined);
  }

  /**
   * Goes on behind the last block that is kept, in the chain of {@code head}; false if that has to
   * be longer first. Blocks without values are looked at again, since nothing is kept of them.
   */
  boolean join(Head<T> head) {
    Block<T> last = kept.peekLast();
    if (removed) {
      if (last == null && settled >= 0) {
        forgotten = Math.max(forgotten, settled);
        settled = -1;
      }
      floor = Math.max(start - 1, Math.min(floor, last == null ? -1 : last.number));
      removed = false;
    }
    if (forgotten > head.number()) {
      return false;
    }
    next = Math.max(floor, last == null ? -1 : last.number) + 1;
    if (forgotten >= 0) {
      skip(forgotten, "blocks left the chain of which the values are kept no more");
      forgotten = -1;
    }
    joined = head.hash();
    return true;
  }

  /** Does not look again at what it looked at, whatever becomes of it. */
  void settle() {
    floor = next - 1;
  }

  /** Leaves out the blocks up to {@code to}. */
  void skip(long to, String why) {
    if (next <= to) {
      ready.add(new Gap<>(next, to, why));
      next = to + 1;
      settle();
    }
  }

  /** Adds the values of the blocks up to {@code to}, in their order. */
  void add(long to, List<T> all) {
    for (int i = 0; i < all.size(); ) {
      T first = all.get(i);
      int end = i + 1;
      while (end < all.size() && source.hashOf(all.get(end)).equals(source.hashOf(first))) {
        end++;
      }
      keep(source.numberOf(first), source.hashOf(first), new ArrayList<>(all.subList(i, end)));
      i = end;
    }
    next = to + 1;
  }

  /** Adds a block with its values. */
  void add(Head<T> block, List<T> all) {
    keep(block.number(), block.hash(), List.copyOf(all));
    next = block.number() + 1;
  }

  /** Notes the hash of the last block that was looked at. */
  void end(Head<T> block) {
    Block<T> last = kept.peekLast();
    if (last == null || last.number < block.number()) {
      keep(block.number(), block.hash(), List.of());
    }
  }

  private void keep(long number, Hash hash, List<T> told) {
    told.forEach(value -> ready.add(new Added<>(value)));
    kept.addLast(new Block<>(number, hash, told));
    keptValues += told.size();
    if (kept.size() > blocks) {
      Block<T> first = kept.removeFirst();
      settled = first.number;
      keptValues -= first.told == null ? 0 : first.told.size();
    }
    for (Block<T> one : kept) {
      if (keptValues <= values) {
        break;
      }
      if (one.told != null && !one.told.isEmpty()) {
        keptValues -= one.told.size();
        one.told = null;
      }
    }
  }
}
