package deponent.rpc;

import deponent.eth.EthException;
import deponent.eth.ProtocolException;
import deponent.eth.TransportException;
import deponent.eth.TransportException.Kind;
import deponent.rpc.Listener.Outcome;
import deponent.rpc.internal.Descriptors;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.ReentrantLock;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * A server of HTTP/1.1 that is asked for bytes: for interfaces that are no JSON-RPC, over TCP, TLS
 * or a Unix socket. The caller's thread writes and reads; connections are kept.
 *
 * <pre>{@code
 * try (Http http = Provider.at("http://127.0.0.1:8551").http()) {
 *   Http.Answer answer = http.exchange(Http.Ask.get("identity", "/engine/v1/identity"));
 * }
 * }</pre>
 */
public final class Http implements AutoCloseable {
  /** Connections at most, and those that are kept while nobody uses them. */
  private static final int CONNECTIONS = 256;

  private static final int IDLE = 16;

  /** Bytes of each buffer of a body but the last; a peer that lies costs no more memory. */
  private static final int PIECE = 1 << 26;

  /** Bytes from which on a body is in memory outside of the heap. */
  private static final int DIRECT = 1 << 16;

  /** Bytes of a body that a message shows. */
  private static final int SHOWN = 4_096;

  /** The header that asks for memory of the server, and that names the file in the answer. */
  private static final String DESCRIPTOR = "deponent-descriptor";

  private static final Pattern FILE = Pattern.compile("([0-9]{1,18});length=([0-9]{1,18})");

  private final Settings settings;
  private final Semaphore permits;
  private final ReentrantLock lock = new ReentrantLock();
  private final ArrayDeque<Connection> idle = new ArrayDeque<>();
  private final Set<Connection> open = ConcurrentHashMap.newKeySet();
  private volatile boolean closed;

  private final @Nullable Descriptors descriptors;

  /** Runs calls of virtual threads, which must not block in native code. */
  private final ExecutorService platform =
      Executors.newCachedThreadPool(
          Thread.ofPlatform().daemon().name("deponent-http-", 0).factory());

  Http(Settings settings, @Nullable Descriptors descriptors) {
    this.settings = settings;
    this.descriptors = descriptors;
    permits = new Semaphore(Math.min(CONNECTIONS, settings.inFlight));
  }

  /**
   * A request.
   *
   * @param name what messages and the {@link Listener} call it
   * @param method GET or POST
   * @param target the path, with its query
   * @param headers each as {@code Name: value}, beside those of the builder
   * @param body what is sent; null where nothing is
   * @param answerBytes bytes of the answer's body at most
   * @param timeout the time for it, with all tries; the builder's where it is empty
   * @param repeatable whether it may be sent again after a connection broke
   */
  public record Ask(
      String name,
      String method,
      String target,
      List<String> headers,
      byte @Nullable [] body,
      long answerBytes,
      Optional<Duration> timeout,
      boolean repeatable) {
    /** Checks the texts. */
    public Ask {
      headers = List.copyOf(headers);
      if (!method.matches("[A-Z]+") || !target.startsWith("/") || target.contains(" ")) {
        throw new IllegalArgumentException("no method and path: " + method + " " + target);
      }
      ProviderBuilder.checked(target);
      headers.forEach(ProviderBuilder::checked);
    }

    /** A GET without headers, whose answer has 4 MiB at most. */
    public static Ask get(String name, String target) {
      return new Ask(name, "GET", target, List.of(), null, 1 << 22, Optional.empty(), true);
    }
  }

  /**
   * An answer, which was read whole. It is closed by who asked: memory is given back then, and its
   * buffers are read no more. Without the module {@code deponent-descriptor} that does nothing.
   */
  public static final class Answer implements AutoCloseable {
    private final Head head;
    private final String from;
    private final List<ByteBuffer> body;
    private final AtomicReference<@Nullable Runnable> release;

    private Answer(Head head, String from, List<ByteBuffer> body, @Nullable Runnable release) {
      this.head = head;
      this.from = from;
      this.body = body;
      this.release = new AtomicReference<>(release);
    }

    /** Gives the body's memory back, if it is used again. */
    @Override
    public void close() {
      Runnable once = release.getAndSet(null);
      if (once != null) {
        once.run();
      }
    }

    /** The status, such as 200. */
    public int status() {
      return head.status();
    }

    /** A header by its name, in any case; values of several are joined by commas. */
    public Optional<String> header(String name) {
      return Optional.ofNullable(head.header(name.toLowerCase(Locale.ROOT)));
    }

    /**
     * The body, in buffers of one length, a power of two, but for the last. Those of 64 KiB and
     * more are outside of the heap, and were read into without a copy.
     */
    public List<ByteBuffer> body() {
      return body.stream().map(ByteBuffer::duplicate).toList();
    }

    /** The bytes of the body. */
    public long bytes() {
      return body.stream().mapToLong(ByteBuffer::remaining).sum();
    }

    /**
     * A copy of the body's beginning.
     *
     * @param most bytes of it at most
     */
    public byte[] copy(int most) {
      byte[] bytes = new byte[(int) Math.min(most, bytes())];
      int filled = 0;
      for (ByteBuffer piece : body()) {
        int length = Math.min(piece.remaining(), bytes.length - filled);
        piece.get(bytes, filled, length);
        filled += length;
      }
      return bytes;
    }

    /**
     * The exception for a status that is no success, with what the body says: {@link
     * TransportException} where the server refuses the token (401, 403), is busy (429, 503) or a
     * gateway has no answer (502, 504); else {@link ProtocolException}.
     */
    public EthException failure() {
      return head.failure(from, new String(copy(SHOWN), StandardCharsets.UTF_8).strip());
    }
  }

  private final class Connection {
    final Guard guard;
    final Sock sock;
    final SockInput in;
    final Body body;
    boolean used;

    /** Files of the server that are read no more, for the next request to say so. */
    final Queue<Long> released = new ConcurrentLinkedQueue<>();

    Connection(long deadline) {
      guard = Guard.until(deadline);
      Descriptors by = descriptors;
      try {
        sock = by == null ? Sock.direct(settings, guard) : Passing.open(by, settings, guard);
      } catch (RuntimeException failure) {
        guard.close();
        throw failure;
      }
      in = new SockInput(sock);
      body = new Body(in, settings.answerBytes);
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

  /**
   * Asks, and waits for the answer, whatever its status.
   *
   * @throws TransportException without an answer
   * @throws ProtocolException if the answer is no HTTP, or too long
   */
  public Answer exchange(Ask ask) {
    long begun = Times.now();
    long nanos = ask.timeout().map(Times::nanos).orElse(settings.timeoutNanos);
    long deadline = Times.after(nanos);
    settings.tell(listener -> listener.requested(ask.name()));
    Outcome outcome = Outcome.FAILED;
    long bytes = 0;
    try {
      acquire(deadline);
      boolean handOver = descriptors != null && Thread.currentThread().isVirtual();
      Answer answer = handOver ? onPlatform(ask, deadline) : exchange(ask, deadline);
      outcome = answer.status() / 100 == 2 ? Outcome.RESULT : Outcome.ERROR;
      bytes = answer.bytes();
      return answer;
    } catch (TransportException failure) {
      if (failure.kind() == Kind.TIMEOUT) {
        outcome = Outcome.TIMEOUT;
      }
      throw failure;
    } finally {
      Outcome ended = outcome;
      long received = bytes;
      long took = Times.now() - begun;
      settings.tell(listener -> listener.answered(ask.name(), took, received, ended));
    }
  }

  private Answer onPlatform(Ask ask, long deadline) {
    CompletableFuture<Answer> answer = new CompletableFuture<>();
    try {
      platform.execute(
          () -> {
            try {
              Answer found = exchange(ask, deadline);
              if (!answer.complete(found)) {
                found.close();
              }
            } catch (RuntimeException | Error failure) {
              answer.completeExceptionally(failure);
            }
          });
      return answer.get();
    } catch (RejectedExecutionException shut) {
      permits.release();
      throw new TransportException(Kind.CLOSED, false, ask.name() + ": it is closed", shut);
    } catch (InterruptedException interrupted) {
      answer.cancel(false);
      Thread.currentThread().interrupt();
      throw new TransportException(Kind.TIMEOUT, true, ask.name() + ": interrupted", interrupted);
    } catch (ExecutionException failed) {
      Throwable failure = failed.getCause();
      if (failure instanceof EthException) {
        failure.fillInStackTrace();
      }
      throw Call.unchecked(failure);
    }
  }

  private void acquire(long deadline) {
    try {
      if (permits.tryAcquire(deadline - Times.now(), TimeUnit.NANOSECONDS)) {
        return;
      }
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
      throw new TransportException(Kind.TIMEOUT, false, "interrupted", interrupted);
    }
    throw new TransportException(Kind.BUSY, false, "too many requests are in flight", null);
  }

  private Answer exchange(Ask ask, long deadline) {
    try {
      for (int tried = 1; ; tried++) {
        try {
          return exchangeOnce(ask, deadline);
        } catch (TransportException failure) {
          boolean lost = failure.kind() == Kind.CLOSED || failure.kind() == Kind.CONNECT;
          if (!lost || !ask.repeatable() || closed || tried >= settings.retry.tries()) {
            throw failure;
          }
          long pause = settings.retry.pauseNanos(tried);
          if (pause >= deadline - Times.now() || !Rate.pause(pause)) {
            throw failure;
          }
        }
      }
    } finally {
      permits.release();
    }
  }

  private Answer exchangeOnce(Ask ask, long deadline) {
    while (true) {
      if (closed) {
        throw new TransportException(Kind.CLOSED, false, ask.name() + ": it is closed", null);
      }
      Connection over = take(deadline);
      Answer answer = exchanged(over, ask, deadline);
      if (answer != null) {
        return answer;
      }
      // The server had closed a kept connection; the next one is another.
    }
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
      if (Times.now() - kept.in.lastRead < HttpProvider.STALE && !kept.guard.expired()) {
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

  /** Sends and reads; null if a kept connection was closed before. */
  private @Nullable Answer exchanged(Connection over, Ask ask, long deadline) {
    boolean began = false;
    boolean keep = false;
    try {
      send(over, ask);
      Head head = Head.read(over.in);
      began = true;
      over.body.longest(ask.answerBytes());
      over.body.begin(head);
      Answer answer = answer(over, head, ask.answerBytes());
      keep = over.body.isWhole() && head.minor() == 1 && !head.has("connection", "close");
      return answer;
    } catch (IOException failure) {
      if (failure instanceof Fatal fatal) {
        throw fatal.fault;
      }
      if (Thread.currentThread().isInterrupted()) {
        throw new TransportException(Kind.TIMEOUT, true, ask.name() + ": interrupted", failure);
      }
      if (over.guard.expired() || deadline <= Times.now()) {
        String what = ask.name() + ": no answer before the deadline";
        throw new TransportException(Kind.TIMEOUT, true, what, failure);
      }
      if (over.used && !began && ask.repeatable() && !closed) {
        return null;
      }
      String what = ask.name() + ": the connection was lost: " + failure.getMessage();
      throw new TransportException(Kind.CLOSED, true, what, failure);
    } finally {
      if (keep) {
        give(over);
      } else {
        over.close();
      }
    }
  }

  private Answer answer(Connection over, Head head, long most) throws IOException {
    String from = settings.endpoint.toString();
    String named = head.header(DESCRIPTOR);
    if (named == null || !(over.sock instanceof Passing passing)) {
      return read(over.body, head, from);
    }
    if (over.body.read(new byte[1], 0, 1) >= 0) {
      throw Head.wrong("a body beside the one by descriptor");
    }
    Matcher matcher = FILE.matcher(named);
    if (!matcher.matches()) {
      throw Head.wrong("no file and its length: " + Head.quoted(named));
    }
    long id = Long.parseLong(matcher.group(1));
    long length = Long.parseLong(matcher.group(2));
    if (length > most) {
      throw Bounded.tooLong(most);
    }
    Descriptors.Mapping mapping;
    try {
      mapping = passing.connection.map(length);
    } catch (IOException failure) {
      throw Head.wrong("a body by descriptor: " + failure.getMessage());
    }
    return new Answer(
        head,
        from,
        mapping.buffers(),
        () -> {
          mapping.close();
          over.released.add(id);
        });
  }

  /** Asks for memory of the server, and gives back what is read no more. */
  private static void askForDescriptor(Connection over, StringBuilder head) throws IOException {
    if (!(over.sock instanceof Passing passing)) {
      return;
    }
    passing.connection.expect();
    head.append("Deponent-Descriptor: 1\r\n");
    List<String> ids = new ArrayList<>();
    for (Long id = over.released.poll(); id != null; id = over.released.poll()) {
      ids.add(id.toString());
    }
    if (!ids.isEmpty()) {
      head.append("Deponent-Release: ").append(String.join(",", ids)).append("\r\n");
    }
  }

  private void send(Connection over, Ask ask) throws IOException {
    StringBuilder head = new StringBuilder(256);
    head.append(ask.method()).append(' ').append(ask.target()).append(" HTTP/1.1\r\nHost: ");
    boolean unix = settings.endpoint.path() != null;
    head.append(unix ? "localhost" : settings.endpoint.authority()).append("\r\n");
    settings.headersTo(head);
    ask.headers().forEach(header -> head.append(header).append("\r\n"));
    askForDescriptor(over, head);
    byte[] body = ask.body();
    if (body != null) {
      head.append("Content-Length: ").append(body.length).append("\r\n");
    }
    byte[] bytes = head.append("\r\n").toString().getBytes(StandardCharsets.US_ASCII);
    if (body == null) {
      over.sock.write(bytes, 0, bytes.length);
    } else if (body.length > 1 << 20) {
      over.sock.write(bytes, 0, bytes.length);
      over.sock.write(body, 0, body.length);
    } else {
      byte[] all = Arrays.copyOf(bytes, bytes.length + body.length);
      System.arraycopy(body, 0, all, bytes.length, body.length);
      over.sock.write(all, 0, all.length);
    }
  }

  /** Reads a body, of a known length into memory that was used before where there is some. */
  private static Answer read(Body body, Head head, String from) throws IOException {
    Descriptors service = Passing.service().orElse(null);
    if (service == null || body.left() < DIRECT) {
      return new Answer(head, from, read(body), null);
    }
    List<Descriptors.Mapping> rooms = new ArrayList<>();
    Runnable release = () -> rooms.forEach(Descriptors.Mapping::close);
    List<ByteBuffer> full = new ArrayList<>();
    try {
      while (body.left() > 0) {
        Descriptors.Mapping room = service.room((int) Math.min(body.left(), PIECE));
        rooms.add(room);
        ByteBuffer now = room.buffers().get(0);
        while (now.hasRemaining()) {
          body.read(now);
        }
        full.add(now.flip());
      }
    } catch (IOException | RuntimeException | Error failure) {
      release.run();
      throw failure;
    }
    return new Answer(head, from, full, release);
  }

  private static List<ByteBuffer> read(Body body) throws IOException {
    List<ByteBuffer> full = new ArrayList<>();
    ByteBuffer now = buffer(body.left() < 0 ? DIRECT : body.left());
    while (true) {
      if (now.hasRemaining()) {
        if (body.read(now) < 0) {
          break;
        }
      } else if (now.capacity() < PIECE) {
        if (body.left() == 0) {
          break;
        }
        now = buffer(2L * now.capacity()).put(now.flip());
      } else {
        full.add(now.flip());
        now = buffer(body.left() < 0 ? PIECE : body.left());
      }
    }
    if (now.position() > 0) {
      full.add(now.flip());
    }
    return full;
  }

  private static ByteBuffer buffer(long bytes) {
    return bytes < DIRECT
        ? ByteBuffer.allocate((int) bytes)
        : ByteBuffer.allocateDirect((int) Math.min(bytes, PIECE));
  }

  /** Ends all connections, and what waits for them. */
  @Override
  public void close() {
    closed = true;
    platform.shutdown();
    open.forEach(Connection::close);
    lock.lock();
    try {
      idle.clear();
    } finally {
      lock.unlock();
    }
  }
}
