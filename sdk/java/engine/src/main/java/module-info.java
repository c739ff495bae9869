import org.jspecify.annotations.NullMarked;

/** The Engine API with witnesses: payloads, witnesses, stateless inputs. */
@NullMarked
module deponent.engine {
  requires transitive deponent.rpc;
  requires static org.jspecify;

  exports deponent.engine;
}
