package deponent.engine;

import deponent.eth.Hash;
import deponent.eth.Keccak256;
import java.util.HashMap;
import java.util.Map;

/** The items of a list by their hash. */
final class NodeIndex {
  static final int ABSENT = -1;

  private final Items items;

  /** Hash tables of Java stay quick where keys are chosen to collide, as hashes are comparable. */
  private final Map<Hash, Integer> places = new HashMap<>();

  /** The place of one that is there twice, or {@link #ABSENT}. */
  private int repeated = ABSENT;

  NodeIndex(Items items) {
    this.items = items;
    byte[] bytes = new byte[items.longest()];
    for (int place = 0; place < items.size(); place++) {
      items.copyTo(place, bytes);
      Hash hash = Keccak256.hash(bytes, 0, items.bytes(place));
      if (places.putIfAbsent(hash, place) != null && repeated == ABSENT) {
        repeated = place;
      }
    }
  }

  Items items() {
    return items;
  }

  int repeated() {
    return repeated;
  }

  /** The place of the item with this hash, or {@link #ABSENT}. */
  int find(Hash hash) {
    return places.getOrDefault(hash, ABSENT);
  }

  /** A copy of an item, which is read as it is parsed. */
  byte[] read(int place) {
    byte[] bytes = new byte[items.bytes(place)];
    items.copyTo(place, bytes);
    return bytes;
  }
}
