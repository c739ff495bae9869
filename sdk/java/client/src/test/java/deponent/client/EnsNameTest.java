package deponent.client;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import deponent.eth.Address;
import deponent.eth.Bytes;
import deponent.eth.Hash;
import deponent.sets.Sets;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.Writer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.text.Normalizer;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeSet;
import org.junit.jupiter.api.Test;

/** Names of ENS, beside the reference of ENSIP-15 and Java's forms of Unicode. */
class EnsNameTest {
  /** Reads names as JSON, one a line, and writes each as the reference normalises it, or null. */
  private static final String REFERENCE =
      """
      const { ens_normalize } = require('@adraffy/ens-normalize');
      const lines = require('readline').createInterface({ input: process.stdin });
      lines.on('line', line => {
        let result = null;
        try { result = ens_normalize(JSON.parse(line)); } catch (no) {}
        console.log(JSON.stringify(result));
      });
      """;

  private static String normal(String name) {
    try {
      return EnsName.of(name).toString();
    } catch (IllegalArgumentException no) {
      assertTrue(no.getMessage().startsWith("no name of ENS: label "), no.getMessage());
      return null;
    }
  }

  @Test
  void namesHashAsEthersDoes() {
    List<Map<String, Object>> set = Sets.ethers("namehash");
    Sets.counted(set, 8);
    for (Map<String, Object> test : set) {
      Hash expected = Hash.of((String) test.get("expected"));
      assertEquals(expected, EnsName.of((String) test.get("name")).node(), test.toString());
    }
  }

  @Test
  void namesHaveOneForm() {
    String[][] cases = {
      {"", ""},
      {"nick.eth", "nick.eth"},
      {"Nick.ETH", "nick.eth"},
      {"_$A", "_$a"},
      {"___", "___"},
      {"a_b", null},
      {"abc__", null},
      {"ab-c", "ab-c"},
      {"xn--a", null},
      {"---a", "---a"},
      {"a..eth", null},
      {".eth", null},
      {"a.", null},
      {" a", null},
      {"\u00ad", null},
      {"a\u00adb", "ab"},
      {"E\ufe0e\u0303", "\u1ebd"},
      {"a\u0300", "\u00e0"},
      {"x\u0300\u0300", null},
      {"\u0300a", null},
      {"\ud83d\udca9\u0300", null},
      {"a\u2019s", "a\u2019s"},
      {"a's", "a\u2019s"},
      {"\u2019a", null},
      {"a\u2019\u2019s", null},
      {"a\u2122\ufe0f", "atm"},
      {"\ud83d\udca9\ufe0e", "\ud83d\udca9"},
      {"\u2764\ufe0f", "\u2764"},
      {"1\ufe0f\u20e3", "1\u20e3"},
      {"a\u200db", null},
      {"\ud83d\udc68\u200d\ud83d\udcbb", "\ud83d\udc68\u200d\ud83d\udcbb"},
      {"\u0430", null},
      {"\u0440\u0430ypal", null},
      {"0\u0445", null},
      {"\u0442\u04d5", "\u0442\u04d5"},
      {"\ud800", null},
    };
    for (String[] test : cases) {
      assertEquals(test[1], normal(test[0]), test[0]);
    }
    IllegalArgumentException fault =
        assertThrows(IllegalArgumentException.class, () -> EnsName.of("good.no good.eth"));
    assertEquals("no name of ENS: label 2: names have no U+0020 (SPACE)", fault.getMessage());
  }

  /** Names of what the tables know, whole and broken, and of anything. */
  private static String random(Random random, int[] known, List<int[]> emoji) {
    StringBuilder name = new StringBuilder();
    List<EnsTables.Group> groups = EnsTables.get().groups;
    EnsTables.Group group = groups.get(random.nextInt(groups.size()));
    int[] primary = group.primary().toArray();
    int[] secondary = group.secondary().toArray();
    for (int left = 1 + random.nextInt(6); left > 0; left--) {
      int[] from = secondary.length > 0 && random.nextInt(3) == 0 ? secondary : primary;
      switch (random.nextInt(12)) {
        case 0 -> name.appendCodePoint(known[random.nextInt(known.length)]);
        case 1 -> {
          for (int one : emoji.get(random.nextInt(emoji.size()))) {
            int style = random.nextInt(12);
            if (one != EnsNormalizer.EMOJI_STYLE || style > 3) {
              name.appendCodePoint(one);
            }
            if (style == 0) {
              name.appendCodePoint(EnsNormalizer.EMOJI_STYLE);
            }
          }
        }
        case 2 -> name.appendCodePoint(random.nextInt(0x80));
        case 3 -> name.append("-._'\u00ad\ufe0f".charAt(random.nextInt(6)));
        case 4 -> name.appendCodePoint(0x300 + random.nextInt(0x70));
        case 5 -> name.appendCodePoint(random.nextInt(0x20000));
        default -> name.appendCodePoint(from[random.nextInt(from.length)]);
      }
    }
    return name.toString();
  }

  private static void collect(EnsTables.Emoji node, List<Integer> path, List<int[]> all) {
    if (node.whole != null) {
      all.add(path.stream().mapToInt(Integer::intValue).toArray());
    }
    for (int codePoint : node.keys()) {
      path.add(codePoint);
      collect(node.next(codePoint), path, all);
      path.removeLast();
    }
  }

  @Test
  void randomNamesAreAsTheReferenceHasThem() throws Exception {
    EnsTables tables = EnsTables.get();
    TreeSet<Integer> of = new TreeSet<>(tables.valid.stream().boxed().toList());
    of.addAll(tables.mapped.keySet());
    of.addAll(tables.confused.keySet());
    int[] known = of.stream().mapToInt(Integer::intValue).toArray();
    List<int[]> emoji = new ArrayList<>();
    collect(tables.emoji, new ArrayList<>(), emoji);
    Random random = Sets.random();
    List<String> names = new ArrayList<>();
    // Each character that looks like others, alone and with a friend.
    tables.confused.keySet().forEach(one -> names.add(Character.toString(one)));
    tables.confused.keySet().forEach(one -> names.add(Character.toString(one) + "1"));
    for (int i = 0; i < 30_000; i++) {
      names.add(random(random, known, emoji));
    }
    List<String> expected = reference(names);
    int whole = 0;
    for (int i = 0; i < expected.size(); i++) {
      String name = names.get(i);
      String normal = normal(name);
      assertEquals(expected.get(i), normal, () -> Sets.json(name));
      if (normal != null) {
        whole++;
        assertEquals(normal, normal(normal), name);
      }
    }
    assertTrue(expected.isEmpty() || whole > 1_000, whole + " names are none");
  }

  /** What the reference says, or nothing where it is not there. */
  private static List<String> reference(List<String> names) throws Exception {
    Path tools = Sets.npm("@adraffy/ens-normalize");
    List<String> results = new ArrayList<>();
    if (tools == null) {
      return results;
    }
    Process node =
        new ProcessBuilder("node", "-e", REFERENCE)
            .directory(tools.toFile())
            .redirectError(ProcessBuilder.Redirect.INHERIT)
            .start();
    try (BufferedReader lines = node.inputReader(StandardCharsets.UTF_8)) {
      Thread writer =
          Thread.startVirtualThread(
              () -> {
                try (Writer out = node.outputWriter(StandardCharsets.UTF_8)) {
                  for (String name : names) {
                    out.write(Sets.json(name) + "\n");
                  }
                } catch (IOException ended) {
                  // There are too few results then.
                }
              });
      for (String line = lines.readLine(); line != null; line = lines.readLine()) {
        deponent.eth.JsonReader json = new deponent.eth.JsonReader(line);
        results.add(json.nextNull() ? null : json.nextString());
      }
      writer.join();
    } finally {
      node.destroyForcibly().waitFor();
    }
    assertEquals(names.size(), results.size());
    return results;
  }

  @Test
  void formsAreThoseOfJavaWhereItKnowsTheCharacters() {
    UnicodeForms forms = EnsTables.get().forms;
    Random random = Sets.random();
    for (int i = 0; i < 50_000; i++) {
      StringBuilder text = new StringBuilder();
      for (int left = 1 + random.nextInt(5); left > 0; left--) {
        int codePoint =
            switch (random.nextInt(4)) {
              case 0 -> 0x300 + random.nextInt(0x70);
              case 1 -> 0x1100 + random.nextInt(0x100);
              case 2 -> 0xac00 + random.nextInt(11_172);
              default -> random.nextInt(0x30000);
            };
        if (Character.isDefined(codePoint) && (codePoint < 0xd800 || codePoint > 0xdfff)) {
          text.appendCodePoint(codePoint);
        }
      }
      int[] input = text.codePoints().toArray();
      int[] decomposed = Normalizer.normalize(text, Normalizer.Form.NFD).codePoints().toArray();
      int[] composed = Normalizer.normalize(text, Normalizer.Form.NFC).codePoints().toArray();
      assertArrayEquals(decomposed, forms.decomposed(input), () -> Sets.json(text.toString()));
      assertArrayEquals(composed, forms.composed(input), () -> Sets.json(text.toString()));
    }
  }

  @Test
  void namesHaveAWireFormat() {
    assertEquals(Bytes.of("00"), EnsName.of("").dns());
    assertEquals(Bytes.of("046e69636b0365746800"), EnsName.of("nick.eth").dns());
    EnsName longest = EnsName.of("a".repeat(255) + ".eth");
    assertEquals(1 + 255 + 1 + 3 + 1, longest.dns().size());
    assertEquals((byte) 255, longest.dns().at(0));
    Bytes hashed = EnsName.of("a".repeat(256) + ".eth").dns();
    String label = new String(hashed.slice(1, 67).toBytes(), StandardCharsets.US_ASCII);
    String hash = deponent.eth.Keccak256.hash("a".repeat(256).getBytes()).toString();
    assertEquals("[" + hash.substring(2) + "]", label);
  }

  @Test
  void addressesHaveNamesByTheirChain() {
    Address address = Address.of("0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed");
    String digits = "5aaeb6053f3e94c9b9a09f33669435e7ef1beaed";
    assertEquals(digits + ".addr.reverse", EnsName.reverse(address, CoinType.ETHER).toString());
    String any = EnsName.reverse(address, CoinType.ANY_EVM).toString();
    assertEquals(digits + ".default.reverse", any);
    String base = EnsName.reverse(address, CoinType.ofChain(8453)).toString();
    assertEquals(digits + ".80002105.reverse", base);
    assertEquals("0014.0.reverse", EnsName.reverse(Bytes.of("0014"), 0).toString());
    assertEquals(CoinType.ETHER, CoinType.ofChain(1));
    assertThrows(IllegalArgumentException.class, () -> CoinType.ofChain(1L << 31));
    assertThrows(IllegalArgumentException.class, () -> EnsName.reverse(Bytes.EMPTY, 0));
    EnsName one = EnsName.of("NICK.eth");
    assertEquals(EnsName.of("nick.eth"), one);
    assertEquals(EnsName.of("nick.eth").hashCode(), one.hashCode());
    assertEquals(List.of("nick", "eth"), one.labels());
  }
}
