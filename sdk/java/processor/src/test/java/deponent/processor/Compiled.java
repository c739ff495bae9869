package deponent.processor;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import javax.annotation.processing.Processor;
import javax.tools.Diagnostic;
import javax.tools.DiagnosticCollector;
import javax.tools.FileObject;
import javax.tools.ForwardingJavaFileManager;
import javax.tools.JavaCompiler;
import javax.tools.JavaFileManager;
import javax.tools.JavaFileObject;
import javax.tools.SimpleJavaFileObject;
import javax.tools.StandardJavaFileManager;
import javax.tools.ToolProvider;

/** Sources that were compiled in memory, with the processor. */
final class Compiled {
  final List<Diagnostic<? extends JavaFileObject>> diagnostics;
  private final Map<String, Output> outputs;

  private Compiled(
      List<Diagnostic<? extends JavaFileObject>> diagnostics, Map<String, Output> outputs) {
    this.diagnostics = diagnostics;
    this.outputs = outputs;
  }

  /** Compiles sources by the names of their classes; warnings count. */
  static Compiled of(Map<String, String> sources, String... moreOptions) {
    return of(List.of(new ContractProcessor()), sources, moreOptions);
  }

  /** The same, with these processors. */
  static Compiled of(
      List<Processor> processors, Map<String, String> sources, String... moreOptions) {
    JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
    DiagnosticCollector<JavaFileObject> diagnostics = new DiagnosticCollector<>();
    List<String> options = new ArrayList<>(List.of("--release", "21"));
    if (!sources.containsKey("module-info")) {
      options.addAll(List.of("-classpath", libraries()));
    }
    options.addAll(List.of("-Xlint:all,-path", "-Xdoclint:all,-missing"));
    options.addAll(List.of(moreOptions));
    List<Input> inputs = new ArrayList<>();
    sources.forEach((name, text) -> inputs.add(new Input(name, text)));
    Map<String, Output> outputs = new HashMap<>();
    try (StandardJavaFileManager files = compiler.getStandardFileManager(diagnostics, null, null)) {
      JavaCompiler.CompilationTask task =
          compiler.getTask(null, new Memory(files, outputs), diagnostics, options, null, inputs);
      task.setProcessors(processors);
      task.call();
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
    return new Compiled(diagnostics.getDiagnostics(), outputs);
  }

  private static String libraries() {
    return String.join(
        System.getProperty("path.separator"),
        Stream.of("jdk.module.path", "java.class.path")
            .map(System::getProperty)
            .filter(path -> path != null && !path.isEmpty())
            .toList());
  }

  /** A loader of what was compiled, where there were no messages. */
  ClassLoader loader() {
    assertEquals(List.of(), diagnostics);
    return new ClassLoader(Compiled.class.getClassLoader()) {
      @Override
      protected Class<?> findClass(String name) throws ClassNotFoundException {
        Output found = outputs.get(name);
        if (found == null) {
          throw new ClassNotFoundException(name);
        }
        byte[] bytes = found.bytes.toByteArray();
        return defineClass(name, bytes, 0, bytes.length);
      }
    };
  }

  /** A source that was written. */
  String source(String name) {
    return outputs.get(name + ".java").bytes.toString(StandardCharsets.UTF_8);
  }

  private static final class Input extends SimpleJavaFileObject {
    private final String text;

    Input(String name, String text) {
      super(URI.create("memory:///" + name.replace('.', '/') + ".java"), Kind.SOURCE);
      this.text = text;
    }

    @Override
    public CharSequence getCharContent(boolean ignoreEncodingErrors) {
      return text;
    }
  }

  private static final class Output extends SimpleJavaFileObject {
    private final ByteArrayOutputStream bytes = new ByteArrayOutputStream();

    Output(String name, Kind kind) {
      super(URI.create("memory:///" + name.replace('.', '/') + kind.extension), kind);
    }

    @Override
    public OutputStream openOutputStream() {
      return bytes;
    }

    @Override
    public CharSequence getCharContent(boolean ignoreEncodingErrors) {
      return bytes.toString(StandardCharsets.UTF_8);
    }
  }

  private static final class Memory extends ForwardingJavaFileManager<JavaFileManager> {
    private final Map<String, Output> outputs;

    Memory(JavaFileManager files, Map<String, Output> outputs) {
      super(files);
      this.outputs = outputs;
    }

    @Override
    public JavaFileObject getJavaFileForOutput(
        Location location, String name, JavaFileObject.Kind kind, FileObject sibling) {
      Output output = new Output(name, kind);
      outputs.put(kind == JavaFileObject.Kind.SOURCE ? name + ".java" : name, output);
      return output;
    }
  }
}
