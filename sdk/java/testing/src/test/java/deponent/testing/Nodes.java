package deponent.testing;

import static org.junit.jupiter.api.Assertions.fail;

import deponent.eth.JsonReader;
import deponent.rpc.Params;
import deponent.rpc.Provider;
import deponent.rpc.Request;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;

/** The programs of the tests: that of {@code DEPONENT_BINARY}, and anvil of DEPONENT_TOOLS. */
final class Nodes {
  static final Duration LONG = Duration.ofSeconds(120);

  static final Request<Long> CHAIN =
      Request.of("eth_chainId", Params.NONE, JsonReader::nextQuantity);

  static final Request<Long> NUMBER =
      Request.of("eth_blockNumber", Params.NONE, JsonReader::nextQuantity);

  private Nodes() {}

  static List<Path> programs() {
    List<Path> programs = new ArrayList<>();
    add(programs, "deponent", "DEPONENT_BINARY", "");
    add(programs, "anvil", "DEPONENT_TOOLS", "node_modules/.bin/anvil");
    return programs;
  }

  private static void add(List<Path> to, String name, String variable, String below) {
    String folder = System.getenv(variable);
    Path program = folder == null ? null : Path.of(folder).resolve(below);
    if (program != null && Files.isExecutable(program)) {
      to.add(program);
      return;
    }
    if (System.getenv("CI") != null) {
      fail("CI needs " + name + ", by " + variable + " (sdk/java/README.md)");
    }
    System.out.println("not run: no " + name + ", by " + variable + " (sdk/java/README.md)");
  }

  /** Settings for each program that is there. */
  static List<DevNodeBuilder> builders() {
    return programs().stream().map(one -> DevNode.builder().program(one).timeout(LONG)).toList();
  }

  static Provider connect(DevNode node) {
    return Provider.at(node.url()).timeout(LONG).connect();
  }

  /** Waits until it holds. */
  static void until(BooleanSupplier holds) {
    long begin = System.nanoTime();
    while (!holds.getAsBoolean()) {
      if (System.nanoTime() - begin > LONG.toNanos()) {
        fail("it does not hold after " + LONG);
      }
      LockSupport.parkNanos(1_000_000);
    }
  }
}
