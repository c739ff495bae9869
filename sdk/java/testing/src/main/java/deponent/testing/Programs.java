package deponent.testing;

import java.io.File;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/** Finds the program of a node. */
final class Programs {
  /** The variable that names the program. */
  static final String VARIABLE = "DEPONENT_BINARY";

  private Programs() {}

  /**
   * The program that was given, that of {@code DEPONENT_BINARY}, or {@code deponent} or {@code
   * anvil} of {@code PATH}.
   *
   * @throws IllegalStateException if there is none; it says where it was looked for
   */
  static Path find(@Nullable Path given, Map<String, String> environment) {
    if (given != null) {
      return executable(given, "the program that was given");
    }
    String named = environment.get(VARIABLE);
    if (named != null && !named.isBlank()) {
      return executable(Path.of(named), VARIABLE);
    }
    String path = environment.getOrDefault("PATH", "");
    for (String name : new String[] {"deponent", "anvil"}) {
      for (String folder : path.split(Pattern.quote(File.pathSeparator))) {
        for (String ending : new String[] {"", ".exe"}) {
          Path program = Path.of(folder, name + ending);
          if (!folder.isEmpty() && runs(program)) {
            return program;
          }
        }
      }
    }
    throw new IllegalStateException(
        "no program runs a chain for tests: "
            + VARIABLE
            + " is not set, and PATH has neither deponent nor anvil. Set "
            + VARIABLE
            + " to the program of Deponent or of anvil, or name it by DevNode.builder().program(..)"
            + "; anvil comes with Foundry, or as npm's @foundry-rs/anvil");
  }

  private static Path executable(Path program, String by) {
    if (runs(program)) {
      return program;
    }
    String why = Files.exists(program) ? "is no file that can be executed" : "does not exist";
    throw new IllegalStateException(by + ": " + program + " " + why);
  }

  private static boolean runs(Path program) {
    return Files.isRegularFile(program) && Files.isExecutable(program);
  }

  /** Whether it is anvil, by its file's name; else it is Deponent. */
  static boolean isAnvil(Path program) {
    return program.getFileName().toString().startsWith("anvil");
  }
}
