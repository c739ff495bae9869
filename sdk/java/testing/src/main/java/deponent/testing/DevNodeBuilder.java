package deponent.testing;

import deponent.wallet.Mnemonic;
import deponent.wallet.PrivateKey;
import java.math.BigDecimal;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * Settings of a {@link DevNode}. It belongs to one thread.
 *
 * <pre>{@code
 * DevNode fork = DevNode.builder().fork("https://eth.example/KEY", 23_000_000).start();
 * DevNode slow = DevNode.builder().blockTime(Duration.ofSeconds(2)).accounts(3).start();
 * }</pre>
 */
public final class DevNodeBuilder {
  /** The phrase of the accounts of anvil, hardhat and {@code deponent dev}. */
  private static final String PHRASE =
      "test test test test test test test test test test test junk";

  private final List<String> arguments = new ArrayList<>();
  private String phrase = PHRASE;
  private int accounts = 10;
  private Duration timeout = Duration.ofSeconds(60);
  private @Nullable Duration blockTime;
  private @Nullable Path program;

  DevNodeBuilder() {}

  private DevNodeBuilder with(String... some) {
    arguments.addAll(List.of(some));
    return this;
  }

  /**
   * Runs this program. It is taken for anvil if its file's name begins so, else for Deponent.
   *
   * @param program the file, as an absolute or relative path
   */
  public DevNodeBuilder program(Path program) {
    this.program = program.toAbsolutePath();
    return this;
  }

  /**
   * The chain's id; 31337, or that of the endpoint of a fork.
   *
   * @throws IllegalArgumentException if it is not positive
   */
  public DevNodeBuilder chainId(long id) {
    return with("--chain-id", positive("a chain's id", id));
  }

  /**
   * The number of accounts with ether; 10.
   *
   * @throws IllegalArgumentException if it is not from 1 to 1,000
   */
  public DevNodeBuilder accounts(int number) {
    if (number < 1 || number > 1_000) {
      throw new IllegalArgumentException("there are from 1 to 1000 accounts, not " + number);
    }
    accounts = number;
    return this;
  }

  /**
   * The ether of each account; 10,000.
   *
   * @throws IllegalArgumentException if it is not positive
   */
  public DevNodeBuilder balance(long ether) {
    return with("--balance", positive("a balance", ether));
  }

  /**
   * The phrase of which the accounts are derived, at {@code m/44'/60'/0'/0/index}.
   *
   * @throws IllegalArgumentException if it is no phrase of BIP-39
   */
  public DevNodeBuilder mnemonic(String phrase) {
    try (Mnemonic checked = Mnemonic.of(phrase)) {
      this.phrase = checked.phrase();
    }
    return this;
  }

  /**
   * Mines a block after each such time, and not one for each transaction.
   *
   * @throws IllegalArgumentException if it is not positive
   */
  public DevNodeBuilder blockTime(Duration time) {
    if (time.isNegative() || time.isZero()) {
      throw new IllegalArgumentException("a block time is positive, not " + time);
    }
    blockTime = time;
    return this;
  }

  /** Mines no block by itself, but where the test asks for one. */
  public DevNodeBuilder noMining() {
    return with("--no-mining");
  }

  /**
   * The gas limit of blocks; 30,000,000.
   *
   * @throws IllegalArgumentException if it is not positive
   */
  public DevNodeBuilder gasLimit(long gas) {
    return with("--gas-limit", positive("a gas limit", gas));
  }

  /** The rules of the first block, by the name of a fork such as {@code prague}. */
  public DevNodeBuilder hardfork(String fork) {
    return with("--hardfork", fork);
  }

  /** Begins with the newest block of another chain, whose state is read from {@code endpoint}. */
  public DevNodeBuilder fork(String endpoint) {
    return with("--fork-url", Objects.requireNonNull(endpoint));
  }

  /**
   * Begins with a block of another chain, whose state is read from {@code endpoint}.
   *
   * @throws IllegalArgumentException if the block's number is negative
   */
  public DevNodeBuilder fork(String endpoint, long block) {
    if (block < 0) {
      throw new IllegalArgumentException("a block's number is not negative: " + block);
    }
    return fork(endpoint).with("--fork-block-number", Long.toString(block));
  }

  /** Gives the program further arguments, as they are. */
  public DevNodeBuilder arguments(String... more) {
    return with(more);
  }

  /**
   * How long it may take until it listens; 60 s.
   *
   * @throws IllegalArgumentException if it is not positive
   */
  public DevNodeBuilder timeout(Duration timeout) {
    if (timeout.isNegative() || timeout.isZero()) {
      throw new IllegalArgumentException("a timeout is positive, not " + timeout);
    }
    this.timeout = timeout;
    return this;
  }

  private static String positive(String what, long value) {
    if (value <= 0) {
      throw new IllegalArgumentException(what + " is positive, not " + value);
    }
    return Long.toString(value);
  }

  /**
   * Starts the chain.
   *
   * @throws IllegalStateException if there is no program for it, or it does not start; the message
   *     says what is missing, or what it printed
   */
  public DevNode start() {
    DevNodeBuilder settings = copy();
    try {
      return JUnit.node(settings);
    } catch (NoClassDefFoundError noJUnit) {
      return new DevNode(settings);
    }
  }

  private DevNodeBuilder copy() {
    DevNodeBuilder copy = new DevNodeBuilder();
    copy.arguments.addAll(arguments);
    copy.phrase = phrase;
    copy.accounts = accounts;
    copy.timeout = timeout;
    copy.blockTime = blockTime;
    copy.program = program;
    return copy;
  }

  List<PrivateKey> keys() {
    List<PrivateKey> keys = new ArrayList<>();
    try (Mnemonic mnemonic = Mnemonic.of(phrase)) {
      for (int i = 0; i < accounts; i++) {
        keys.add(mnemonic.key(i));
      }
    }
    return List.copyOf(keys);
  }

  RunningNode run() {
    Path found = Programs.find(program, System.getenv());
    return RunningNode.start(found, command(Programs.isAnvil(found)), timeout);
  }

  /** The arguments of the program. */
  List<String> command(boolean anvil) {
    List<String> command = new ArrayList<>();
    if (!anvil) {
      command.add("dev");
    }
    command.addAll(List.of("--host", "127.0.0.1", "--port", "0"));
    command.addAll(List.of("--accounts", Integer.toString(accounts)));
    if (!phrase.equals(PHRASE)) {
      command.addAll(List.of("--mnemonic", phrase));
    }
    if (blockTime != null) {
      // anvil counts in seconds.
      BigDecimal seconds = BigDecimal.valueOf(blockTime.toMillis(), 3).stripTrailingZeros();
      String time = anvil ? seconds.toPlainString() : blockTime.toMillis() + "ms";
      command.addAll(List.of("--block-time", time));
    }
    command.addAll(arguments);
    return command;
  }
}
