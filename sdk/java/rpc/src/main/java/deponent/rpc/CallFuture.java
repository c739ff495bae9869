package deponent.rpc;

import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;

/** A future that tells when it is cancelled, so that its call's place is given back. */
final class CallFuture<T> extends CompletableFuture<T> {
  private volatile @Nullable Runnable cancelled;

  /** Sets what runs at cancellation. */
  void onCancel(Runnable action) {
    cancelled = action;
    if (isCancelled()) {
      action.run();
    }
  }

  @Override
  public boolean cancel(boolean mayInterrupt) {
    boolean done = super.cancel(mayInterrupt);
    Runnable action = cancelled;
    if (done && action != null) {
      action.run();
    }
    return done;
  }
}
