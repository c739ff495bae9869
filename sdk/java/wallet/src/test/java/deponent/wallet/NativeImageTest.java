package deponent.wallet;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;

import deponent.eth.JsonReader;
import deponent.sets.Sets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** What the jar tells native images about is there, and is all that is looked up by name. */
class NativeImageTest {
  private static final Path METADATA =
      Path.of(
          "src/main/resources/META-INF/native-image/io.github.deponent/deponent-wallet",
          "reachability-metadata.json");

  @SuppressWarnings("unchecked")
  private static List<Map<String, Object>> part(String name) throws Exception {
    Map<String, Object> all =
        (Map<String, Object>) Sets.tree(new JsonReader(Files.readAllBytes(METADATA)));
    return (List<Map<String, Object>>) all.get(name);
  }

  private static Class<?> type(String name) throws ClassNotFoundException {
    return switch (name) {
      case "int" -> int.class;
      case "byte[]" -> byte[].class;
      default -> Class.forName(name);
    };
  }

  @Test
  @SuppressWarnings("unchecked")
  void typesAndTheirConstructorsAreThere() throws Exception {
    List<String> types = new ArrayList<>();
    for (Map<String, Object> one : part("reflection")) {
      Class<?> type = type((String) one.get("type"));
      types.add(type.getSimpleName());
      for (Object method : (List<?>) one.getOrDefault("methods", List.of())) {
        List<String> parameters =
            (List<String>) ((Map<String, Object>) method).get("parameterTypes");
        List<Class<?>> of = new ArrayList<>();
        for (String name : parameters) {
          of.add(type(name));
        }
        assertNotNull(type.getConstructor(of.toArray(new Class<?>[0])));
      }
    }
    assertEquals(List.of("CKZG4844JNI", "CellsAndProofs", "CKZGException"), types);
  }

  @Test
  void resourcesAreThere() throws Exception {
    List<Object> globs = part("resources").stream().map(one -> one.get("glob")).toList();
    assertEquals(
        List.of(
            "deponent/wallet/words/*.txt",
            "deponent/wallet/trusted_setup.bin",
            "ethereum/ckzg4844/lib/**"),
        globs);
    for (WordList list : WordList.values()) {
      assertNotNull(WordList.class.getResource("words/" + list.name().toLowerCase() + ".txt"));
    }
    assertNotNull(Kzg.class.getResource("trusted_setup.bin"));
  }
}
