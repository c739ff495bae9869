package deponent.testing;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import deponent.rpc.Provider;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.api.io.TempDir;
import org.junit.platform.engine.discovery.DiscoverySelectors;
import org.junit.platform.launcher.Launcher;
import org.junit.platform.launcher.LauncherDiscoveryRequest;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;
import org.junit.platform.launcher.listeners.SummaryGeneratingListener;
import org.junit.platform.launcher.listeners.TestExecutionSummary;

/** Nodes as extensions of JUnit: classes that JUnit runs within these tests. */
class JUnitTest {
  private static final List<DevNode> SEEN = new ArrayList<>();
  private static Path printer = Path.of("");

  private static void saw(DevNode node) {
    assertTrue(node.isRunning());
    try (Provider provider = Nodes.connect(node)) {
      assertEquals(31337, provider.request(Nodes.CHAIN));
    }
    SEEN.add(node);
  }

  private static DevNode started() {
    return Nodes.builders().get(0).start();
  }

  private static TestExecutionSummary run(Class<?>... classes) {
    SEEN.clear();
    Launcher launcher = LauncherFactory.create();
    SummaryGeneratingListener listener = new SummaryGeneratingListener();
    LauncherDiscoveryRequest request =
        LauncherDiscoveryRequestBuilder.request()
            .selectors(List.of(classes).stream().map(DiscoverySelectors::selectClass).toList())
            .build();
    launcher.execute(request, listener);
    return listener.getSummary();
  }

  private static void passes(int tests, Class<?>... classes) {
    TestExecutionSummary summary = run(classes);
    summary.getFailures().forEach(failure -> failure.getException().printStackTrace());
    assertEquals(0, summary.getTotalFailureCount());
    assertEquals(tests, summary.getTestsSucceededCount());
    assertEquals(tests, SEEN.size());
    SEEN.forEach(node -> assertFalse(node.isRunning()));
  }

  static class OfTheClass {
    @RegisterExtension static final DevNode NODE = started();

    @Test
    void first() {
      saw(NODE);
    }

    @Test
    void second(DevNode parameter, TestClient chain) {
      assertSame(NODE, parameter);
      assertSame(NODE.client(), chain);
      assertEquals(0, chain.eth().blockNumber());
      saw(NODE);
    }

    @Nested
    class Inner {
      @Test
      void within(DevNode parameter) {
        assertSame(NODE, parameter);
        saw(NODE);
      }
    }

    @Nested
    class Other {
      @Test
      void within() {
        saw(NODE);
      }
    }
  }

  @Test
  void aNodeOfAClassEndsAfterItsTestsAndThoseOfNestedClasses() {
    if (Nodes.programs().isEmpty()) {
      return;
    }
    passes(4, OfTheClass.class);
    assertSame(SEEN.get(0), SEEN.get(3));
  }

  static class OfTheTest {
    @RegisterExtension final DevNode node = started();

    @Test
    void first() {
      saw(node);
    }

    @Test
    void second() {
      saw(node);
    }
  }

  @Test
  void aNodeOfAnInstanceEndsAfterItsTest() {
    if (Nodes.programs().isEmpty()) {
      return;
    }
    passes(2, OfTheTest.class);
    assertNotSame(SEEN.get(0), SEEN.get(1));
  }

  abstract static class Base {
    @RegisterExtension static final DevNode NODE = started();

    @Test
    void itRuns() {
      saw(NODE);
    }
  }

  static class OneOfTwo extends Base {}

  static class TwoOfTwo extends Base {}

  @Test
  void aNodeOfABaseClassRunsForEachSubclass() {
    if (Nodes.programs().isEmpty()) {
      return;
    }
    passes(2, OneOfTwo.class, TwoOfTwo.class);
  }

  @ExtendWith(DevNodeExtension.class)
  static class ByParameter {
    private static @Nullable DevNode first;

    @Test
    void one(DevNode node) {
      shared(node);
    }

    @Test
    void two(DevNode node) {
      shared(node);
    }

    private static void shared(DevNode node) {
      assertTrue(first == null || first == node);
      first = node;
      saw(node);
    }
  }

  @Test
  void aNodeIsAParameter() {
    if (System.getenv(Programs.VARIABLE) == null) {
      return;
    }
    passes(2, ByParameter.class);
  }

  static class Fails {
    @RegisterExtension static final DevNode NODE = DevNode.builder().program(printer).start();

    @Test
    void always() {
      Nodes.until(() -> NODE.log().contains("a block"));
      throw new AssertionError("on purpose");
    }
  }

  @Test
  void theLogIsPrintedWhenATestFails(@TempDir Path folder) throws IOException {
    String prints = "echo a key; echo Listening on 127.0.0.1:1; echo a block";
    printer = Files.writeString(folder.resolve("node"), "#!/bin/sh\n" + prints + "\n");
    assertTrue(printer.toFile().setExecutable(true));
    PrintStream before = System.err;
    ByteArrayOutputStream printed = new ByteArrayOutputStream();
    System.setErr(new PrintStream(printed, true, StandardCharsets.UTF_8));
    try {
      assertEquals(1, run(Fails.class).getTestsFailedCount());
    } finally {
      System.setErr(before);
    }
    String text = printed.toString(StandardCharsets.UTF_8);
    String log = "always() failed. The log of ws://127.0.0.1:1:%na block%n".formatted();
    assertTrue(text.endsWith(log), text);
  }
}
