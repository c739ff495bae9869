package deponent.rpc;

import deponent.eth.TransportException;
import deponent.eth.TransportException.Kind;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReferenceArray;
import org.jspecify.annotations.Nullable;

/**
 * The calls in flight, in slots. An id is a slot and the count of its uses, so that an answer that
 * comes too late meets no other call. A free slot is the permit to send.
 */
final class Calls {
  private final int capacity;
  private final AtomicReferenceArray<@Nullable Call<?>> slots;
  private final Semaphore permits;

  /** How often each slot was used; written by the one who has it. */
  private final int[] uses;

  /** A stack of free slots: for each the one below; its top with a count against ABA. */
  private final int[] below;

  private final AtomicLong top;

  Calls(int capacity) {
    this.capacity = capacity;
    slots = new AtomicReferenceArray<>(capacity);
    permits = new Semaphore(capacity);
    uses = new int[capacity];
    below = new int[capacity];
    for (int i = 0; i < capacity; i++) {
      below[i] = i - 1;
    }
    top = new AtomicLong(capacity - 1);
  }

  int capacity() {
    return capacity;
  }

  int inFlight() {
    return capacity - permits.availablePermits();
  }

  /**
   * Waits for {@code count} slots up to the deadline.
   *
   * @throws TransportException if they do not become free
   */
  void acquire(int count, long deadline) {
    if (permits.tryAcquire(count)) {
      return;
    }
    boolean free;
    try {
      free = permits.tryAcquire(count, deadline - Times.now(), TimeUnit.NANOSECONDS);
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
      throw new TransportException(Kind.TIMEOUT, false, "the thread was interrupted", interrupted);
    }
    if (!free) {
      throw new TransportException(
          Kind.BUSY, false, "all " + capacity + " requests that may be in flight are", null);
    }
  }

  /** Puts a call into a slot, for which there is a permit. */
  void put(Call<?> call) {
    int slot = pop();
    call.slot = slot;
    call.id = (uses[slot]++ & 0x7fff_ffffL) * capacity + slot + 1;
    slots.set(slot, call);
  }

  private int pop() {
    while (true) {
      long was = top.get();
      int slot = (int) was;
      long now = ((was >>> 32) + 1 << 32) | below[slot] & 0xffff_ffffL;
      if (top.compareAndSet(was, now)) {
        return slot;
      }
    }
  }

  /** Gives the slot of a call back; the one who ended it does. */
  void free(Call<?> call) {
    slots.set(call.slot, null);
    while (true) {
      long was = top.get();
      below[call.slot] = (int) was;
      long now = ((was >>> 32) + 1 << 32) | call.slot & 0xffff_ffffL;
      if (top.compareAndSet(was, now)) {
        break;
      }
    }
    permits.release();
  }

  /** The call of an id, or null where it has ended. */
  @Nullable Call<?> of(long id) {
    if (id < 1) {
      return null;
    }
    Call<?> call = slots.get((int) ((id - 1) % capacity));
    return call != null && call.id == id ? call : null;
  }

  /** The call in a slot, or null. */
  @Nullable Call<?> at(int slot) {
    return slots.get(slot);
  }

  /** The only call in flight, or null. */
  @Nullable Call<?> only() {
    Call<?> only = null;
    for (int i = 0; i < capacity; i++) {
      Call<?> one = slots.get(i);
      if (one != null && only != null) {
        return null;
      }
      only = one == null ? only : one;
    }
    return only;
  }
}
