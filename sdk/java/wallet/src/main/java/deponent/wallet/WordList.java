package deponent.wallet;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.text.Normalizer;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** The lists of 2,048 words that BIP-39 has. */
public enum WordList {
  /** English; the list that most wallets know alone. */
  ENGLISH,
  /** Japanese, whose words stand between ideographic spaces. */
  JAPANESE,
  /** Korean. */
  KOREAN,
  /** Spanish. */
  SPANISH,
  /** Chinese in simplified characters. */
  CHINESE_SIMPLIFIED,
  /** Chinese in traditional characters. */
  CHINESE_TRADITIONAL,
  /** French. */
  FRENCH,
  /** Italian. */
  ITALIAN,
  /** Czech. */
  CZECH;

  /** The number of words of each list. */
  public static final int SIZE = 2_048;

  /** A list that was read. */
  private record Words(List<String> all, Map<String, Integer> places) {}

  private volatile @Nullable Words words;

  /** The words in their order, in Unicode's form NFKD. */
  public List<String> words() {
    return loaded().all;
  }

  /** The place of a word in the form NFKD, or -1. */
  int placeOf(String word) {
    return loaded().places.getOrDefault(word, -1);
  }

  /** What stands between the words of a phrase. */
  String space() {
    return this == JAPANESE ? "\u3000" : " ";
  }

  private Words loaded() {
    Words known = words;
    if (known == null) {
      known = load();
      words = known;
    }
    return known;
  }

  private Words load() {
    String name = "words/" + name().toLowerCase(Locale.ROOT) + ".txt";
    try (InputStream in = WordList.class.getResourceAsStream(name)) {
      if (in == null) {
        throw new IllegalStateException("the jar of deponent-wallet has no " + name);
      }
      String text = new String(in.readAllBytes(), StandardCharsets.UTF_8);
      List<String> all = List.of(Normalizer.normalize(text, Normalizer.Form.NFKD).split("\n"));
      Map<String, Integer> places = HashMap.newHashMap(SIZE);
      for (int i = 0; i < all.size(); i++) {
        places.put(all.get(i), i);
      }
      return new Words(all, places);
    } catch (IOException unread) {
      throw new UncheckedIOException(unread);
    }
  }
}
