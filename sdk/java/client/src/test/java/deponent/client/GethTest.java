package deponent.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import deponent.eth.Address;
import deponent.eth.Bytes;
import deponent.eth.JsonReader;
import deponent.eth.RevertException;
import deponent.eth.RpcException;
import deponent.eth.Wei;
import deponent.rpc.Params;
import java.io.BufferedReader;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Accounts with geth's chain for development, over its Unix socket, where geth is there. */
class GethTest {
  /** {@code GETH}, on the path, or in {@code ~/go/bin}; null where there is none. */
  private static Path program() {
    List<String> places = new ArrayList<>();
    String named = System.getenv("GETH");
    if (named != null) {
      places.add(named);
    }
    for (String folder : System.getenv("PATH").split(":")) {
      places.add(folder + "/geth");
    }
    places.add(System.getProperty("user.home") + "/go/bin/geth");
    return places.stream().map(Path::of).filter(Files::isExecutable).findFirst().orElse(null);
  }

  private interface With {
    void eth(Client eth) throws Exception;
  }

  private static void geth(Path folder, With test) throws Exception {
    Path program = program();
    if (program == null) {
      System.out.println(
          "not run: no geth. `go install github.com/ethereum/go-ethereum/cmd/geth@v1.17.8`, or"
              + " name it in GETH");
      return;
    }
    // The path of a socket is short.
    Path socket = Files.createTempDirectory("geth").resolve("ipc");
    List<String> command =
        List.of(
            program.toString(),
            "--dev",
            "--datadir",
            folder.toString(),
            "--ipcpath",
            socket.toString(),
            "--port",
            "0",
            "--nodiscover",
            "--authrpc.port",
            "0");
    Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
    try {
      listening(process);
      try (Client eth = Client.connect("unix:" + socket)) {
        test.eth(eth);
      }
    } finally {
      process.destroyForcibly().waitFor();
      Files.deleteIfExists(socket);
      Files.deleteIfExists(socket.getParent());
    }
  }

  private static void listening(Process process) throws IOException {
    BufferedReader lines = process.inputReader(StandardCharsets.UTF_8);
    StringBuilder all = new StringBuilder();
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      all.append(line).append('\n');
      if (line.contains("IPC endpoint opened")) {
        Thread.startVirtualThread(() -> Nodes.drop(lines));
        return;
      }
    }
    throw new IOException("geth said:\n" + all);
  }

  @Test
  void anAccountSendsAndLearnsWhatBecameOfIt(@TempDir Path folder) throws Exception {
    geth(
        folder,
        eth -> {
          JsonReader accounts = new JsonReader(Nodes.ask(eth, "eth_accounts", Params.NONE));
          accounts.beginArray();
          Account rich = eth.account(accounts.nextAddress());
          Account me = eth.account(Nodes.key(0));
          rich.send(Call.to(me.address()).value(Wei.ether("100"))).await(1, Nodes.LONG);
          Reverting contracts = new Reverting(me);
          for (Reverting.Case one : contracts.cases()) {
            RevertException before = assertThrows(RevertException.class, () -> me.send(one.call()));
            assertEquals(one.reason(), before.reason());
            assertEquals(one.data(), before.revertData());
            PendingTransaction failed = me.send(one.call().gasLimit(200_000));
            RevertException after =
                assertThrows(RevertException.class, () -> failed.await(1, Nodes.LONG));
            assertEquals(one.reason(), after.reason());
            assertEquals(one.data(), after.revertData());
          }
          Call cheap = Call.to(Address.ZERO).gasLimit(20_999);
          RpcException refused = assertThrows(RpcException.class, () -> me.send(cheap));
          assertEquals(RpcException.class, refused.getClass());
          manySends(eth, me);
          Bytes stop = Bytes.of("0x00");
          Address code = me.deploy(Till.deployed(stop)).await().contractAddress().orElseThrow();
          assertTrue(me.delegate(code).await(1, Nodes.LONG).succeeded());
          Bytes delegation = Bytes.concat(Bytes.of("0xef0100"), Bytes.of(code.toBytes()));
          assertEquals(delegation, eth.code(me.address()));
          me.delegate(Address.ZERO).await(1, Nodes.LONG);
          assertEquals(Bytes.EMPTY, eth.code(me.address()));
        });
  }

  private static void manySends(Client eth, Account me) {
    long before = eth.transactionCount(me.address());
    List<CompletableFuture<Receipt>> receipts = new ArrayList<>();
    for (int i = 0; i < 200; i++) {
      Call payment = Call.to(Address.ZERO).value(Wei.of(i));
      receipts.add(Account.async(() -> me.send(payment).await(1, Nodes.LONG)));
    }
    long gas = 0;
    for (CompletableFuture<Receipt> receipt : receipts) {
      gas += receipt.join().gasUsed();
    }
    assertEquals(200 * 21_000, gas);
    assertEquals(before + 200, eth.transactionCount(me.address()));
  }
}
