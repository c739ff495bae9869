package deponent.rpc;

import deponent.eth.EthException;
import deponent.eth.TransportException;
import deponent.eth.TransportException.Kind;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Consumer;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/** A request in flight. It ends once, with a value or a failure. */
final class Call<T> {
  private static final VarHandle STATE;

  static {
    try {
      MethodHandles.Lookup lookup = MethodHandles.lookup();
      STATE = lookup.findVarHandle(Call.class, "state", int.class);
      SENT = lookup.findVarHandle(Call.class, "sentOver", Object.class);
    } catch (ReflectiveOperationException impossible) {
      throw new ExceptionInInitializerError(impossible);
    }
  }

  private static final VarHandle SENT;

  private static final int OPEN = 0;
  private static final int ENDING = 1;
  private static final int ENDED = 2;

  final Request<T> request;
  final long begun = Times.now();
  final long deadline;

  /** The future of a caller that does not wait, else null. */
  final @Nullable CallFuture<T> future;

  /** What happens with the value on the reader's thread, before anything else is read. */
  @Nullable Consumer<T> onReader;

  /** Whether it is tried again after a failure, in place of completing the future. */
  @Nullable Predicate<Throwable> again;

  /** The connection that it was sent over, or null before. */
  volatile @Nullable Object sentOver;

  /** Whether its caller waits for it, and completes the future, if it has one. */
  final boolean waited;

  /** Whether it was sent more than once. */
  volatile boolean resent;

  final Thread caller = Thread.currentThread();
  private volatile int state;
  private @Nullable T value;
  private @Nullable Throwable failure;

  /** The place among the calls of a connection, and the id that names it there. */
  int slot = -1;

  long id;

  Call(Request<T> request, long deadline, @Nullable CallFuture<T> future) {
    this(request, deadline, future, future == null);
  }

  /** A call of a batch. */
  Call(Request<T> request, long deadline, @Nullable CallFuture<T> future, boolean waited) {
    this.request = request;
    this.deadline = deadline;
    this.future = future;
    this.waited = waited;
  }

  boolean isOpen() {
    return state == OPEN;
  }

  /** Ends the call; false if it has ended. */
  boolean end(@Nullable T value, @Nullable Throwable failure) {
    if (!STATE.compareAndSet(this, OPEN, ENDING)) {
      return false;
    }
    this.value = value;
    this.failure = failure;
    state = ENDED;
    return true;
  }

  /**
   * Notes the connection that it goes over from now on; false if it does not go over {@code was}.
   */
  boolean moves(@Nullable Object was, @Nullable Object now) {
    return SENT.compareAndSet(this, was, now);
  }

  @Nullable Throwable failure() {
    return failure;
  }

  /** Wakes the caller that waits. */
  void wake() {
    LockSupport.unpark(caller);
  }

  /** Completes the future. */
  @SuppressWarnings("NullAway")
  void deliver() {
    CallFuture<T> to = future;
    if (to != null) {
      Throwable failed = failure;
      if (failed == null) {
        to.complete(value);
      } else if (!isAgain(failed)) {
        to.completeExceptionally(failed);
      }
    }
  }

  private boolean isAgain(Throwable failed) {
    Predicate<Throwable> test = again;
    try {
      return test != null && test.test(failed);
    } catch (RuntimeException | Error other) {
      // What is sent again cannot be made or read.
      return false;
    }
  }

  /** Waits for the end; false if the thread is interrupted before. */
  boolean await() {
    boolean interrupted = false;
    while (state != ENDED) {
      if (Thread.currentThread().isInterrupted()) {
        interrupted = true;
        break;
      }
      LockSupport.park(this);
    }
    return !interrupted;
  }

  /** The value after the end, or the failure, thrown with the caller's stack. */
  T result() {
    Throwable failed = failure;
    if (failed == null) {
      @SuppressWarnings("NullAway")
      T result = value;
      return result;
    }
    if (failed instanceof EthException) {
      failed.fillInStackTrace();
    }
    throw unchecked(failed);
  }

  static RuntimeException unchecked(Throwable failure) {
    if (failure instanceof Error error) {
      throw error;
    }
    return failure instanceof RuntimeException as ? as : new IllegalStateException(failure);
  }

  TransportException late(boolean mayHaveRun) {
    long millis = (deadline - begun) / 1_000_000;
    return new TransportException(
        Kind.TIMEOUT, mayHaveRun, request.method() + ": no answer in " + millis + " ms", null);
  }

  /** The exception for a deadline that passed while there was no connection. */
  TransportException unsent(@Nullable Throwable why) {
    String reason = why == null ? "" : ": " + why.getMessage();
    String message = request.method() + ": there is no connection" + reason;
    return new TransportException(Kind.TIMEOUT, false, message, why);
  }
}
