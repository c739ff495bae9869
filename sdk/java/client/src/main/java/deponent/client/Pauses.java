package deponent.client;

import deponent.eth.TransportException;
import deponent.eth.TransportException.Kind;

/** Pauses of a thread. */
final class Pauses {
  private Pauses() {}

  /**
   * Pauses.
   *
   * @throws TransportException if the thread is interrupted
   */
  static void millis(long millis) {
    try {
      Thread.sleep(millis);
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
      throw new TransportException(Kind.TIMEOUT, false, "the thread was interrupted", interrupted);
    }
  }
}
