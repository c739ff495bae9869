package deponent.rpc;

import deponent.eth.JsonWriter;
import java.io.IOException;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.security.SecureRandom;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/**
 * What is to be written to a connection. Who adds something tries to become the writer, who writes
 * all that was added at once; no lock is held.
 */
final class Outbox {
  static final int TEXT = 1;
  static final int CLOSE = 8;
  static final int PING = 9;
  static final int PONG = 10;

  private static final VarHandle LONGS =
      MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);

  /** Pongs in the queue at most, for a peer that sends pings and does not read. */
  private static final int MOST_PONGS = 1_024;

  private static final int BUFFER = 1 << 16;
  private static final SecureRandom RANDOM = new SecureRandom();

  private final Sock sock;
  private final boolean framed;
  private final Queue<Message> queue = new ConcurrentLinkedQueue<>();
  private final AtomicBoolean writing = new AtomicBoolean();

  /** Pongs in the queue, and the payload of the last ping for which there was no room in it. */
  private final AtomicInteger pongs = new AtomicInteger();

  private final AtomicReference<byte @Nullable []> lastPing = new AtomicReference<>();

  /** Whether a thread is about to write. */
  private final AtomicBoolean soon = new AtomicBoolean();

  /** When a write began, or 0 while none is under way. */
  volatile long writingSince;

  // The writer's.
  private final byte[] out = new byte[BUFFER];
  private int size;
  private final byte[] keys = new byte[4096];
  private int key = keys.length;

  private record Message(int opcode, byte[] bytes, int length) {}

  Outbox(Sock sock, boolean framed) {
    this.sock = sock;
    this.framed = framed;
  }

  /** Adds a text of JSON, whose writer is not used any more. */
  void add(JsonWriter json) {
    queue.add(new Message(TEXT, json.array(), json.size()));
  }

  /** Writes what was added, if nobody else does. */
  void flush() {
    if (Thread.currentThread().isInterrupted()) {
      // Java closes the socket of a thread that is interrupted while it writes.
      flushSoon();
      return;
    }
    while ((!queue.isEmpty() || lastPing.get() != null) && writing.compareAndSet(false, true)) {
      try {
        drain();
      } catch (IOException failure) {
        // The reader learns of it.
        sock.close();
        queue.clear();
        lastPing.set(null);
      } finally {
        writingSince = 0;
        writing.set(false);
      }
    }
  }

  /** Writes what was added on another thread, which gathers what is added until then. */
  void flushSoon() {
    if (soon.compareAndSet(false, true)) {
      Thread.startVirtualThread(
          () -> {
            soon.set(false);
            flush();
          });
    }
  }

  /**
   * Adds a control frame, and lets another thread write it. Of many pings that wait for an answer
   * the last one gets it (RFC 6455, section 5.5.3).
   */
  void control(int opcode, byte[] payload) {
    if (framed && opcode == PONG && pongs.get() >= MOST_PONGS) {
      lastPing.set(payload);
      flushSoon();
    } else if (framed) {
      if (opcode == PONG) {
        pongs.incrementAndGet();
      }
      queue.add(new Message(opcode, payload, payload.length));
      flushSoon();
    }
  }

  /**
   * Says good-bye, or lets the one who is writing do it. It may block until the socket is closed.
   */
  void farewell(int code) {
    if (framed) {
      queue.add(new Message(CLOSE, new byte[] {(byte) (code >> 8), (byte) code}, 2));
      flush();
    }
  }

  private void drain() throws IOException {
    for (Message one = queue.poll(); one != null; one = queue.poll()) {
      if (one.opcode == PONG) {
        pongs.decrementAndGet();
      }
      put(one);
    }
    byte[] last = lastPing.getAndSet(null);
    if (last != null) {
      put(new Message(PONG, last, last.length));
    }
    send();
  }

  private void put(Message message) throws IOException {
    if (framed) {
      frame(message);
      return;
    }
    int from = 0;
    while (from < message.length) {
      int some = Math.min(room(1), message.length - from);
      System.arraycopy(message.bytes, from, out, size, some);
      size += some;
      from += some;
    }
    room(1);
    out[size++] = '\n';
  }

  /** A frame of RFC 6455, masked. */
  private void frame(Message message) throws IOException {
    room(14);
    int length = message.length;
    out[size++] = (byte) (0x80 | message.opcode);
    if (length < 126) {
      out[size++] = (byte) (0x80 | length);
    } else if (length < 1 << 16) {
      out[size++] = (byte) (0x80 | 126);
      out[size++] = (byte) (length >> 8);
      out[size++] = (byte) length;
    } else {
      out[size++] = (byte) (0x80 | 127);
      for (int shift = 56; shift >= 0; shift -= 8) {
        out[size++] = (byte) ((long) length >> shift);
      }
    }
    if (key == keys.length) {
      RANDOM.nextBytes(keys);
      key = 0;
    }
    System.arraycopy(keys, key, out, size, 4);
    size += 4;
    for (int from = 0; from < length; ) {
      // Parts are a multiple of the key's length, so that it begins anew with each.
      int some = Math.min(room(8) & ~7, length - from);
      mask(message.bytes, from, some);
      from += some;
    }
    key += 4;
  }

  private void mask(byte[] bytes, int from, int length) {
    long four = 0;
    for (int i = 3; i >= 0; i--) {
      four = four << 8 | keys[key + i] & 0xff;
    }
    long eight = four << 32 | four;
    int i = 0;
    for (; i + 8 <= length; i += 8) {
      LONGS.set(out, size + i, (long) LONGS.get(bytes, from + i) ^ eight);
    }
    for (; i < length; i++) {
      out[size + i] = (byte) (bytes[from + i] ^ keys[key + (i & 3)]);
    }
    size += length;
  }

  /** The room that is left; what is written is sent if it is less than {@code least}. */
  private int room(int least) throws IOException {
    if (out.length - size < least) {
      send();
    }
    return out.length - size;
  }

  private void send() throws IOException {
    if (size > 0) {
      writingSince = Math.max(1, Times.now());
      sock.write(out, 0, size);
      size = 0;
    }
  }
}
