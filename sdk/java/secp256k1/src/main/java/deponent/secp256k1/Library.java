package deponent.secp256k1;

import java.io.IOException;
import java.io.InputStream;
import java.lang.foreign.Arena;
import java.lang.foreign.SymbolLookup;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.Locale;

/**
 * The library in ACINQ's jars, which is copied to a file to be loaded. That for Windows shows none
 * of its functions.
 */
final class Library {
  private static final String FOLDER = "fr/acinq/secp256k1/jni/native/";

  private Library() {}

  @SuppressWarnings("restricted")
  static SymbolLookup load() {
    String resource = resource(System.getProperty("os.name"), System.getProperty("os.arch"));
    try (InputStream in = Library.class.getClassLoader().getResourceAsStream(resource)) {
      if (in == null) {
        throw new UnsatisfiedLinkError("there is no " + resource);
      }
      String name = resource.substring(resource.lastIndexOf('/') + 1);
      Path folder = Files.createTempDirectory("deponent-secp256k1");
      Path file = folder.resolve(name);
      Files.copy(in, file, StandardCopyOption.REPLACE_EXISTING);
      try {
        return SymbolLookup.libraryLookup(file, Arena.global());
      } catch (IllegalArgumentException no) {
        UnsatisfiedLinkError error = new UnsatisfiedLinkError(file + " does not load");
        error.initCause(no);
        throw error;
      } finally {
        delete(file);
        delete(folder);
      }
    } catch (IOException no) {
      UnsatisfiedLinkError error = new UnsatisfiedLinkError("no file for " + resource);
      error.initCause(no);
      throw error;
    }
  }

  /** A loaded file can be deleted; where it cannot, it is when the process ends. */
  private static void delete(Path path) {
    if (!path.toFile().delete()) {
      path.toFile().deleteOnExit();
    }
  }

  /** The name of the library for a system and a processor, as ACINQ's loader makes it. */
  static String resource(String system, String processor) {
    String os = system.toLowerCase(Locale.ROOT);
    boolean arm = processor.equals("aarch64") || processor.equals("arm64");
    String machine = arm ? "aarch64" : "x86_64";
    if (os.startsWith("mac")) {
      return FOLDER + "darwin/libsecp256k1-jni.dylib";
    }
    return FOLDER + "linux-" + machine + "/libsecp256k1-jni.so";
  }
}
