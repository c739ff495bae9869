package deponent.secp256k1;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import deponent.eth.JsonReader;
import deponent.sets.Sets;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodType;
import java.lang.reflect.Field;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.Test;

/** What the jar tells native images of the functions that are called is so. */
class NativeImageTest {
  private static final Path METADATA =
      Path.of(
          "src/main/resources/META-INF/native-image/io.github.deponent/deponent-secp256k1",
          "reachability-metadata.json");

  private static String name(Class<?> type) {
    return type == MemorySegment.class ? "void*" : "j" + type.getName();
  }

  @Test
  @SuppressWarnings("unchecked")
  void theCallsAreThoseOfTheLibrary() throws Exception {
    Map<String, Object> all =
        (Map<String, Object>) Sets.tree(new JsonReader(Files.readAllBytes(METADATA)));
    Map<String, List<Map<String, Object>>> foreign =
        (Map<String, List<Map<String, Object>>>) all.get("foreign");
    Set<String> told = new HashSet<>();
    for (Map<String, Object> call : foreign.get("downcalls")) {
      told.add(call.get("returnType") + " " + call.get("parameterTypes"));
    }
    Libsecp256k1 library = new Libsecp256k1();
    // The context is made and blinded by functions that are not kept.
    Set<String> called = new HashSet<>(Set.of("void* [jint]", "jint [void*, void*]"));
    for (Field field : Libsecp256k1.class.getDeclaredFields()) {
      if (field.getType() == MethodHandle.class) {
        field.setAccessible(true);
        MethodType type = ((MethodHandle) field.get(library)).type();
        List<String> parameters = type.parameterList().stream().map(NativeImageTest::name).toList();
        called.add(name(type.returnType()) + " " + parameters);
      }
    }
    assertEquals(called, told);
    assertTrue(told.size() == 8, told.toString());
  }
}
