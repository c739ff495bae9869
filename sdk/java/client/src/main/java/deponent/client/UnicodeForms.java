package deponent.client;

import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Unicode's forms NFC and NFD (UAX #15) of the version that ENSIP-15 names; that of {@link
 * java.text.Normalizer} is older, and differs between Java's versions.
 */
final class UnicodeForms {
  // Syllables of Hangul are composed by arithmetic (Unicode, 3.12).
  private static final int SYLLABLES = 0xac00;
  private static final int LEADING = 0x1100;
  private static final int VOWELS = 0x1161;
  private static final int TRAILING = 0x11a7;
  private static final int LEADING_COUNT = 19;
  private static final int VOWEL_COUNT = 21;
  private static final int TRAILING_COUNT = 28;
  private static final int SYLLABLE_COUNT = LEADING_COUNT * VOWEL_COUNT * TRAILING_COUNT;

  private final Map<Integer, Integer> ranks = new HashMap<>();
  private final Map<Integer, int[]> parts;
  private final Map<Long, Integer> wholes = new HashMap<>();

  /**
   * By characters of each combining class in ascending order, those that are not composed, and the
   * parts of characters.
   */
  UnicodeForms(List<CodePoints> classes, CodePoints excluded, Map<Integer, int[]> parts) {
    this.parts = parts;
    for (int i = 0; i < classes.size(); i++) {
      for (int codePoint : classes.get(i).toArray()) {
        ranks.put(codePoint, i + 1);
      }
    }
    parts.forEach(
        (whole, of) -> {
          if (of.length == 2 && !excluded.contains(whole)) {
            wholes.put(pair(of[0], of[1]), whole);
          }
        });
  }

  private static long pair(int first, int second) {
    return (long) first << 32 | second;
  }

  /** The order of a mark among marks, or 0 of what is none. */
  private int rank(int codePoint) {
    return ranks.getOrDefault(codePoint, 0);
  }

  /** Whether a character has parts in the form NFD. */
  boolean hasParts(int codePoint) {
    int syllable = codePoint - SYLLABLES;
    return syllable >= 0 && syllable < SYLLABLE_COUNT || parts.containsKey(codePoint);
  }

  /** The form NFD. */
  int[] decomposed(int[] codePoints) {
    Buffer out = new Buffer(codePoints.length);
    for (int codePoint : codePoints) {
      decompose(codePoint, out);
    }
    order(out);
    return out.toArray();
  }

  private void decompose(int codePoint, Buffer out) {
    int syllable = codePoint - SYLLABLES;
    if (syllable >= 0 && syllable < SYLLABLE_COUNT) {
      out.add(LEADING + syllable / (VOWEL_COUNT * TRAILING_COUNT));
      out.add(VOWELS + syllable / TRAILING_COUNT % VOWEL_COUNT);
      int trailing = syllable % TRAILING_COUNT;
      if (trailing != 0) {
        out.add(TRAILING + trailing);
      }
      return;
    }
    int[] of = parts.get(codePoint);
    if (of == null) {
      out.add(codePoint);
      return;
    }
    for (int part : of) {
      decompose(part, out);
    }
  }

  /** Sorts each run of marks by their rank, and keeps the order of those of the same rank. */
  private void order(Buffer all) {
    int begin = 0;
    while (begin < all.size) {
      int end = begin;
      while (end < all.size && rank(all.values[end]) != 0) {
        end++;
      }
      if (end - begin > 1) {
        Integer[] run = new Integer[end - begin];
        for (int i = 0; i < run.length; i++) {
          run[i] = all.values[begin + i];
        }
        Arrays.sort(run, java.util.Comparator.comparingInt(this::rank));
        for (int i = 0; i < run.length; i++) {
          all.values[begin + i] = run[i];
        }
      }
      begin = end + 1;
    }
  }

  /** The form NFC. */
  int[] composed(int[] codePoints) {
    int[] all = decomposed(codePoints);
    Buffer out = new Buffer(all.length);
    int starter = -1;
    int before = 0;
    for (int codePoint : all) {
      int rank = rank(codePoint);
      // What stands between a starter and a mark blocks it, if its rank is not smaller.
      boolean blocked = starter != out.size - 1 && (before == 0 || before >= rank);
      int whole = starter < 0 || blocked ? -1 : compose(out.values[starter], codePoint);
      if (whole >= 0) {
        out.values[starter] = whole;
        continue;
      }
      if (rank == 0) {
        starter = out.size;
      }
      before = rank;
      out.add(codePoint);
    }
    return out.toArray();
  }

  private int compose(int first, int second) {
    int leading = first - LEADING;
    int vowel = second - VOWELS;
    if (leading >= 0 && leading < LEADING_COUNT && vowel >= 0 && vowel < VOWEL_COUNT) {
      return SYLLABLES + (leading * VOWEL_COUNT + vowel) * TRAILING_COUNT;
    }
    int syllable = first - SYLLABLES;
    int trailing = second - TRAILING;
    if (syllable >= 0
        && syllable < SYLLABLE_COUNT
        && syllable % TRAILING_COUNT == 0
        && trailing > 0
        && trailing < TRAILING_COUNT) {
      return first + trailing;
    }
    return wholes.getOrDefault(pair(first, second), -1);
  }

  /** Code points that are added one after the other. */
  static final class Buffer {
    private int[] values;
    private int size;

    Buffer(int expected) {
      values = new int[expected + 8];
    }

    void add(int codePoint) {
      if (size == values.length) {
        values = Arrays.copyOf(values, 2 * size);
      }
      values[size++] = codePoint;
    }

    void addAll(int[] codePoints) {
      for (int codePoint : codePoints) {
        add(codePoint);
      }
    }

    boolean isEmpty() {
      return size == 0;
    }

    int[] toArray() {
      return Arrays.copyOf(values, size);
    }
  }
}
