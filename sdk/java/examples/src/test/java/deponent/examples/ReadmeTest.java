package deponent.examples;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.IOException;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.tools.Diagnostic;
import javax.tools.DiagnosticCollector;
import javax.tools.JavaCompiler;
import javax.tools.JavaFileObject;
import javax.tools.SimpleJavaFileObject;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * The snippets of sdk/java/README.md compile, but for those of modules that examples do not need,
 * and those of contracts, which the tests of the processor compile.
 */
class ReadmeTest {
  private static final Pattern BLOCK = Pattern.compile("```java\n(.*?)```", Pattern.DOTALL);
  private static final Pattern ELSEWHERE = Pattern.compile("@Contract|MeterListener");

  private static final String IMPORTS =
      """
      import deponent.client.*;
      import deponent.engine.*;
      import deponent.eth.*;
      import deponent.rpc.*;
      import deponent.testing.*;
      import deponent.wallet.*;
      import java.nio.ByteBuffer;
      import java.nio.file.Path;
      import java.time.*;
      import java.util.*;
      import org.junit.jupiter.api.Test;
      import org.junit.jupiter.api.extension.RegisterExtension;
      import static org.junit.jupiter.api.Assertions.assertEquals;
      """;

  /** What snippets use and do not declare. */
  private static final String NAMES =
      """
      List<Hash> topics;
      Bytes logData;
      Bytes initCode;
      String phrase;
      Path jwtHex;
      NewPayload payload;
      Hash parentStateRoot;
      Hash slot;
      List<ByteBuffer> prover;
      Address account;
      Address friend;
      Address token;
      List<Address> holders;
      Abi abi;
      AbiEvent transfer;
      AbiFunction balanceOf;
      Call payment;
      Client eth;
      abstract void book(AbiValues transfer);
      abstract void unbook(AbiValues transfer);
      abstract void rebuild(long from, long to);
      """;

  private static List<String> sources(String readme) {
    List<String> sources = new ArrayList<>();
    Matcher block = BLOCK.matcher(readme);
    while (block.find()) {
      String snippet = block.group(1);
      if (ELSEWHERE.matcher(snippet).find()) {
        continue;
      }
      String body = snippet.replaceAll("(?m)^import .*\n", "");
      boolean members = snippet.contains("@Test");
      sources.add(
          IMPORTS
              + ("abstract class Snippet" + sources.size() + " {\n" + NAMES)
              + (members ? body + "}\n" : "void run() throws Exception {\n" + body + "}\n}\n"));
    }
    return sources;
  }

  @Test
  void itsSnippetsCompile(@TempDir Path folder) throws IOException {
    List<String> sources = sources(Files.readString(Path.of("../README.md")));
    assertEquals(6, sources.size());
    List<JavaFileObject> files = new ArrayList<>();
    for (int i = 0; i < sources.size(); i++) {
      String source = sources.get(i);
      URI name = URI.create("memory:///Snippet" + i + ".java");
      files.add(
          new SimpleJavaFileObject(name, JavaFileObject.Kind.SOURCE) {
            @Override
            public CharSequence getCharContent(boolean ignoreEncodingErrors) {
              return source;
            }
          });
    }
    JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
    DiagnosticCollector<JavaFileObject> found = new DiagnosticCollector<>();
    List<String> options = new ArrayList<>(List.of("-proc:none", "-d", folder.toString()));
    options.addAll(List.of("-classpath", System.getProperty("java.class.path")));
    compiler.getTask(null, null, found, options, null, files).call();
    List<String> errors =
        found.getDiagnostics().stream()
            .filter(one -> one.getKind() == Diagnostic.Kind.ERROR)
            .map(one -> one.getMessage(Locale.ROOT) + " at " + line(one))
            .toList();
    assertEquals(List.of(), errors);
  }

  private static String line(Diagnostic<? extends JavaFileObject> of) {
    try {
      CharSequence source = of.getSource().getCharContent(true);
      return source.toString().lines().skip(of.getLineNumber() - 1).findFirst().orElse("");
    } catch (IOException none) {
      return none.toString();
    }
  }
}
