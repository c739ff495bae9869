package deponent.client;

import java.util.Arrays;
import java.util.BitSet;
import java.util.stream.IntStream;

/** A set of code points, as ranges. */
final class CodePoints {
  /** The first code point of each range, and the one behind its last, in ascending order. */
  private final int[] bounds;

  CodePoints(int[] bounds) {
    this.bounds = bounds;
  }

  boolean contains(int codePoint) {
    int found = Arrays.binarySearch(bounds, codePoint);
    // A bound at an even place begins a range; between bounds, an odd number of them came before.
    return found >= 0 ? (found & 1) == 0 : (-found - 1 & 1) == 1;
  }

  /** All of them, in ascending order. */
  IntStream stream() {
    return IntStream.range(0, bounds.length / 2)
        .flatMap(i -> IntStream.range(bounds[2 * i], bounds[2 * i + 1]));
  }

  /** All of them, in ascending order. */
  int[] toArray() {
    return stream().toArray();
  }

  void addTo(BitSet set) {
    for (int i = 0; i < bounds.length; i += 2) {
      set.set(bounds[i], bounds[i + 1]);
    }
  }
}
