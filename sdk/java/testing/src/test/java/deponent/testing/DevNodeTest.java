package deponent.testing;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import deponent.eth.JsonReader;
import deponent.eth.TransportException;
import deponent.rpc.Params;
import deponent.rpc.Provider;
import deponent.rpc.Request;
import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Nodes that are started, and that end. */
class DevNodeTest {
  @TempDir Path folder;

  private static BigInteger balance(Provider provider, DevNode node, int account) {
    Request<BigInteger> request =
        Request.of(
            "eth_getBalance",
            json -> {
              json.value(node.account(account).address().toString());
              json.value("latest");
            },
            JsonReader::nextBigQuantity);
    return provider.request(request);
  }

  @Test
  void itStartsWithAccountsAndEnds() {
    for (DevNodeBuilder builder : Nodes.builders()) {
      DevNode node = builder.accounts(3).balance(5).chainId(1234).start();
      try (node;
          Provider socket = Nodes.connect(node);
          Provider http = Provider.at(node.httpUrl()).timeout(Nodes.LONG).connect()) {
        assertEquals(1234, socket.request(Nodes.CHAIN));
        assertEquals(1234, http.request(Nodes.CHAIN));
        assertEquals(3, node.accounts().size());
        for (int i = 0; i < 3; i++) {
          assertEquals(
              BigInteger.TEN.pow(18).multiply(BigInteger.valueOf(5)), balance(http, node, i));
        }
        assertTrue(node.isRunning());
      }
      assertFalse(node.isRunning());
      node.close();
      String address = node.url();
      assertThrows(TransportException.class, () -> Provider.at(address).connect());
    }
  }

  @Test
  void accountsAreThoseOfThePhrase() {
    String phrase =
        "abandon abandon abandon abandon abandon abandon abandon abandon abandon "
            + "abandon abandon about";
    for (DevNodeBuilder builder : Nodes.builders()) {
      try (DevNode node = builder.mnemonic(phrase).accounts(1).start();
          Provider provider = Nodes.connect(node)) {
        assertEquals(
            "0x9858EfFD232B4033E47d90003D41EC34EcaEda94", node.account(0).address().toString());
        assertEquals(BigInteger.TEN.pow(22), balance(provider, node, 0));
      }
    }
  }

  @Test
  void blocksComeAtIntervalsOrNotAtAll() {
    for (DevNodeBuilder builder : Nodes.builders()) {
      try (DevNode node = builder.blockTime(Duration.ofSeconds(1)).start();
          Provider provider = Nodes.connect(node)) {
        Nodes.until(() -> provider.request(Nodes.NUMBER) >= 2);
      }
    }
    for (DevNodeBuilder builder : Nodes.builders()) {
      try (DevNode node = builder.noMining().gasLimit(12_345_678).hardfork("prague").start();
          Provider provider = Nodes.connect(node)) {
        assertEquals(0, provider.request(Nodes.NUMBER));
      }
    }
  }

  @Test
  void aForkHasTheStateOfAnotherChain() {
    for (Path program : Nodes.programs()) {
      DevNodeBuilder builder = DevNode.builder().program(program).timeout(Nodes.LONG);
      try (DevNode origin = builder.accounts(2).start();
          Provider source = Nodes.connect(origin)) {
        String key = "0x00000000000000000000000000000000000000aa";
        Request<String> set =
            Request.ofJson(
                "anvil_setBalance",
                json -> {
                  json.value(key);
                  json.value("0x7b");
                });
        source.request(set);
        source.request(Request.ofJson("evm_mine", Params.NONE));
        DevNodeBuilder fork = DevNode.builder().program(program).timeout(Nodes.LONG).accounts(1);
        try (DevNode copy = fork.fork(origin.httpUrl(), 1).start();
            Provider provider = Nodes.connect(copy)) {
          assertEquals(1, provider.request(Nodes.NUMBER));
          assertNotEquals(origin.port(), copy.port());
          Request<Long> balance =
              Request.of(
                  "eth_getBalance",
                  json -> {
                    json.value(key);
                    json.value("latest");
                  },
                  JsonReader::nextQuantity);
          assertEquals(123, provider.request(balance));
        }
      }
    }
  }

  /** Starts a node, says its process ids, and waits to be killed. */
  static final class Victim {
    public static void main(String[] arguments) throws Exception {
      DevNode.builder().program(Path.of(arguments[0])).timeout(Nodes.LONG).start();
      StringBuilder ids = new StringBuilder();
      ProcessHandle.current().descendants().forEach(one -> ids.append(' ').append(one.pid()));
      System.out.println("ids" + ids);
      if (arguments[1].equals("exit")) {
        System.exit(0);
      }
      Thread.sleep(Long.MAX_VALUE);
    }
  }

  @Test
  void itEndsWithTheJvmAlsoIfThatIsKilled() throws Exception {
    for (Path program : Nodes.programs()) {
      for (String end : new String[] {"exit", "kill"}) {
        Process victim = victim(program, end);
        try {
          List<Optional<ProcessHandle>> nodes = nodesOf(victim);
          if (end.equals("kill")) {
            victim.destroyForcibly();
          }
          victim.waitFor();
          for (Optional<ProcessHandle> node : nodes) {
            if (node.isPresent()) {
              node.get().onExit().get(Nodes.LONG.toSeconds(), TimeUnit.SECONDS);
            }
          }
        } finally {
          victim.destroyForcibly();
        }
      }
    }
  }

  private static Process victim(Path program, String end) throws IOException {
    String paths =
        System.getProperty("jdk.module.path", "")
            + File.pathSeparator
            + System.getProperty("java.class.path");
    List<String> classes = new ArrayList<>();
    classes.add(Path.of("target", "test-classes").toAbsolutePath().toString());
    for (String one : paths.split(Pattern.quote(File.pathSeparator))) {
      // An application need not have JUnit.
      if (!one.contains("junit")) {
        classes.add(one);
      }
    }
    List<String> command = new ArrayList<>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    command.addAll(List.of("-cp", String.join(File.pathSeparator, classes)));
    command.addAll(List.of(Victim.class.getName(), program.toString(), end));
    return new ProcessBuilder(command).redirectErrorStream(true).start();
  }

  /** The processes that it says it has started. */
  private static List<Optional<ProcessHandle>> nodesOf(Process victim) throws IOException {
    BufferedReader lines = victim.inputReader(StandardCharsets.UTF_8);
    StringBuilder all = new StringBuilder();
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      if (line.startsWith("ids ")) {
        List<String> ids = List.of(line.substring(4).split(" "));
        assertTrue(ids.size() >= 2, line);
        return ids.stream().map(one -> ProcessHandle.of(Long.parseLong(one))).toList();
      }
      all.append(line).append('\n');
    }
    throw new AssertionError(all);
  }

  private Path script(String name, String text) throws IOException {
    Path script = Files.writeString(folder.resolve(name), "#!/bin/sh\n" + text + "\n");
    assertTrue(script.toFile().setExecutable(true));
    return script;
  }

  @Test
  void aProgramThatEndsOrIsSilentIsAnErrorWithWhatItPrinted() throws Exception {
    DevNodeBuilder ends = DevNode.builder().program(script("a", "echo no such flag: $*; exit 3"));
    IllegalStateException ended = assertThrows(IllegalStateException.class, ends::start);
    assertTrue(
        ended.getMessage().contains("ended at the start:\nno such flag: dev --host"),
        ended.toString());
    DevNodeBuilder silent =
        DevNode.builder()
            .program(script("anvil", "exec sleep 600"))
            .timeout(Duration.ofMillis(200));
    IllegalStateException late = assertThrows(IllegalStateException.class, silent::start);
    assertTrue(
        late.getMessage().endsWith("does not listen after PT0.2S; it printed nothing"),
        late.toString());
    for (DevNodeBuilder builder : Nodes.builders()) {
      DevNodeBuilder wrong = builder.arguments("--no-such-flag");
      IllegalStateException refused = assertThrows(IllegalStateException.class, wrong::start);
      assertTrue(refused.getMessage().contains("--no-such-flag"), refused.toString());
    }
  }

  @Test
  void theLogHasTheLastLinesSinceItListens() throws Exception {
    Path program =
        script(
            "anvil",
            "echo key; echo Listening on 127.0.0.1:1; i=0; "
                + "while [ $i -lt 600 ]; do echo line $i; i=$((i+1)); done; exit 0");
    try (DevNode node = DevNode.builder().program(program).timeout(Nodes.LONG).start()) {
      assertEquals(1, node.port());
      Nodes.until(() -> node.log().contains("line 599"));
      assertEquals(500, node.log().size());
      assertEquals("line 100", node.log().get(0));
    }
  }

  @Test
  void aProgramIsFoundByTheSettingTheVariableOrThePath() throws Exception {
    Path given = script("given", "");
    Path anvil = script("anvil", "");
    Map<String, String> path = Map.of("PATH", "/nowhere:" + folder);
    assertEquals(given, Programs.find(given, path));
    assertEquals(anvil, Programs.find(null, path));
    assertEquals(
        given,
        Programs.find(
            null, Map.of("PATH", folder.toString(), "DEPONENT_BINARY", given.toString())));
    Path deponent = script("deponent", "");
    assertEquals(deponent, Programs.find(null, path));
    assertTrue(Programs.isAnvil(anvil));
    assertFalse(Programs.isAnvil(deponent));
  }

  @Test
  void whatIsMissingIsSaid() throws Exception {
    String none =
        assertThrows(IllegalStateException.class, () -> Programs.find(null, Map.of())).getMessage();
    assertTrue(
        none.startsWith("no program runs a chain for tests: DEPONENT_BINARY is not set"), none);
    Map<String, String> wrong = Map.of("DEPONENT_BINARY", folder.resolve("absent").toString());
    String absent =
        assertThrows(IllegalStateException.class, () -> Programs.find(null, wrong)).getMessage();
    assertEquals("DEPONENT_BINARY: " + folder.resolve("absent") + " does not exist", absent);
    Path text = Files.writeString(folder.resolve("text"), "");
    String plain =
        assertThrows(IllegalStateException.class, () -> Programs.find(text, Map.of())).getMessage();
    assertEquals("the program that was given: " + text + " is no file that can be executed", plain);
  }

  @Test
  void wrongSettingsAreRefused() {
    DevNodeBuilder builder = DevNode.builder();
    assertThrows(IllegalArgumentException.class, () -> builder.accounts(0));
    assertThrows(IllegalArgumentException.class, () -> builder.accounts(1_001));
    assertThrows(IllegalArgumentException.class, () -> builder.balance(0));
    assertThrows(IllegalArgumentException.class, () -> builder.chainId(-1));
    assertThrows(IllegalArgumentException.class, () -> builder.gasLimit(0));
    assertThrows(IllegalArgumentException.class, () -> builder.blockTime(Duration.ZERO));
    assertThrows(IllegalArgumentException.class, () -> builder.timeout(Duration.ZERO));
    assertThrows(IllegalArgumentException.class, () -> builder.mnemonic("test test"));
    assertThrows(IllegalArgumentException.class, () -> builder.fork("http://127.0.0.1:1", -1));
  }

  @Test
  void blockTimesAreSecondsForAnvil() {
    DevNodeBuilder builder = DevNode.builder().blockTime(Duration.ofMillis(1_500));
    assertTrue(builder.command(true).containsAll(List.of("--block-time", "1.5")));
    assertTrue(builder.command(false).containsAll(List.of("dev", "--block-time", "1500ms")));
  }
}
