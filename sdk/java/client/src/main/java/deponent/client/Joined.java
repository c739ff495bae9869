package deponent.client;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;

/** Waits for futures, and throws what they failed with. */
final class Joined {
  private Joined() {}

  static <T> T of(CompletableFuture<T> future) {
    try {
      return future.join();
    } catch (CompletionException failed) {
      if (failed.getCause() instanceof RuntimeException cause) {
        throw cause;
      }
      throw failed;
    }
  }
}
