package deponent.engine;

import deponent.eth.Bytes;
import deponent.eth.Hash;
import deponent.eth.JsonReader;
import deponent.eth.JsonWriter;
import deponent.eth.Keccak256;
import deponent.eth.RlpWriter;
import deponent.sets.Sets;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.stream.Stream;

/** Vectors, witnesses at random, tries that are built the slow way, and bytes that are changed. */
final class Samples {
  private Samples() {}

  /** The files of {@code vectors/witness}, which the tests in Rust read as well. */
  static List<Map<String, Object>> vectors() {
    try (Stream<Path> files = Files.list(root().resolve("vectors/witness"))) {
      return files
          .filter(file -> file.toString().endsWith(".json"))
          .sorted()
          .map(Samples::members)
          .toList();
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }

  /** The repository. */
  static Path root() {
    return Path.of("").toAbsolutePath().getParent().getParent().getParent();
  }

  @SuppressWarnings("unchecked")
  static Map<String, Object> members(Path file) {
    try {
      return (Map<String, Object>) Sets.tree(new JsonReader(Files.readAllBytes(file)));
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }

  @SuppressWarnings("unchecked")
  static List<Bytes> list(Object hexTexts) {
    return ((List<String>) hexTexts).stream().map(Bytes::of).toList();
  }

  @SuppressWarnings("unchecked")
  static Map<String, Object> object(Object json) {
    return (Map<String, Object>) json;
  }

  @SuppressWarnings("unchecked")
  static List<Map<String, Object>> objects(Object json) {
    return (List<Map<String, Object>>) json;
  }

  /** Writes a tree of texts, as {@link Sets#tree} reads it. */
  static void write(Object tree, JsonWriter json) {
    switch (tree) {
      case Map<?, ?> members -> {
        json.beginObject();
        members.forEach((name, value) -> write(value, json.name((String) name)));
        json.endObject();
      }
      case List<?> elements -> {
        json.beginArray();
        elements.forEach(element -> write(element, json));
        json.endArray();
      }
      default -> json.value((String) tree);
    }
  }

  /** Of its lists in hex. */
  static Witness witness(Map<String, Object> lists) {
    return Witness.of(
        list(lists.get("state")), list(lists.get("codes")), list(lists.get("headers")));
  }

  static Bytes bytes(ByteBuffer view) {
    byte[] bytes = new byte[view.remaining()];
    view.get(view.position(), bytes);
    return Bytes.of(bytes);
  }

  static Bytes bytes(Random random, int most) {
    byte[] bytes = new byte[random.nextInt(most + 1)];
    random.nextBytes(bytes);
    return Bytes.of(bytes);
  }

  static List<Bytes> byteLists(Random random, int mostItems, int mostBytes) {
    List<Bytes> items = new ArrayList<>();
    for (int left = random.nextInt(mostItems + 1); left > 0; left--) {
      items.add(bytes(random, mostBytes));
    }
    return items;
  }

  /** A witness whose headers are lists of RLP, and whose other items are anything. */
  static Witness witness(Random random) {
    List<Bytes> headers = new ArrayList<>();
    for (int left = random.nextInt(3); left > 0; left--) {
      headers.add(Bytes.of(new RlpWriter().list().add(bytes(random, 90)).end().toBytes()));
    }
    return Witness.of(byteLists(random, 6, 300), byteLists(random, 3, 300), headers);
  }

  /** Some of the bytes changed, taken away, doubled, or the end cut off. */
  static byte[] changed(Random random, byte[] input) {
    byte[] bytes = input.clone();
    for (int left = 1 + random.nextInt(3); left > 0 && bytes.length > 0; left--) {
      int at = random.nextInt(bytes.length);
      switch (random.nextInt(6)) {
        case 0 -> bytes[at] ^= (byte) (1 << random.nextInt(8));
        case 1 -> bytes[at] = (byte) random.nextInt(256);
        case 2 -> bytes[at] = (byte) (random.nextBoolean() ? 0xff : 0);
        case 3 -> bytes = Arrays.copyOf(bytes, at);
        case 4 -> {
          byte[] longer = Arrays.copyOf(bytes, bytes.length + 1);
          System.arraycopy(bytes, at, longer, at + 1, bytes.length - at);
          bytes = longer;
        }
        default -> {
          byte[] shorter = Arrays.copyOf(bytes, bytes.length - 1);
          System.arraycopy(bytes, at + 1, shorter, at, shorter.length - at);
          bytes = shorter;
        }
      }
    }
    return bytes;
  }

  /** A node of a trie, and the nibbles above it. */
  record Placed(String path, Bytes rlp) {}

  /** A trie built from all its keys at once, by the definition of the yellow paper. */
  static final class SlowTrie {
    final List<Placed> nodes = new ArrayList<>();
    final Hash root;

    /** Of values by key; keys are 32 bytes. */
    SlowTrie(Map<Hash, Bytes> values) {
      SortedMap<String, Bytes> byNibbles = new TreeMap<>();
      values.forEach((key, value) -> byNibbles.put(key.toString().substring(2), value));
      if (byNibbles.isEmpty()) {
        root = TrieAccount.EMPTY_ROOT;
        return;
      }
      byte[] rlp = node("", byNibbles);
      if (rlp.length < 32) {
        nodes.add(new Placed("", Bytes.of(rlp)));
      }
      root = Keccak256.hash(rlp);
    }

    private byte[] node(String path, SortedMap<String, Bytes> values) {
      String first = values.firstKey();
      String last = values.lastKey();
      RlpWriter rlp = new RlpWriter().list();
      if (values.size() == 1) {
        rlp.add(packed(first.substring(path.length()), true));
        rlp.add(values.get(first)).end();
        return placed(path, rlp.toBytes());
      }
      int shared = path.length();
      while (first.charAt(shared) == last.charAt(shared)) {
        shared++;
      }
      if (shared > path.length()) {
        rlp.add(packed(first.substring(path.length(), shared), false));
        refer(rlp, node(first.substring(0, shared), values));
        rlp.end();
        return placed(path, rlp.toBytes());
      }
      for (int nibble = 0; nibble < 16; nibble++) {
        String from = path + "0123456789abcdef".charAt(nibble);
        SortedMap<String, Bytes> below = values.subMap(from, from + "g");
        if (below.isEmpty()) {
          rlp.add(Bytes.EMPTY);
        } else {
          refer(rlp, node(from, below));
        }
      }
      rlp.add(Bytes.EMPTY).end();
      return placed(path, rlp.toBytes());
    }

    private static void refer(RlpWriter rlp, byte[] node) {
      if (node.length < 32) {
        rlp.addEncoded(node);
      } else {
        rlp.add(Keccak256.hash(node));
      }
    }

    private byte[] placed(String path, byte[] rlp) {
      if (rlp.length >= 32) {
        nodes.add(new Placed(path, Bytes.of(rlp)));
      }
      return rlp;
    }

    private static Bytes packed(String nibbles, boolean isLeaf) {
      int flag = (isLeaf ? 2 : 0) + nibbles.length() % 2;
      return Bytes.of(flag + (nibbles.length() % 2 == 0 ? "0" : "") + nibbles);
    }
  }
}
