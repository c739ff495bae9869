import org.jspecify.annotations.NullMarked;

/** JSON-RPC: requests, their answers, and who sends them. */
@NullMarked
@SuppressWarnings("module") // The modules that see the internals are built later.
module deponent.rpc {
  requires transitive deponent.eth;
  requires static jdk.net;
  requires static transitive org.jspecify;

  exports deponent.rpc;
  exports deponent.rpc.internal to
      deponent.client,
      deponent.engine;
}
