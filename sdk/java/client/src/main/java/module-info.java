import org.jspecify.annotations.NullMarked;

/** Ethereum's JSON-RPC for applications. */
@NullMarked
module deponent.client {
  requires transitive deponent.eth;
  requires transitive deponent.rpc;
  requires static org.jspecify;

  exports deponent.client;
}
