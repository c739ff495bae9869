import org.jspecify.annotations.NullMarked;

/** JSON-RPC: requests, their answers, and who sends them. */
@NullMarked
module deponent.rpc {
  requires transitive deponent.eth;
  requires static jdk.net;
  requires static org.jspecify;

  exports deponent.rpc;
}
