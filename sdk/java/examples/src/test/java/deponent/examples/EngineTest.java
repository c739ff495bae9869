package deponent.examples;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assertions.fail;

import deponent.client.BlockId;
import deponent.client.Client;
import deponent.engine.BuiltPayload;
import deponent.engine.EngineClient;
import deponent.engine.ForkchoiceState;
import deponent.engine.NewPayload;
import deponent.engine.PayloadAttributes;
import deponent.eth.Address;
import deponent.eth.Hash;
import java.io.BufferedReader;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The tenth task, on a node of ours. */
class EngineTest {
  private static final Path GENESIS = Path.of("../../../crates/node/tests/fuzz/genesis.json");

  @TempDir Path folder;

  private Process start(String program) throws IOException {
    String genesis =
        Files.readString(GENESIS)
            .replaceAll("\"(shanghai|cancun|prague|osaka)Time\": [0-9]+", "\"$1Time\": 0")
            .replaceAll("\"amsterdamTime\": [0-9]+,?", "");
    Path chain = Files.writeString(folder.resolve("genesis.json"), genesis);
    List<String> command = new ArrayList<>(List.of(program, "node", "--testing"));
    command.addAll(List.of("--chain", chain.toString(), "--authrpc.port", "0"));
    command.addAll(List.of("--datadir", folder.resolve("d").toString(), "--http.port", "0"));
    return new ProcessBuilder(command).redirectErrorStream(true).start();
  }

  /** The address of the public port, when the node says it. */
  private static String http(Process process) throws IOException {
    Pattern pattern = Pattern.compile(" http=([0-9.:]+)");
    BufferedReader lines = process.inputReader(StandardCharsets.UTF_8);
    StringBuilder all = new StringBuilder();
    String http = "";
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      all.append(line).append('\n');
      Matcher found = pattern.matcher(line);
      http = found.find() ? "http://" + found.group(1) : http;
      if (line.contains(" ipc=")) {
        Thread.startVirtualThread(() -> drain(lines));
        return http;
      }
    }
    throw new IOException("the node said:\n" + all);
  }

  private static void drain(BufferedReader lines) {
    try {
      while (lines.readLine() != null) {
        // A full pipe would stop the node.
      }
    } catch (IOException ended) {
      // The node was stopped.
    }
  }

  @Test
  void aPayloadsVerdictAndItsWitness() throws Exception {
    String program = System.getenv("DEPONENT_BINARY");
    if (program == null) {
      if (System.getenv("CI") != null) {
        fail("CI needs deponent, by DEPONENT_BINARY (sdk/java/README.md)");
      }
      System.out.println("not run: no deponent, by DEPONENT_BINARY (sdk/java/README.md)");
      return;
    }
    Process node = start(program);
    try {
      String http = http(node);
      String socket = "unix:" + folder.resolve("d/deponent.ipc");
      try (Client eth = Client.connect(http);
          EngineClient engine =
              EngineClient.at(socket)
                  .secretFile(folder.resolve("d/jwt.hex"))
                  .timeout(Duration.ofSeconds(120))
                  .connect()) {
        var genesis = eth.block(BlockId.of(0)).orElseThrow();
        NewPayload payload = build(engine, genesis.hash(), genesis.timestamp() + 12);
        List<ByteBuffer> nodes = new ArrayList<>();
        assertTrue(
            PayloadAndWitness.prove(engine, payload, genesis.header().stateRoot(), nodes::add));
        assertTrue(nodes.size() > 0);
        assertEquals(1, payload.payload().blockNumber());
      }
    } finally {
      node.destroy();
      node.waitFor();
    }
  }

  private static NewPayload build(EngineClient engine, Hash parent, long time) {
    PayloadAttributes wanted =
        PayloadAttributes.of(time, Hash.ZERO, Address.ZERO)
            .withdrawals(List.of())
            .parentBeaconBlockRoot(Hash.ZERO);
    var begun = engine.forkchoiceUpdated(ForkchoiceState.of(parent), wanted);
    BuiltPayload built = engine.getPayload(begun.payloadId().orElseThrow());
    return built.toNewPayload(Hash.ZERO);
  }
}
