package deponent.examples;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;

/** The snippets of docs/java.md are lines of these examples. */
class DocsTest {
  private static final Path DOCS = Path.of("../../../docs/java.md");
  private static final Pattern BLOCK =
      Pattern.compile("```java\n// (\\w+\\.java)[^\n]*\n(.*?)```", Pattern.DOTALL);

  private static Set<String> lines(String file) throws IOException {
    for (String of : new String[] {"main", "test"}) {
      Path path = Path.of("src", of, "java", "deponent", "examples", file);
      if (Files.exists(path)) {
        return Files.readAllLines(path).stream().map(String::strip).collect(Collectors.toSet());
      }
    }
    throw new IOException("no example is " + file);
  }

  @Test
  void eachLineIsOneOfItsExample() throws IOException {
    Matcher block = BLOCK.matcher(Files.readString(DOCS));
    Set<String> files = new TreeSet<>();
    List<String> missing = new ArrayList<>();
    while (block.find()) {
      Set<String> lines = lines(block.group(1));
      files.add(block.group(1));
      assertEquals(count(block.group(2), '{'), count(block.group(2), '}'), block.group(1));
      block
          .group(2)
          .lines()
          .map(String::strip)
          .filter(line -> !line.isEmpty() && !lines.contains(line) && !endsOne(lines, line))
          .forEach(line -> missing.add(block.group(1) + ": " + line));
    }
    assertEquals(List.of(), missing);
    assertTrue(files.size() >= 10, files.toString());
  }

  private static long count(String snippet, char brace) {
    return snippet.chars().filter(one -> one == brace).count();
  }

  /** An expression may be the end of a line. */
  private static boolean endsOne(Set<String> lines, String snippet) {
    return lines.stream().anyMatch(line -> line.endsWith(snippet));
  }
}
