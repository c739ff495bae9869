import org.jspecify.annotations.NullMarked;

/** A chain for tests: {@code deponent dev} or anvil, started, steered and stopped. */
@NullMarked
module deponent.testing {
  requires transitive deponent.client;
  requires transitive deponent.wallet;
  requires static org.jspecify;
  requires static transitive org.junit.jupiter.api;

  exports deponent.testing;
}
