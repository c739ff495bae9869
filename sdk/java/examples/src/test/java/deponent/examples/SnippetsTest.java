package deponent.examples;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import javax.tools.Diagnostic;
import javax.tools.DiagnosticCollector;
import javax.tools.JavaCompiler;
import javax.tools.JavaFileObject;
import javax.tools.SimpleJavaFileObject;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * The snippets of sdk/java/README.md and of Javadoc compile, but for those of modules that examples
 * do not need, and those of contracts, which the tests of the processor compile.
 */
class SnippetsTest {
  private static final Pattern BLOCK = Pattern.compile("```java\n(.*?)```", Pattern.DOTALL);
  private static final Pattern JAVADOC =
      Pattern.compile("<pre>\\{@code\n(.*?)\\}</pre>", Pattern.DOTALL);
  private static final Pattern ELSEWHERE = Pattern.compile("@Contract|Erc20|MeterListener");

  private static final String IMPORTS =
      """
      import deponent.client.*;
      import deponent.client.Update.*;
      import deponent.engine.*;
      import deponent.eth.*;
      import deponent.rpc.*;
      import deponent.testing.*;
      import deponent.wallet.*;
      import java.math.BigInteger;
      import java.nio.ByteBuffer;
      import java.nio.charset.StandardCharsets;
      import java.nio.file.*;
      import java.time.*;
      import java.util.*;
      import java.util.concurrent.*;
      import org.junit.jupiter.api.Test;
      import org.junit.jupiter.api.extension.*;
      import static org.junit.jupiter.api.Assertions.assertEquals;
      """;

  /** What snippets use and do not declare, by type. */
  private static final String NAMES =
      """
      Abi abi;
      Account me;
      Address account, address, ann, friend, inbox, token, verifier;
      AbiEvent first, second, transfer;
      AbiFunction TRANSFER, balanceOf;
      Batch batch;
      BigInteger sum, value;
      BlockHeader header;
      Bytes bytecode, bytes, data, initCode, logData, result;
      Call approve, call, payment, redeem, swap;
      Client eth;
      EngineClient engine;
      Hash hash, parent, parentStateRoot, slot;
      JsonReader json;
      List<Address> holders;
      List<ByteBuffer> prover;
      List<Hash> topics;
      Mnemonic mnemonic;
      NewPayload payload;
      Path file, jwtHex;
      PrivateKey key;
      Provider provider;
      Request<Long> blockNumber, chainId;
      Signer signer;
      String password, phrase;
      TestClient chain;
      Tokens tokens;
      Transaction transaction;
      Wei most, tip;
      long number, tomorrow;
      interface Tokens { String fresh(); }
      abstract void book(Object transfer);
      abstract void unbook(Object transfer);
      abstract void rebuild(long from, long to);
      abstract void log(EthException why);
      abstract void prove(StatelessInput input);
      """;

  /** What they use as another type or alone, by the class of their Javadoc. */
  private static final Map<String, String> OTHERS =
      Map.of(
          "BlockId Call Client Eth Overrides", "Address me;",
          "LogFilter", "Address me; AbiEvent TRANSFER;",
          "Rlp RlpReader Witness", "byte[] bytes;",
          "Blobs", "byte[] data;",
          "JsonWriter", "JsonWriter json;",
          "TestClient", "DevNode node;");

  private static String source(int index, String others, String snippet) {
    String body = snippet.replaceAll("(?m)^import .*\n", "").strip();
    if (!Pattern.compile("[;}]\\s*(//.*)?$").matcher(body).find()) {
      body = "Object value = " + body + ";";
    }
    if (!snippet.contains("@Test")) {
      body = "void run() throws Exception {\n" + others + "\n" + body + "\n}";
    }
    return IMPORTS + "abstract class Snippet" + index + " {\n" + NAMES + body + "\n}\n";
  }

  @Test
  void thoseOfTheReadmeCompile(@TempDir Path folder) throws IOException {
    List<String> sources = new ArrayList<>();
    Matcher block = BLOCK.matcher(Files.readString(Path.of("../README.md")));
    while (block.find()) {
      if (!ELSEWHERE.matcher(block.group(1)).find()) {
        sources.add(source(sources.size(), "", block.group(1)));
      }
    }
    assertEquals(6, sources.size());
    compile(sources, folder);
  }

  @Test
  void thoseOfJavadocCompile(@TempDir Path folder) throws IOException {
    List<String> sources = new ArrayList<>();
    for (String module : List.of("client", "engine", "eth", "rpc", "testing", "wallet")) {
      try (Stream<Path> files =
          Files.list(Path.of("..", module, "src/main/java/deponent", module))) {
        for (Path file : files.filter(path -> path.toString().endsWith(".java")).toList()) {
          String name = file.getFileName().toString().replace(".java", "");
          Matcher block = JAVADOC.matcher(Files.readString(file));
          while (block.find()) {
            String snippet = block.group(1).replaceAll("(?m)^ *\\* ?", "");
            if (!ELSEWHERE.matcher(snippet).find()) {
              sources.add(source(sources.size(), others(name), snippet));
            }
          }
        }
      }
    }
    assertTrue(sources.size() >= 50, sources.size() + " snippets");
    compile(sources, folder);
  }

  private static String others(String name) {
    return OTHERS.entrySet().stream()
        .filter(other -> List.of(other.getKey().split(" ")).contains(name))
        .map(other -> other.getValue().replaceAll("(\\w+);", "$1 = null;"))
        .findFirst()
        .orElse("");
  }

  private static void compile(List<String> sources, Path folder) {
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
