package deponent.testing;

import java.util.concurrent.atomic.AtomicBoolean;

/**
 * A chain as it was. {@link #close} reverts to it, once; snapshots that were made after it are gone
 * then.
 */
public final class Snapshot implements AutoCloseable {
  private final TestClient chain;
  private final String id;
  private final AtomicBoolean reverted = new AtomicBoolean();

  Snapshot(TestClient chain, String id) {
    this.chain = chain;
    this.id = id;
  }

  /** Its name at the node. */
  public String id() {
    return id;
  }

  /**
   * Reverts to it, if that was not done.
   *
   * @throws IllegalStateException if the node has it no more, since the chain was reverted to an
   *     earlier one
   */
  @Override
  public void close() {
    if (reverted.compareAndSet(false, true) && !chain.revert(id)) {
      throw new IllegalStateException(
          "the node has no snapshot " + id + ": the chain was reverted to an earlier one");
    }
  }

  /** Its name at the node. */
  @Override
  public String toString() {
    return id;
  }
}
