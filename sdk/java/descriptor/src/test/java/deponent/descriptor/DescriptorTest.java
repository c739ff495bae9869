package deponent.descriptor;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import deponent.engine.EngineClient;
import deponent.engine.NewPayload;
import deponent.engine.PayloadWithWitness;
import deponent.engine.StatelessInput;
import deponent.engine.Wire;
import deponent.engine.Witness;
import deponent.eth.EthException;
import deponent.eth.Hash;
import deponent.eth.ProtocolException;
import deponent.eth.TransportException;
import deponent.eth.TransportException.Kind;
import deponent.rpc.Http;
import deponent.rpc.Provider;
import deponent.rpc.Retry;
import deponent.sets.Node;
import java.io.IOException;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Answers as memory of our node, and servers that lie about them. */
class DescriptorTest {
  private static final Duration LONG = Duration.ofSeconds(300);

  private static final int CONTRACTS = 40;

  /** Whether there is something to test. */
  private static boolean isThere() {
    boolean isThere = new LinuxDescriptors().isSupported();
    if (!isThere) {
      System.out.println("not run: answers by descriptor need Linux");
    }
    return isThere;
  }

  /** Mapped files of memory of this process, and open ones. */
  private static long mapped() throws IOException {
    try (Stream<String> lines = Files.lines(Path.of("/proc/self/maps"))) {
      return lines.filter(line -> line.contains("memfd:")).count();
    }
  }

  private static long open() throws IOException {
    try (Stream<Path> files = Files.list(Path.of("/proc/self/fd"))) {
      return files.filter(DescriptorTest::isMemory).count();
    }
  }

  private static boolean isMemory(Path file) {
    try {
      return Files.readSymbolicLink(file).toString().contains("memfd:");
    } catch (IOException closed) {
      return false;
    }
  }

  private static EngineClient client(Node node, Wire wire) {
    return EngineClient.at(node.socket).wire(wire).timeout(LONG).connect();
  }

  @Test
  void answersByDescriptorAreThoseOverTheSocket() throws Exception {
    try (Node node = isThere() ? Node.ours(Codes.genesis(CONTRACTS)) : null) {
      if (node == null) {
        return;
      }
      EngineClient client = EngineClient.at(node.socket).timeout(LONG).connect();
      assertEquals(Wire.DESCRIPTOR, client.wire());
      NewPayload payload = Codes.block(client);
      Hash hash = payload.payload().blockHash();
      List<Witness> kept = new ArrayList<>();
      try (EngineClient copies = client(node, Wire.SSZ)) {
        assertEquals(Wire.SSZ, copies.wire());
        Witness expected = copies.newPayloadWithWitness(payload).witness().orElseThrow();
        assertTrue(expected.contentBytes() > CONTRACTS * Codes.BYTES);
        rounds(client, payload, expected);
        assertTrue(mapped() > 0 && mapped() <= 8, mapped() + " files are mapped");
        for (int held = 0; held < 20; held++) {
          kept.add(client.witness(hash));
        }
        kept.forEach(witness -> assertEquals(expected, witness));
        threads(client, hash, expected);
        client.close();
        // What was received stays.
        kept.forEach(witness -> assertEquals(expected, witness));
      }
      assertTrue(mapped() > 0);
      kept.forEach(Witness::close);
      assertEquals(0, mapped());
      assertEquals(0, open());
    }
    try (Node node = Node.ours(Codes.genesis(CONTRACTS));
        EngineClient port = EngineClient.at(node.engine).wire(Wire.DESCRIPTOR).connect()) {
      assertEquals(Wire.SSZ, port.wire());
    }
  }

  private static void rounds(EngineClient client, NewPayload payload, Witness expected)
      throws Exception {
    Hash hash = payload.payload().blockHash();
    for (int round = 0; round < 30; round++) {
      ByteBuffer view;
      Witness witness = client.witness(hash);
      assertEquals(expected, witness);
      view = witness.codes().get(0);
      assertTrue(view.isReadOnly() && view.isDirect());
      byte first = view.get(0);
      assertEquals(expected.codes().get(0).get(0), first);
      witness.close();
      witness.close();
      assertThrows(IllegalStateException.class, () -> view.get(0));
      assertThrows(IllegalStateException.class, () -> witness.codes().get(0));
      try (PayloadWithWitness answer = client.newPayloadWithWitnessAsync(payload).get()) {
        assertEquals(Optional.of(expected), answer.witness());
      }
      StatelessInput input = client.statelessInput(hash);
      assertEquals(expected, input.witness());
      assertEquals(payload, input.request());
      input.witness().close();
    }
  }

  private static void threads(EngineClient client, Hash hash, Witness expected) throws Exception {
    List<CompletableFuture<Witness>> many = new ArrayList<>();
    for (int call = 0; call < 40; call++) {
      many.add(client.witnessAsync(hash));
    }
    for (CompletableFuture<Witness> one : many) {
      try (Witness witness = one.get()) {
        assertEquals(expected, witness);
      }
    }
  }

  /** A server that sends this answer to each request; it may be none. */
  private static ServerSocketChannel server(Path path, String answer) throws IOException {
    ServerSocketChannel server = ServerSocketChannel.open(StandardProtocolFamily.UNIX);
    server.bind(UnixDomainSocketAddress.of(path));
    Thread.startVirtualThread(
        () -> {
          try {
            while (true) {
              SocketChannel peer = server.accept();
              Thread.startVirtualThread(() -> answer(peer, answer));
            }
          } catch (IOException closed) {
            // The test has ended.
          }
        });
    return server;
  }

  private static void answer(SocketChannel peer, String answer) {
    try (peer) {
      ByteBuffer request = ByteBuffer.allocate(1 << 16);
      peer.read(request);
      ByteBuffer bytes = ByteBuffer.wrap(answer.getBytes(StandardCharsets.ISO_8859_1));
      while (bytes.hasRemaining()) {
        peer.write(bytes);
      }
      while (peer.read(request.clear()) >= 0) {
        continue;
      }
    } catch (IOException gone) {
      // The client went away.
    }
  }

  private static void check(Path path, String answer, Class<? extends EthException> expected)
      throws IOException {
    try (ServerSocketChannel server = server(path, answer);
        Http http = Provider.at("unix:" + path).timeout(LONG).httpByDescriptor().orElseThrow()) {
      assertTrue(server.isOpen());
      assertThrows(expected, () -> http.exchange(Http.Ask.get("x", "/x")));
    } finally {
      Files.delete(path);
    }
  }

  @Test
  void aServerThatLiesIsATypedException(@TempDir Path folder) throws Exception {
    if (!isThere()) {
      return;
    }
    Path path = folder.resolve("s");
    String head = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n";
    check(path, head + "Deponent-Descriptor: 7;length=100\r\n\r\n", ProtocolException.class);
    check(path, head + "Deponent-Descriptor: file;length=9\r\n\r\n", ProtocolException.class);
    check(path, head + "Deponent-Descriptor: 7;length=-1\r\n\r\n", ProtocolException.class);
    check(
        path, head + "Deponent-Descriptor: 7;length=99999999999\r\n\r\n", ProtocolException.class);
    check(path, "\u0001garbage\n\n", ProtocolException.class);
    Http nobody = Provider.at("unix:" + path).retry(Retry.NONE).httpByDescriptor().orElseThrow();
    TransportException none =
        assertThrows(TransportException.class, () -> nobody.exchange(Http.Ask.get("x", "/x")));
    assertEquals(Kind.CONNECT, none.kind());
    nobody.close();
  }

  /** Asks a server for a body of 70,000 bytes, which comes with these files. */
  private static Http.Answer ask(Path path, List<LyingServer.Memory> files) throws IOException {
    String head =
        "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nDeponent-Descriptor: 7;length=70000\r\n\r\n";
    Files.deleteIfExists(path);
    LyingServer.start(path, head, files);
    try (Http http = Provider.at("unix:" + path).timeout(LONG).httpByDescriptor().orElseThrow()) {
      return http.exchange(Http.Ask.get("x", "/x"));
    }
  }

  @Test
  void filesAreMappedIfTheyHaveTheBytesAndKeepThem(@TempDir Path folder) throws Exception {
    if (!isThere()) {
      return;
    }
    Path path = folder.resolve("s");
    LyingServer.Memory whole = new LyingServer.Memory(70_000, true);
    LyingServer.Memory brief = new LyingServer.Memory(69_999, true);
    LyingServer.Memory shrinks = new LyingServer.Memory(70_000, false);
    try (Http.Answer answer = ask(path, List.of(whole, brief, shrinks))) {
      assertEquals(70_000, answer.bytes());
      assertEquals(7, answer.body().get(0).get(69_999));
    }
    for (LyingServer.Memory file : List.of(brief, shrinks)) {
      ProtocolException why =
          assertThrows(ProtocolException.class, () -> ask(path, List.of(file, whole)));
      assertTrue(why.getMessage().contains("by descriptor"), why.getMessage());
    }
    assertEquals(0, mapped());
  }

  @Test
  void whoBlocksGoesOnAtTheDeadlineAndWhenItIsClosed(@TempDir Path folder) throws Exception {
    if (!isThere()) {
      return;
    }
    Path path = folder.resolve("s");
    String head = "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n123";
    try (ServerSocketChannel server = server(path, head)) {
      assertTrue(server.isOpen());
      Duration soon = Duration.ofMillis(300);
      try (Http http = Provider.at("unix:" + path).timeout(soon).httpByDescriptor().orElseThrow()) {
        TransportException late =
            assertThrows(TransportException.class, () -> http.exchange(Http.Ask.get("x", "/x")));
        assertEquals(Kind.TIMEOUT, late.kind());
      }
      Http http = Provider.at("unix:" + path).timeout(LONG).httpByDescriptor().orElseThrow();
      List<CompletableFuture<Http.Answer>> waiting = new ArrayList<>();
      waiting.add(CompletableFuture.supplyAsync(() -> http.exchange(Http.Ask.get("x", "/x"))));
      CompletableFuture<Http.Answer> virtual = new CompletableFuture<>();
      Thread.startVirtualThread(
          () -> {
            try {
              virtual.complete(http.exchange(Http.Ask.get("x", "/x")));
            } catch (RuntimeException failure) {
              virtual.completeExceptionally(failure);
            }
          });
      waiting.add(virtual);
      http.close();
      for (CompletableFuture<Http.Answer> one : waiting) {
        ExecutionException ended = assertThrows(ExecutionException.class, one::get);
        assertInstanceOf(TransportException.class, ended.getCause());
      }
    }
  }
}
