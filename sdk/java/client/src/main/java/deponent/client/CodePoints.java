package deponent.client;

import java.util.Arrays;

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

  boolean containsAll(int[] codePoints) {
    for (int codePoint : codePoints) {
      if (!contains(codePoint)) {
        return false;
      }
    }
    return true;
  }

  /** All of them, in ascending order. */
  int[] toArray() {
    int size = 0;
    for (int i = 0; i < bounds.length; i += 2) {
      size += bounds[i + 1] - bounds[i];
    }
    int[] all = new int[size];
    int at = 0;
    for (int i = 0; i < bounds.length; i += 2) {
      for (int codePoint = bounds[i]; codePoint < bounds[i + 1]; codePoint++) {
        all[at++] = codePoint;
      }
    }
    return all;
  }
}
