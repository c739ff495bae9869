package deponent.wallet;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import deponent.eth.Address;
import deponent.eth.Hex;
import deponent.sets.Sets;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.text.Normalizer;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.Test;

class MnemonicTest {
  private static final String TEST = "test ".repeat(11) + "junk";

  private static WordList list(Object locale) {
    return switch ((String) locale) {
      case "en" -> WordList.ENGLISH;
      case "ja" -> WordList.JAPANESE;
      case "ko" -> WordList.KOREAN;
      case "es" -> WordList.SPANISH;
      case "fr" -> WordList.FRENCH;
      case "it" -> WordList.ITALIAN;
      case "cz" -> WordList.CZECH;
      case "zh_cn" -> WordList.CHINESE_SIMPLIFIED;
      case "zh_tw" -> WordList.CHINESE_TRADITIONAL;
      default -> throw new AssertionError(locale);
    };
  }

  private static String nfkd(Object text) {
    return Normalizer.normalize((String) text, Normalizer.Form.NFKD);
  }

  @Test
  void theNineListsAreThoseOfTheSet() {
    List<Map<String, Object>> set = Sets.ethers("wordlists");
    Sets.counted(set, WordList.values().length);
    for (Map<String, Object> test : set) {
      List<String> expected = List.of(nfkd(test.get("content")).strip().split("\n"));
      assertEquals(expected, list(test.get("locale")).words());
    }
    for (WordList list : WordList.values()) {
      assertEquals(WordList.SIZE, new HashSet<>(list.words()).size(), list.name());
    }
  }

  @Test
  void phrasesSeedsAndKeysAreThoseOfTheSet() {
    List<Map<String, Object>> set = Sets.ethers("hdnode");
    Sets.counted(set, 1_409);
    for (Map<String, Object> test : set) {
      String name = (String) test.get("name");
      WordList list = list(test.get("locale"));
      String phrase = (String) test.get("mnemonic");
      byte[] entropy = Hex.decode((String) test.get("entropy"));
      Mnemonic mnemonic = Mnemonic.of(phrase, list);
      assertArrayEquals(entropy, mnemonic.entropy(), name);
      assertEquals(nfkd(phrase), nfkd(Mnemonic.ofEntropy(entropy, list).phrase()), name);
      String passphrase = test.get("password") instanceof String given ? given : "";
      byte[] seed = mnemonic.seed(passphrase);
      assertEquals(test.get("seed"), Hex.encode(seed), name);
      HdKey root = HdKey.ofSeed(seed);
      for (Object node : (List<?>) test.get("hdnodes")) {
        Map<?, ?> expected = (Map<?, ?>) node;
        PrivateKey key = root.derive((String) expected.get("path")).privateKey();
        assertEquals(expected.get("privateKey"), Hex.encode(key.toBytes()), name);
        assertEquals(Address.of((String) expected.get("address")), key.address(), name);
      }
    }
  }

  @Test
  void theListOfAPhraseIsFound() {
    Random random = Sets.random();
    for (WordList list : WordList.values()) {
      for (int size = 16; size <= 32; size += 4) {
        byte[] entropy = new byte[size];
        random.nextBytes(entropy);
        Mnemonic made = Mnemonic.ofEntropy(entropy, list);
        String phrase = made.phrase();
        Mnemonic read = Mnemonic.of("  " + phrase.replace(list.space(), "  ") + "\n");
        assertArrayEquals(made.seed(""), read.seed(""), list.name());
        String composed = Normalizer.normalize(phrase, Normalizer.Form.NFC);
        assertArrayEquals(made.seed(""), Mnemonic.of(composed).seed(""), list.name());
      }
    }
    assertEquals(24, Mnemonic.random(24).phrase().split(" ").length);
    assertFalse(Mnemonic.random(12).phrase().equals(Mnemonic.random(12).phrase()));
  }

  @Test
  void theAccountsOfDevelopmentChainsAreThose() {
    try (Mnemonic mnemonic = Mnemonic.of(TEST);
        PrivateKey first = mnemonic.key(0);
        PrivateKey second = mnemonic.key("m/44'/60'/0'/0/1")) {
      assertEquals(Address.of("0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"), first.address());
      assertEquals(Address.of("0x70997970C51812dc3A010C7d01b50e0d17dc79C8"), second.address());
    }
  }

  @Test
  void whatIsNoPhraseIsRefusedAndNotShown() {
    refused("a phrase has 12, 15, 18, 21 or 24 words, not 0", "");
    refused("words, not 11", TEST.substring(5));
    refused("words, not 27", "test ".repeat(27));
    refused("no list has all words", "test ".repeat(11) + "jumk");
    refused("the checksum of the phrase is wrong", "test ".repeat(12));
    Throwable unknown =
        assertThrows(IllegalArgumentException.class, () -> Mnemonic.of(TEST, WordList.JAPANESE));
    assertEquals("word 1 of the phrase is not in the list JAPANESE", unknown.getMessage());
    assertThrows(IllegalArgumentException.class, () -> Mnemonic.random(13));
    assertThrows(
        IllegalArgumentException.class, () -> Mnemonic.ofEntropy(new byte[17], WordList.ENGLISH));
  }

  private static void refused(String reason, String phrase) {
    Throwable thrown = assertThrows(IllegalArgumentException.class, () -> Mnemonic.of(phrase));
    assertTrue(thrown.getMessage().contains(reason), thrown.getMessage());
    assertFalse(thrown.getMessage().contains("test"), thrown.getMessage());
  }

  @Test
  void aDestroyedPhraseIsGone() {
    Mnemonic mnemonic = Mnemonic.of(TEST);
    assertEquals("Mnemonic[12 words, ENGLISH]", mnemonic.toString());
    mnemonic.close();
    assertTrue(mnemonic.isDestroyed());
    assertThrows(IllegalStateException.class, mnemonic::phrase);
    assertThrows(IllegalStateException.class, mnemonic::entropy);
    assertThrows(IllegalStateException.class, () -> mnemonic.key(0));
  }

  @Test
  void extendedKeysAreThoseOfBip32() throws IOException {
    int valid = 0;
    for (String line : vectors()) {
      String[] parts = line.split(" ");
      if (parts.length == 1) {
        assertThrows(IllegalArgumentException.class, () -> HdKey.of(line), line);
        continue;
      }
      HdKey key = HdKey.ofSeed(Hex.decode(parts[0])).derive(parts[1]);
      assertEquals(parts[2], key.extendedPublic());
      assertEquals(parts[3], key.extended());
      HdKey read = HdKey.of(parts[3]);
      assertEquals(parts[3], read.extended());
      assertEquals(key.child(7, true).extended(), read.child(7, true).extended());
      assertEquals(key.depth(), read.depth());
      assertFalse(key.toString().contains("xprv"));
      valid++;
    }
    assertEquals(17, valid);
  }

  private static List<String> vectors() throws IOException {
    try (InputStream in = MnemonicTest.class.getResourceAsStream("bip32.txt")) {
      String text = new String(in.readAllBytes(), StandardCharsets.US_ASCII);
      return text.lines().filter(line -> !line.startsWith("#")).toList();
    }
  }

  @Test
  void whatIsNoExtendedKeyIsRefused() {
    HdKey root = HdKey.ofSeed(new byte[16]);
    String text = root.extended();
    Random random = Sets.random();
    for (int i = 0; i < 200; i++) {
      char[] digits = text.toCharArray();
      int at = random.nextInt(digits.length);
      digits[at] = digits[at] == 'x' ? 'y' : 'x';
      String changed = new String(digits);
      assertThrows(IllegalArgumentException.class, () -> HdKey.of(changed));
    }
    for (String wrong : List.of("", "1", "0OIl", "x".repeat(1_000), root.extendedPublic())) {
      assertThrows(IllegalArgumentException.class, () -> HdKey.of(wrong), wrong);
    }
    for (String path : List.of("", "/", "m/", "m//0", "n/0", "m/-1", "m/2147483648", "m/0''")) {
      assertThrows(IllegalArgumentException.class, () -> root.derive(path), path);
    }
    assertThrows(IllegalArgumentException.class, () -> root.child(-1, false));
    assertThrows(IllegalArgumentException.class, () -> HdKey.ofSeed(new byte[15]));
    HdKey deepest = root.derive("m" + "/0".repeat(255));
    assertEquals(255, deepest.depth());
    assertThrows(IllegalArgumentException.class, () -> deepest.child(0, false));
    root.close();
    assertTrue(root.isDestroyed());
    assertThrows(IllegalStateException.class, root::extended);
    assertThrows(IllegalStateException.class, root::extendedPublic);
    assertThrows(IllegalStateException.class, () -> root.child(0, true));
  }
}
