package deponent.sets;

import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assertions.fail;

import deponent.eth.JsonReader;
import deponent.eth.JsonWriter;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.stream.Stream;
import java.util.zip.GZIPInputStream;

/** The published sets of tests, and seeds: a source of the tests of each module. */
public final class Sets {
  private Sets() {}

  /** A set of npm's {@code @ethersproject/testcases}; none where it is not there. */
  @SuppressWarnings("unchecked")
  public static List<Map<String, Object>> ethers(String name) {
    Path folder = folder("DEPONENT_TOOLS", "node_modules/@ethersproject/testcases/testcases");
    if (folder == null) {
      return List.of();
    }
    Path file = folder.resolve(name + ".json.gz");
    try (InputStream in = new GZIPInputStream(Files.newInputStream(file))) {
      return (List<Map<String, Object>>) tree(new JsonReader(in, 1 << 16));
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }

  /** A JSON file of the published tests of Ethereum; no members where it is not there. */
  @SuppressWarnings("unchecked")
  public static Map<String, Map<String, Object>> fixture(String name) {
    Path folder = folder("DEPONENT_FIXTURES", "ethereum-tests");
    if (folder == null) {
      return Map.of();
    }
    try {
      return (Map<String, Map<String, Object>>)
          tree(new JsonReader(Files.readAllBytes(folder.resolve(name))));
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }

  /** The tests of all files below a folder of the published ones, by name. */
  public static Map<String, Map<String, Object>> fixtures(String below) {
    return fixtures("ethereum-tests", below);
  }

  /** As {@link #fixtures(String)}, of another set. */
  @SuppressWarnings("unchecked")
  public static Map<String, Map<String, Object>> fixtures(String set, String below) {
    Path folder = folder("DEPONENT_FIXTURES", set);
    Map<String, Map<String, Object>> tests = new LinkedHashMap<>();
    if (folder == null) {
      return tests;
    }
    try (Stream<Path> files = Files.walk(folder.resolve(below))) {
      for (Path file : files.filter(path -> path.toString().endsWith(".json")).sorted().toList()) {
        ((Map<String, Map<String, Object>>) tree(new JsonReader(Files.readAllBytes(file))))
            .forEach((name, test) -> tests.put(file.getFileName() + " " + name, test));
      }
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
    return tests;
  }

  /** The JSON files of a folder of the published tests, by name; none where it is not there. */
  public static Map<String, Object> files(String set) {
    Path folder = folder("DEPONENT_FIXTURES", set);
    Map<String, Object> trees = new LinkedHashMap<>();
    if (folder == null) {
      return trees;
    }
    try (Stream<Path> files = Files.list(folder)) {
      for (Path file : files.filter(path -> path.toString().endsWith(".json")).sorted().toList()) {
        trees.put(file.getFileName().toString(), tree(new JsonReader(Files.readAllBytes(file))));
      }
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
    return trees;
  }

  /** The files of a folder of the published tests with an ending, as texts by path. */
  public static Map<String, String> texts(String set, String below, String ending) {
    Path folder = folder("DEPONENT_FIXTURES", set);
    Map<String, String> texts = new LinkedHashMap<>();
    if (folder == null) {
      return texts;
    }
    try (Stream<Path> files = Files.walk(folder.resolve(below))) {
      for (Path file : files.filter(path -> path.toString().endsWith(ending)).sorted().toList()) {
        texts.put(folder.relativize(file).toString(), Files.readString(file));
      }
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
    return texts;
  }

  /** The folder of npm's packages, if it has this one; else null. */
  public static Path npm(String name) {
    Path modules = folder("DEPONENT_TOOLS", "node_modules");
    return modules == null || folder("DEPONENT_TOOLS", "node_modules/" + name) == null
        ? null
        : modules;
  }

  /** A text as JSON. */
  public static String json(String text) {
    return new String(new JsonWriter().value(text).toBytes(), StandardCharsets.UTF_8);
  }

  private static Path folder(String variable, String below) {
    String root = System.getenv(variable);
    Path folder = root == null ? null : Path.of(root).resolve(below);
    if (folder != null && Files.isDirectory(folder)) {
      return folder;
    }
    if (System.getenv("CI") != null) {
      fail("CI needs " + below + " in " + variable + " (sdk/java/README.md)");
    }
    System.out.println("not run: no " + below + " in " + variable + " (sdk/java/README.md)");
    return null;
  }

  /** Checks that a set was read whole, if it is there. */
  public static void counted(Collection<?> set, int expected) {
    assertTrue(set.isEmpty() || set.size() == expected, "a set of " + set.size());
  }

  /** JSON as maps, lists, texts, numbers and booleans; null is null. */
  public static Object tree(JsonReader json) {
    switch (json.peek()) {
      case OBJECT -> {
        Map<String, Object> members = new LinkedHashMap<>();
        json.beginObject();
        while (json.hasNext()) {
          members.put(json.nextName(), tree(json));
        }
        json.endObject();
        return members;
      }
      case ARRAY -> {
        List<Object> elements = new ArrayList<>();
        json.beginArray();
        while (json.hasNext()) {
          elements.add(tree(json));
        }
        json.endArray();
        return elements;
      }
      case STRING -> {
        return json.nextString();
      }
      case NUMBER -> {
        return new BigDecimal(json.nextJson());
      }
      case BOOLEAN -> {
        return json.nextBoolean();
      }
      default -> {
        json.nextNull();
        return null;
      }
    }
  }

  /** Random numbers by a new seed, which is printed; {@code DEPONENT_SEED} repeats one. */
  public static Random random() {
    String given = System.getenv("DEPONENT_SEED");
    long seed = given == null ? System.nanoTime() : Long.parseLong(given);
    System.out.println("DEPONENT_SEED=" + seed);
    return new Random(seed);
  }
}
