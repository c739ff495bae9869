package deponent.rpc;

import deponent.eth.EthException;
import deponent.eth.JsonReader;
import deponent.eth.JsonWriter;
import deponent.eth.MalformedException;
import deponent.eth.ProtocolException;
import deponent.eth.RpcException;
import deponent.eth.TransportException;
import deponent.eth.TransportException.Kind;
import java.io.EOFException;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReentrantLock;
import java.util.zip.GZIPInputStream;
import org.jspecify.annotations.Nullable;

/** A provider over HTTP/1.1, with a pool of connections. The caller's thread writes and reads. */
final class HttpProvider extends Connected {
  /** Connections at most, and those that are kept while nobody uses them. */
  private static final int CONNECTIONS = 256;

  private static final int IDLE = 64;

  /** A connection that nobody used for so long is not used again; servers close it after 30 s. */
  static final long STALE = 25_000_000_000L;

  /** Bytes of a request, about. */
  private static final int CALL_BYTES = 128;

  /** Bytes of a body that are shown, or read to keep a connection. */
  private static final int SHOWN = 4_096;

  private final Semaphore inFlight;
  private final Semaphore connections = new Semaphore(CONNECTIONS);
  private final ReentrantLock lock = new ReentrantLock();
  private final ArrayDeque<Connection> idle = new ArrayDeque<>();
  private final Set<Connection> open = ConcurrentHashMap.newKeySet();
  private final boolean gzip;
  private volatile boolean closed;

  HttpProvider(Settings settings) {
    super(settings);
    inFlight = new Semaphore(settings.inFlight);
    String host = settings.endpoint.bareHost();
    gzip = !host.equals("localhost") && !host.startsWith("127.") && !host.equals("::1");
  }

  /** A connection, and what reads it. */
  private final class Connection {
    final Guard guard;
    final Sock sock;
    final SockInput in;
    final Body body;
    final JsonReader json;
    boolean used;

    Connection(long deadline) {
      guard = Guard.until(deadline);
      try {
        sock = Sock.open(settings, guard);
      } catch (RuntimeException failure) {
        guard.close();
        throw failure;
      }
      in = new SockInput(sock);
      body = new Body(in, settings.answerBytes);
      json = new JsonReader(body, 1 << 16);
      open.add(this);
      if (closed) {
        close();
      }
    }

    void close() {
      guard.close();
      sock.close();
      open.remove(this);
    }
  }

  @Override
  boolean isClosed() {
    return closed;
  }

  @Override
  void checkThread() {
    if (closed) {
      throw new TransportException(Kind.CLOSED, false, "the provider is closed", null);
    }
  }

  @Override
  void begin(Call<?> call) {
    beginAll(List.of(call), call.deadline, false);
  }

  @Override
  void beginAll(List<Call<?>> calls, long deadline) {
    int most = Math.max(1, settings.inFlight);
    for (int from = 0; from < calls.size(); from += most) {
      try {
        beginAll(calls.subList(from, Math.min(calls.size(), from + most)), deadline, true);
      } catch (EthException failure) {
        if (from == 0) {
          throw failure;
        }
        List<Call<?>> rest = calls.subList(from, calls.size());
        rest.forEach(call -> end(call, null, failure, 0));
        if (!rest.get(0).waited) {
          deliver(rest);
        }
        return;
      }
    }
  }

  private void beginAll(List<Call<?>> calls, long deadline, boolean batch) {
    acquire(inFlight, calls.size(), deadline);
    for (Call<?> call : calls) {
      settings.tell(listener -> listener.requested(call.request.method()));
    }
    if (calls.get(0).waited) {
      run(calls, deadline, batch);
    } else {
      Thread.startVirtualThread(() -> run(calls, deadline, batch));
    }
  }

  private static void acquire(Semaphore permits, int count, long deadline) {
    try {
      if (permits.tryAcquire(count, deadline - Times.now(), TimeUnit.NANOSECONDS)) {
        return;
      }
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
      throw new TransportException(Kind.TIMEOUT, false, "interrupted", interrupted);
    }
    throw new TransportException(Kind.BUSY, false, "too many requests are in flight", null);
  }

  private void run(List<Call<?>> calls, long deadline, boolean batch) {
    try {
      exchange(calls, deadline, batch);
      for (Call<?> call : calls) {
        if (call.isOpen()) {
          String what = call.request.method() + ": the server's answer leaves it out";
          end(call, null, new ProtocolException(what), 0);
        }
      }
    } catch (RuntimeException | Error failure) {
      calls.forEach(call -> end(call, null, failure, 0));
    } finally {
      inFlight.release(calls.size());
    }
    if (calls.get(0).waited) {
      return;
    }
    if (settings.ownCallbacks) {
      // This virtual thread has nothing else to do.
      calls.forEach(Call::deliver);
    } else {
      deliver(calls);
    }
  }

  private void exchange(List<Call<?>> calls, long deadline, boolean batch) {
    JsonWriter json = new JsonWriter(CALL_BYTES * calls.size());
    int written;
    do {
      written = writeAll(calls, batch, json.clear());
    } while (written < 0);
    if (written == 0) {
      return;
    }
    acquire(connections, 1, deadline);
    try {
      boolean repeatable = true;
      for (Call<?> call : calls) {
        repeatable &= call.request.isRepeatable();
      }
      while (!exchanged(take(deadline), json, calls, deadline, repeatable)) {
        // The server had closed a kept connection; the next one is another.
        calls.forEach(call -> call.resent = true);
      }
    } finally {
      connections.release();
    }
  }

  /**
   * Writes the requests of calls that are open, and returns how many; -1 if one could not be
   * written, which is ended then: it must not spoil the others.
   */
  private int writeAll(List<Call<?>> calls, boolean batch, JsonWriter json) {
    int written = 0;
    if (batch) {
      json.beginArray();
    }
    for (int i = 0; i < calls.size(); i++) {
      Call<?> call = calls.get(i);
      if (call.isOpen()) {
        try {
          write(call, i + 1, json);
          written++;
        } catch (RuntimeException wrong) {
          end(call, null, wrong, 0);
          return -1;
        }
      }
    }
    if (batch) {
      json.endArray();
    }
    return written;
  }

  private Connection take(long deadline) {
    while (true) {
      lock.lock();
      Connection kept;
      try {
        kept = idle.pollLast();
      } finally {
        lock.unlock();
      }
      if (kept == null) {
        return new Connection(deadline);
      }
      if (Times.now() - kept.in.lastRead < STALE && !kept.guard.expired()) {
        kept.guard.set(deadline);
        return kept;
      }
      kept.close();
    }
  }

  private void give(Connection connection) {
    connection.guard.set(Times.NEVER);
    connection.used = true;
    lock.lock();
    try {
      if (!closed && !connection.guard.expired() && idle.size() < IDLE) {
        idle.addLast(connection);
        return;
      }
    } finally {
      lock.unlock();
    }
    connection.close();
  }

  /** Sends and reads; false if a kept connection was closed before. */
  private boolean exchanged(
      Connection over, JsonWriter json, List<Call<?>> calls, long deadline, boolean repeatable) {
    boolean began = false;
    boolean keep = false;
    Call<?> first = calls.get(0);
    try {
      if (calls.size() == 1) {
        first.sentOver = over;
      }
      send(over, json);
      Head head = Head.read(over.in);
      began = true;
      over.body.begin(head);
      read(over, head, calls);
      keep = over.body.isWhole() && head.minor() == 1 && !head.has("connection", "close");
      return true;
    } catch (IOException | UncheckedIOException failure) {
      Throwable cause = failure instanceof UncheckedIOException ? failure.getCause() : failure;
      if (cause instanceof Fatal fatal) {
        throw fatal.fault;
      }
      if (Thread.currentThread().isInterrupted()) {
        String what = first.request.method() + ": interrupted";
        throw new TransportException(Kind.TIMEOUT, true, what, cause);
      }
      if (over.guard.expired() || deadline <= Times.now()) {
        throw first.late(true);
      }
      if (over.used && !began && repeatable && !closed) {
        return false;
      }
      String what = first.request.method() + ": the connection was lost: " + cause.getMessage();
      throw new TransportException(Kind.CLOSED, true, what, cause);
    } catch (MalformedException failure) {
      throw Answers.noJson(failure);
    } finally {
      if (keep) {
        give(over);
      } else {
        over.close();
      }
    }
  }

  private void send(Connection over, JsonWriter json) throws IOException {
    StringBuilder head = new StringBuilder(256);
    head.append("POST ").append(settings.endpoint.target()).append(" HTTP/1.1\r\nHost: ");
    head.append(settings.endpoint.authority());
    head.append("\r\nContent-Type: application/json\r\nAccept: application/json\r\n");
    if (gzip) {
      head.append("Accept-Encoding: gzip\r\n");
    }
    settings.headersTo(head);
    head.append("Content-Length: ").append(json.size()).append("\r\n\r\n");
    byte[] bytes = head.toString().getBytes(StandardCharsets.US_ASCII);
    if (json.size() > 1 << 20) {
      over.sock.write(bytes, 0, bytes.length);
      over.sock.write(json.array(), 0, json.size());
      return;
    }
    byte[] all = java.util.Arrays.copyOf(bytes, bytes.length + json.size());
    System.arraycopy(json.array(), 0, all, bytes.length, json.size());
    over.sock.write(all, 0, all.length);
  }

  private void read(Connection over, Head head, List<Call<?>> calls) throws IOException {
    if (head.status() / 100 != 2) {
      refused(over, head, calls);
      return;
    }
    JsonReader json = over.json;
    if (head.has("content-encoding", "gzip")) {
      json =
          new JsonReader(
              new Bounded(new GZIPInputStream(over.body, 1 << 13), settings.answerBytes), 1 << 16);
    }
    if (!json.nextDocument()) {
      throw new EOFException("an empty answer");
    }
    new Reader(json, calls).document();
    if (json.nextDocument()) {
      throw new MalformedException("something is left behind the answer");
    }
    if (json != over.json) {
      // The last chunk, behind what was packed.
      over.body.read(new byte[1], 0, 1);
    }
  }

  /** Some servers put an answer of JSON-RPC behind a status of failure. */
  private void refused(Connection over, Head head, List<Call<?>> calls) throws IOException {
    String text = new String(over.body.readNBytes(SHOWN), StandardCharsets.UTF_8).strip();
    EthException failure = head.failure(settings.endpoint.toString(), text);
    if (failure instanceof ProtocolException && (text.startsWith("{") || text.startsWith("["))) {
      try {
        new Reader(new JsonReader(text), calls).document();
      } catch (EthException other) {
        // The status says what there is to say.
      }
    }
    calls.forEach(call -> end(call, null, failure, 0));
  }

  private final class Reader extends Answers {
    private final List<Call<?>> calls;

    Reader(JsonReader json, List<Call<?>> calls) {
      super(json);
      this.calls = calls;
    }

    @Override
    @Nullable Call<?> call(long id) {
      return id < 1 || id > calls.size() ? null : calls.get((int) id - 1);
    }

    @Override
    <T> void ended(Call<T> call, @Nullable T value, @Nullable Throwable failure, long bytes) {
      end(call, value, failure, bytes);
    }

    @Override
    @Nullable Subscription<?> subscription(String id) {
      return null;
    }

    @Override
    void unknown(String subscription, String value) {
      // There are no subscriptions over HTTP.
    }

    @Override
    void unnamed(RpcException error) {
      calls.forEach(call -> end(call, null, error, 0));
    }
  }

  @Override
  void abandon(Call<?> call, EthException why) {
    end(call, null, why, 0);
    // The others of a batch go on.
    if (call.sentOver instanceof Connection over) {
      over.sock.close();
    }
  }

  /** Ends a call; its future is completed after the exchange. */
  private <T> void end(Call<T> call, @Nullable T value, @Nullable Throwable failure, long bytes) {
    if (!call.end(value, failure)) {
      return;
    }
    tellEnd(call, failure, bytes);
  }

  @Override
  public <T> Subscription<T> subscribe(Request<String> open, Decoder<T> read) {
    throw new UnsupportedOperationException(
        "HTTP has no subscriptions: connect to ws://, wss:// or unix:");
  }

  @Override
  public void close() {
    closed = true;
    open.forEach(Connection::close);
    lock.lock();
    try {
      idle.clear();
    } finally {
      lock.unlock();
    }
  }
}
