package deponent.wallet;

import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.security.SecureRandom;
import java.text.Normalizer;
import java.util.Arrays;
import javax.security.auth.Destroyable;
import org.bouncycastle.crypto.digests.SHA512Digest;
import org.bouncycastle.crypto.generators.PKCS5S2ParametersGenerator;
import org.bouncycastle.crypto.params.KeyParameter;
import org.jspecify.annotations.Nullable;

/**
 * A phrase of 12 to 24 words, of which keys are made (BIP-39). Its text does not show them.
 *
 * <pre>{@code
 * try (Mnemonic mnemonic = Mnemonic.of(phrase);
 *     PrivateKey first = mnemonic.key(0)) {
 *   first.address();
 * }
 * }</pre>
 */
public final class Mnemonic implements Destroyable, AutoCloseable {
  private static final int ROUNDS = 2_048;
  private static final int WORD_BITS = 11;

  private final byte[] entropy;
  private final WordList list;
  private volatile boolean destroyed;

  private Mnemonic(byte[] entropy, WordList list) {
    this.entropy = entropy;
    this.list = list;
  }

  /**
   * Of a phrase in any of the lists. The form of its Unicode and the spaces do not matter.
   *
   * @throws IllegalArgumentException if it is no phrase; the message shows none of its words
   */
  public static Mnemonic of(String phrase) {
    @Nullable IllegalArgumentException reason = null;
    for (WordList list : WordList.values()) {
      try {
        return of(phrase, list);
      } catch (UnknownWord unknown) {
        // Perhaps in the next list.
      } catch (IllegalArgumentException wrong) {
        reason = wrong;
      }
    }
    if (reason != null) {
      throw reason;
    }
    throw new IllegalArgumentException("no list has all words of the phrase");
  }

  /**
   * Of a phrase in one of the lists. The form of its Unicode and the spaces do not matter.
   *
   * @throws IllegalArgumentException if it is no phrase; the message shows none of its words
   */
  public static Mnemonic of(String phrase, WordList list) {
    String[] words = Normalizer.normalize(phrase, Normalizer.Form.NFKD).strip().split("\\s+");
    int count = words.length;
    if (count < 12 || count > 24 || count % 3 != 0) {
      throw new IllegalArgumentException(
          "a phrase has 12, 15, 18, 21 or 24 words, not " + (words[0].isEmpty() ? 0 : count));
    }
    byte[] bits = new byte[(count * WORD_BITS + 7) / 8];
    for (int i = 0; i < count; i++) {
      int place = list.placeOf(words[i]);
      if (place < 0) {
        throw new UnknownWord(i + 1, list);
      }
      for (int bit = 0; bit < WORD_BITS; bit++) {
        int at = i * WORD_BITS + bit;
        bits[at / 8] |= (byte) ((place >> WORD_BITS - 1 - bit & 1) << 7 - at % 8);
      }
    }
    byte[] entropy = Arrays.copyOf(bits, count / 3 * 4);
    int mask = 0xff << 8 - count / 3;
    int given = bits[entropy.length];
    Arrays.fill(bits, (byte) 0);
    if (((given ^ checksum(entropy)) & mask & 0xff) != 0) {
      Arrays.fill(entropy, (byte) 0);
      throw new IllegalArgumentException(
          "the checksum of the phrase is wrong: a word is another one, or elsewhere");
    }
    return new Mnemonic(entropy, list);
  }

  private static final class UnknownWord extends IllegalArgumentException {
    private static final long serialVersionUID = 1;

    UnknownWord(int place, WordList list) {
      super("word " + place + " of the phrase is not in the list " + list);
    }
  }

  /**
   * Of 16, 20, 24, 28 or 32 bytes of random numbers, which are copied.
   *
   * @throws IllegalArgumentException if there are more or fewer
   */
  public static Mnemonic ofEntropy(byte[] entropy, WordList list) {
    if (entropy.length < 16 || entropy.length > 32 || entropy.length % 4 != 0) {
      throw new IllegalArgumentException(
          "16, 20, 24, 28 or 32 bytes make a phrase, not " + entropy.length);
    }
    return new Mnemonic(entropy.clone(), list);
  }

  /**
   * A new one of 12, 15, 18, 21 or 24 English words, of the system's secure random numbers.
   *
   * @throws IllegalArgumentException if it is another number of words
   */
  public static Mnemonic random(int words) {
    if (words < 12 || words > 24 || words % 3 != 0) {
      throw new IllegalArgumentException("a phrase has 12, 15, 18, 21 or 24 words, not " + words);
    }
    byte[] entropy = new byte[words / 3 * 4];
    new SecureRandom().nextBytes(entropy);
    return new Mnemonic(entropy, WordList.ENGLISH);
  }

  /** The first byte of the hash. */
  private static int checksum(byte[] entropy) {
    try {
      return MessageDigest.getInstance("SHA-256").digest(entropy)[0];
    } catch (NoSuchAlgorithmException no) {
      throw new IllegalStateException("each Java has SHA-256", no);
    }
  }

  /** The list of the words. */
  public WordList list() {
    return list;
  }

  /**
   * The words, in Unicode's form NFKD.
   *
   * @throws IllegalStateException if it was destroyed
   */
  public String phrase() {
    byte[] bits = Arrays.copyOf(held(), entropy.length + 1);
    bits[entropy.length] = (byte) checksum(entropy);
    StringBuilder phrase = new StringBuilder();
    int count = entropy.length / 4 * 3;
    for (int i = 0; i < count; i++) {
      int place = 0;
      for (int at = i * WORD_BITS; at < (i + 1) * WORD_BITS; at++) {
        place = place << 1 | bits[at / 8] >> 7 - at % 8 & 1;
      }
      phrase.append(i == 0 ? "" : list.space()).append(list.words().get(place));
    }
    Arrays.fill(bits, (byte) 0);
    return phrase.toString();
  }

  /**
   * A copy of the random numbers that the words stand for.
   *
   * @throws IllegalStateException if it was destroyed
   */
  public byte[] entropy() {
    return held().clone();
  }

  /**
   * The 64 bytes of which keys are made. Another passphrase gives other keys, and none is wrong.
   *
   * @throws IllegalArgumentException if the passphrase has half of a surrogate pair
   * @throws IllegalStateException if it was destroyed
   */
  public byte[] seed(String passphrase) {
    byte[] words =
        Normalizer.normalize(phrase(), Normalizer.Form.NFKD).getBytes(StandardCharsets.UTF_8);
    String salt = Normalizer.normalize("mnemonic" + passphrase, Normalizer.Form.NFKD);
    PKCS5S2ParametersGenerator generator = new PKCS5S2ParametersGenerator(new SHA512Digest());
    generator.init(words, KeyDerivation.utf8(salt, "a passphrase"), ROUNDS);
    byte[] seed = ((KeyParameter) generator.generateDerivedMacParameters(512)).getKey().clone();
    Arrays.fill(words, (byte) 0);
    return seed;
  }

  /**
   * The root of the tree of keys, with a passphrase, or an empty one.
   *
   * @throws IllegalStateException if it was destroyed
   */
  public HdKey root(String passphrase) {
    byte[] seed = seed(passphrase);
    try {
      return HdKey.ofSeed(seed);
    } finally {
      Arrays.fill(seed, (byte) 0);
    }
  }

  /**
   * The key of an account at {@code m/44'/60'/0'/0/index} (BIP-44), without a passphrase, as most
   * wallets count them.
   *
   * @throws IllegalArgumentException if the index is negative
   * @throws IllegalStateException if it was destroyed
   */
  public PrivateKey key(int index) {
    return key(HdKey.ETHEREUM + "/" + index);
  }

  /**
   * The key at a path, such as {@code m/44'/60'/0'/0/0}, without a passphrase.
   *
   * @throws IllegalArgumentException if it is no path
   * @throws IllegalStateException if it was destroyed
   */
  public PrivateKey key(String path) {
    try (HdKey root = root("");
        HdKey child = root.derive(path)) {
      return child.privateKey();
    }
  }

  private byte[] held() {
    if (destroyed) {
      throw new IllegalStateException("the mnemonic was destroyed");
    }
    return entropy;
  }

  /** Overwrites the entropy. */
  @Override
  public void destroy() {
    destroyed = true;
    Arrays.fill(entropy, (byte) 0);
  }

  @Override
  public boolean isDestroyed() {
    return destroyed;
  }

  /** As {@link #destroy}. */
  @Override
  public void close() {
    destroy();
  }

  /** The list and the number of words, and not the words. */
  @Override
  public String toString() {
    return "Mnemonic[" + entropy.length / 4 * 3 + " words, " + list + "]";
  }
}
