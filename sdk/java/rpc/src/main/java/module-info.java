import org.jspecify.annotations.NullMarked;

/** JSON-RPC: requests, their answers, and who sends them. */
@NullMarked
@SuppressWarnings("module") // descriptor is built later
module deponent.rpc {
  requires transitive deponent.eth;
  requires static jdk.net;
  requires static org.jspecify;

  exports deponent.rpc;
  exports deponent.rpc.internal to
      deponent.descriptor;

  uses deponent.rpc.internal.Descriptors;
}
