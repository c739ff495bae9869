package deponent.examples;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assertions.fail;

import deponent.testing.DevNode;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HexFormat;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/**
 * The quickstart of docs/java.md in an empty project of Maven, with the jars that this build has
 * made: it runs after them, in {@code mvn verify}.
 */
class QuickstartTest {
  private static final Path SDK = Path.of("..").toAbsolutePath().normalize();
  private static final Path GROUP = Path.of("io", "github", "deponent");
  private static final String VERSION = System.getProperty("deponent.version", "");

  private final Path folder = Path.of("target", "quickstart").toAbsolutePath();

  /** Deletes links, and not what they lead to. */
  @BeforeEach
  @AfterEach
  void clear() throws IOException {
    if (Files.isDirectory(folder)) {
      try (Stream<Path> all = Files.walk(folder)) {
        for (Path one : all.sorted(Comparator.reverseOrder()).toList()) {
          Files.delete(one);
        }
      }
    }
  }

  private static String block(String docs, String language) {
    Matcher block = Pattern.compile("```" + language + "\n(.*?)```", Pattern.DOTALL).matcher(docs);
    assertTrue(block.find(), "docs/java.md has no " + language);
    return block.group(1);
  }

  /** A repository with what Maven's own has, but for this SDK, which is that of this build. */
  private Path repository(Path real) throws IOException {
    Path repository = folder.resolve("repository");
    Path from = real;
    Path to = repository;
    for (Path next : GROUP) {
      Files.createDirectories(to);
      try (Stream<Path> all = Files.list(from)) {
        for (Path one : all.filter(path -> !path.endsWith(next)).toList()) {
          Files.createSymbolicLink(to.resolve(one.getFileName()), one);
        }
      }
      from = from.resolve(next);
      to = to.resolve(next);
      if (!Files.isDirectory(from)) {
        break;
      }
    }
    Path group = repository.resolve(GROUP);
    put(group, "deponent-parent", SDK.resolve("pom.xml"), "pom");
    for (String module : new String[] {"bom", "eth", "rpc", "client", "wallet"}) {
      String artifact = "deponent-" + module;
      put(group, artifact, SDK.resolve(module).resolve("pom.xml"), "pom");
      if (!module.equals("bom")) {
        Path target = SDK.resolve(module).resolve("target");
        put(group, artifact, target.resolve(artifact + "-" + VERSION + ".jar"), "jar");
      }
    }
    return repository;
  }

  private static void put(Path group, String artifact, Path file, String kind) throws IOException {
    Path to = group.resolve(artifact).resolve(VERSION);
    Files.createDirectories(to);
    Path name = to.resolve(artifact + "-" + VERSION + "." + kind);
    Files.copy(file, name, StandardCopyOption.REPLACE_EXISTING);
  }

  @Test
  void itRunsInAnEmptyProject() throws Exception {
    if (System.getenv("DEPONENT_BINARY") == null) {
      if (System.getenv("CI") != null) {
        fail("CI needs deponent, by DEPONENT_BINARY (sdk/java/README.md)");
      }
      System.out.println("not run: no deponent, by DEPONENT_BINARY (sdk/java/README.md)");
      return;
    }
    String docs = Files.readString(SDK.resolve("../../docs/java.md"));
    String program = block(docs, "java");
    assertTrue(program.lines().count() <= 15, program);
    Path project = Files.createDirectories(folder.resolve("project/src/main/java"));
    Files.writeString(project.resolve("App.java"), program);
    project = folder.resolve("project");
    Files.writeString(project.resolve("pom.xml"), block(docs, "xml"));
    Matcher command = Pattern.compile("mvn (-q compile \\S+ -Dexec.mainClass=App)").matcher(docs);
    assertTrue(command.find());
    try (DevNode node = DevNode.start()) {
      List<String> maven = new ArrayList<>(List.of("mvn", "-B", "-ntp"));
      maven.addAll(List.of(command.group(1).split(" ")));
      maven.add("-Dmaven.repo.local=" + repository(Path.of(System.getProperty("maven.repo"))));
      maven.add("-Dexec.args=" + node.url() + " 0x" + hex(node.account(0).toBytes()));
      Process process =
          new ProcessBuilder(maven).directory(project.toFile()).redirectErrorStream(true).start();
      String printed = new String(process.getInputStream().readAllBytes());
      assertEquals(0, process.waitFor(), printed);
      assertTrue(printed.contains("block 1: 0.5"), printed);
    }
  }

  private static String hex(byte[] bytes) {
    return HexFormat.of().formatHex(bytes);
  }
}
