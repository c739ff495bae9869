import org.jspecify.annotations.NullMarked;

/** Requests and connections as meters of Micrometer. */
@NullMarked
@SuppressWarnings("requires-transitive-automatic")
module deponent.micrometer {
  requires transitive deponent.rpc;
  requires static org.jspecify;
  requires transitive micrometer.core;

  exports deponent.micrometer;
}
