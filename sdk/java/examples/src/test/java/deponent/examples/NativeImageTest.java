package deponent.examples;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.File;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** An example as a native image of GraalVM, where {@code native-image} is on the path. */
class NativeImageTest {
  private static final String PHRASE =
      "abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon"
          + " about";

  private static String printed(Path in, List<String> command) throws Exception {
    Process process =
        new ProcessBuilder(command).directory(in.toFile()).redirectErrorStream(true).start();
    String printed =
        new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8).strip();
    assertEquals(0, process.waitFor(), printed);
    return printed;
  }

  @Test
  void theImageDoesWhatTheJvmDoes(@TempDir Path folder) throws Exception {
    String expected = Offline.run(PHRASE, "Nick.ETH");
    assertTrue(
        expected.startsWith("0x9858EfFD232B4033E47d90003D41EC34EcaEda94 nick.eth 0x"), expected);
    Path builder =
        Stream.of(System.getenv("PATH").split(File.pathSeparator))
            .map(path -> Path.of(path, "native-image"))
            .filter(Files::isExecutable)
            .findFirst()
            .orElse(null);
    if (builder == null) {
      System.out.println("not run: no native-image on PATH, which GraalVM has");
      return;
    }
    printed(
        folder,
        List.of(
            builder.toString(),
            "--no-fallback",
            "-cp",
            System.getProperty("java.class.path"),
            "-o",
            "offline",
            Offline.class.getName()));
    String image = folder.resolve("offline").toString();
    assertEquals(expected, printed(folder, List.of(image, PHRASE, "Nick.ETH")));
  }
}
