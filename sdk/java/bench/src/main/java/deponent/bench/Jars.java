package deponent.bench;

import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.net.MalformedURLException;
import java.net.URISyntaxException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import javax.tools.JavaCompiler;
import javax.tools.ToolProvider;
import org.jspecify.annotations.Nullable;

/**
 * Brane out of jars. It is on no public repository, so what calls it is compiled here, against the
 * jars in the folder that {@code DEPONENT_BRANE} names.
 */
final class Jars {
  private static final String ADAPTER = "BraneAdapter";
  private static @Nullable Brane brane;

  private Jars() {}

  /** Whether there is a folder of jars. */
  static boolean present() {
    String folder = System.getenv("DEPONENT_BRANE");
    return folder != null && !folder.isEmpty();
  }

  /**
   * Brane.
   *
   * @throws IllegalStateException if the jars are not those of a Brane that has what is called
   */
  static synchronized Brane brane() {
    if (brane == null) {
      try {
        brane = loaded(jars());
      } catch (IOException unread) {
        throw new UncheckedIOException(unread);
      } catch (ReflectiveOperationException | LinkageError other) {
        throw new IllegalStateException("another Brane in DEPONENT_BRANE: " + other, other);
      }
    }
    return brane;
  }

  private static List<Path> jars() throws IOException {
    Path folder = Path.of(System.getenv("DEPONENT_BRANE"));
    try (Stream<Path> files = Files.list(folder)) {
      List<Path> jars = files.filter(file -> file.toString().endsWith(".jar")).sorted().toList();
      if (jars.isEmpty()) {
        throw new IllegalStateException("DEPONENT_BRANE=" + folder + " has no jars");
      }
      return jars;
    }
  }

  private static Brane loaded(List<Path> jars) throws IOException, ReflectiveOperationException {
    Path folder = Files.createTempDirectory("brane");
    Path source = folder.resolve(ADAPTER + ".java");
    try (InputStream in = Jars.class.getResourceAsStream(ADAPTER + ".java")) {
      if (in == null) {
        throw new IllegalStateException("no " + ADAPTER + ".java beside the classes");
      }
      Files.copy(in, source);
    }
    compile(source, folder, jars);
    URLClassLoader loader = new URLClassLoader(urls(folder, jars), new OnlyBench());
    return (Brane) loader.loadClass(ADAPTER).getConstructor().newInstance();
  }

  private static URL[] urls(Path folder, List<Path> jars) throws MalformedURLException {
    List<URL> urls = new ArrayList<>();
    urls.add(folder.toUri().toURL());
    for (Path jar : jars) {
      urls.add(jar.toUri().toURL());
    }
    return urls.toArray(URL[]::new);
  }

  private static void compile(Path source, Path into, List<Path> jars) throws IOException {
    JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
    if (compiler == null) {
      throw new IllegalStateException("a JDK is needed, which compiles what calls Brane");
    }
    StringBuilder path = new StringBuilder(own());
    jars.forEach(jar -> path.append(File.pathSeparatorChar).append(jar));
    ByteArrayOutputStream said = new ByteArrayOutputStream();
    String[] options = {"-nowarn", "-proc:none", "-cp", path.toString(), "-d", into.toString()};
    List<String> all = new ArrayList<>(List.of(options));
    all.add(source.toString());
    if (compiler.run(null, said, said, all.toArray(String[]::new)) != 0) {
      String text = said.toString(StandardCharsets.UTF_8);
      throw new IllegalStateException("another Brane in DEPONENT_BRANE:\n" + text);
    }
  }

  /** Where the classes of this package are. */
  private static String own() {
    try {
      return Path.of(Jars.class.getProtectionDomain().getCodeSource().getLocation().toURI())
          .toString();
    } catch (URISyntaxException no) {
      throw new IllegalStateException(no);
    }
  }

  /** Classes of Java and of this package: Brane has other versions of libraries that web3j has. */
  private static final class OnlyBench extends ClassLoader {
    OnlyBench() {
      super(ClassLoader.getPlatformClassLoader());
    }

    @Override
    protected Class<?> findClass(String name) throws ClassNotFoundException {
      if (name.startsWith("deponent.bench.")) {
        return Class.forName(name, true, Jars.class.getClassLoader());
      }
      throw new ClassNotFoundException(name);
    }
  }
}
