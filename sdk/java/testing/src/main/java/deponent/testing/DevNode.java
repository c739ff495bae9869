package deponent.testing;

import deponent.wallet.PrivateKey;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A chain for tests: {@code deponent dev} or anvil on a free port of 127.0.0.1. It ends with {@link
 * #close}, and with the JVM, also when that is killed (on Windows not then).
 *
 * <p>With JUnit it is an extension too: it ends after the tests of its class, prints its log when
 * one fails, and is a parameter of tests.
 *
 * <pre>{@code
 * @RegisterExtension static DevNode node = DevNode.start();
 *
 * @Test
 * void aSnapshotIsRevertedTo() {
 *   TestClient chain = node.client();
 *   try (Snapshot start = chain.snapshot()) {
 *     chain.setBalance(friend, Wei.ether("10"));
 *     assertEquals(Wei.ether("10"), chain.eth().balance(friend));
 *   }
 * }
 * }</pre>
 *
 * <p>The program is that of {@link DevNodeBuilder#program}, or of the variable {@code
 * DEPONENT_BINARY}, or {@code deponent} or {@code anvil} of {@code PATH}, the first that is there.
 * Its methods may be called from many threads.
 */
public class DevNode implements AutoCloseable {
  private final DevNodeBuilder settings;
  private final List<PrivateKey> accounts;
  private volatile RunningNode running;
  private @Nullable TestClient client;

  DevNode(DevNodeBuilder settings) {
    this.settings = settings;
    accounts = settings.keys();
    running = settings.run();
  }

  /**
   * Starts a chain with ten accounts of 10,000 ether, which mines a block for each transaction.
   *
   * @throws IllegalStateException if there is no program for it, or it does not start; the message
   *     says what is missing, or what it printed
   */
  public static DevNode start() {
    return builder().start();
  }

  /** Settings of a chain to be started. */
  public static DevNodeBuilder builder() {
    return new DevNodeBuilder();
  }

  /** Its address for WebSocket, {@code ws://127.0.0.1:port}. */
  public String url() {
    return "ws://127.0.0.1:" + port();
  }

  /** Its address for HTTP, {@code http://127.0.0.1:port}. */
  public String httpUrl() {
    return "http://127.0.0.1:" + port();
  }

  /** Its port, one that was free. */
  public int port() {
    return running.port();
  }

  /** The keys of the accounts that have ether at the start. They are known to everyone. */
  public List<PrivateKey> accounts() {
    return accounts;
  }

  /**
   * The key of the account at {@code index}, from 0 on.
   *
   * @throws IndexOutOfBoundsException if there are not so many
   */
  public PrivateKey account(int index) {
    return accounts.get(index);
  }

  /**
   * Steers the chain, and asks it by {@link TestClient#eth}; connected at the first call, and
   * closed with the node.
   *
   * @throws deponent.eth.TransportException if the node was closed
   */
  public synchronized TestClient client() {
    TestClient one = client;
    if (one == null) {
      one = TestClient.connect(url());
      client = one;
    }
    return one;
  }

  /** The last 500 lines that it printed since it listens. */
  public List<String> log() {
    return running.log();
  }

  /** Whether its process runs. */
  public boolean isRunning() {
    return running.isAlive();
  }

  /** Starts it anew where it was closed: a field of a class whose subclasses have the tests. */
  synchronized void runAgain() {
    if (!running.isAlive()) {
      close();
      running = settings.run();
    }
  }

  /** Ends it, and waits for that. */
  @Override
  public synchronized void close() {
    if (client != null) {
      client.close();
      client = null;
    }
    running.stop();
  }

  /** Its address. */
  @Override
  public String toString() {
    return url();
  }
}
