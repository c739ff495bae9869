package deponent.rpc;

import deponent.eth.EthException;
import deponent.eth.JsonReader;
import deponent.eth.JsonWriter;
import deponent.eth.MalformedException;
import deponent.eth.RpcException;
import deponent.eth.TransportException;
import deponent.eth.TransportException.Kind;
import java.io.EOFException;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.SocketTimeoutException;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;

/** A provider over a connection that both sides send on: WebSocket, or a Unix socket with JSON. */
final class Duplex extends Connected implements Deadlines.Watched {
  /** A silent peer is pinged after this time, and given up after that. */
  private static final long SILENT = 30_000_000_000L;

  private static final long GIVEN_UP = 50_000_000_000L;

  /** Values of subscriptions whose opening is not answered yet, at most. */
  private static final int EARLY = 1_024;

  /** How long a caller that reads does not look whether it is interrupted, in milliseconds. */
  private static final long SLICE = 100;

  /** Bytes of a request, about. */
  private static final int CALL_BYTES = 128;

  /** Time for a good-bye, in nanoseconds. */
  private static final long FAREWELL = 1_000_000_000L;

  private final Calls calls;
  private final Set<Subscription<?>> subscriptions = ConcurrentHashMap.newKeySet();
  private volatile @Nullable Wire wire;
  private volatile boolean closed;

  /** Why there is no connection, where there is none. */
  private volatile @Nullable Throwable down;

  /** Whether calls fail at once where there is no connection, since others can be asked. */
  private volatile boolean failsFast;

  private volatile @Nullable Thread reader;
  private volatile @Nullable Guard dialing;
  private final Role role = new Role();

  /** Subscriptions whose opening is not answered. */
  private final AtomicInteger opening = new AtomicInteger();

  // Those of who has the role.
  private final List<Call<?>> ready = new ArrayList<>();
  private final Map<String, Subscription<?>> byId = new HashMap<>();
  private final List<String[]> early = new ArrayList<>();

  /** How many callers, one after the other, waited with nothing else in flight. */
  private int lone;

  private Duplex(Settings settings) {
    super(settings);
    calls = new Calls(settings.inFlight);
  }

  /** Connects, or lets the connection's thread do it. */
  static Duplex open(Settings settings, boolean waits) {
    Duplex duplex = new Duplex(settings);
    Wire wire = waits ? duplex.dial() : null;
    duplex.wire = wire;
    Thread thread =
        Thread.ofPlatform()
            .daemon()
            .name("deponent-rpc " + settings.endpoint)
            .unstarted(() -> duplex.run(wire));
    duplex.reader = thread;
    duplex.role.give(thread);
    thread.start();
    Deadlines.add(duplex);
    return duplex;
  }

  /** One connection of the socket. */
  private final class Wire {
    final Sock sock;
    final SockInput in;
    final Outbox out;
    final @Nullable WsInput frames;
    final JsonReader json;
    final Reader answers;
    volatile long pinged;

    /** Why a caller that read it could not go on. */
    @Nullable Throwable fault;

    Wire(Sock sock, SockInput in, boolean framed, long longest) {
      this.sock = sock;
      this.in = in;
      out = new Outbox(sock, framed);
      frames = framed ? new WsInput(in, out, longest) : null;
      json = new JsonReader(frames == null ? in : frames, 1 << 16);
      answers = new Reader(json);
      in.beforeBlocking(Duplex.this::deliverReady);
    }
  }

  private Wire dial() {
    try (Guard guard = Guard.until(Times.after(settings.timeoutNanos))) {
      dialing = guard;
      if (closed) {
        guard.set(0);
      }
      Sock sock = Sock.open(settings, guard);
      boolean framed = settings.endpoint.kind() == Endpoint.Kind.WEB_SOCKET;
      SockInput in = new SockInput(sock);
      if (framed) {
        try {
          Handshake.run(sock, in, settings);
        } catch (IOException | RuntimeException failure) {
          sock.close();
          throw Sock.failed(settings, guard, failure);
        }
      }
      return new Wire(sock, in, framed, settings.answerBytes);
    }
  }

  boolean isUp() {
    return wire != null;
  }

  /** Lets calls fail at once where there is no connection. */
  void failFast() {
    failsFast = true;
  }

  @Override
  boolean isClosed() {
    return closed;
  }

  @Override
  void checkThread() {
    if (role.isMine()) {
      throw new IllegalStateException(
          "a request from the thread that reads the connection would wait for itself");
    }
    if (closed) {
      throw new TransportException(Kind.CLOSED, false, "the provider is closed", null);
    }
  }

  // Sending.

  @Override
  void begin(Call<?> call) {
    calls.acquire(1, call.deadline);
    start(call);
    Wire now = send(call);
    if (now == null) {
      unsent(call);
      return;
    }
    boolean blocks = call.waited;
    if (!blocks || call.caller.isVirtual()) {
      role.want(reader);
    }
    if (blocks) {
      if (calls.inFlight() > 1 && Thread.currentThread().isVirtual()) {
        // Other virtual threads that are about to ask share the write.
        Thread.yield();
      }
      now.out.flush();
    } else {
      now.out.flushSoon();
    }
  }

  private void start(Call<?> call) {
    calls.put(call);
    Deadlines.due(call.deadline);
    settings.tell(listener -> listener.requested(call.request.method()));
    if (closed) {
      end(call, null, closedHere(), 0);
    }
  }

  private static TransportException closedHere() {
    return new TransportException(Kind.CLOSED, true, "the provider was closed", null);
  }

  /**
   * Adds a call to the connection's outbox; null where there is no connection, or another sent it.
   */
  private @Nullable Wire send(Call<?> call) {
    while (true) {
      Wire now = wire;
      if (now == null || !call.moves(null, now)) {
        return null;
      }
      if (wire == now || !call.moves(now, null)) {
        return encode(call, now) ? now : null;
      }
    }
  }

  /** Ends a call that was not sent, if it is not to wait for the connection. */
  private void unsent(Call<?> call) {
    if (failsFast && wire == null && call.moves(null, this)) {
      Throwable why = down;
      String reason = why == null ? "" : ": " + why.getMessage();
      String message = call.request.method() + ": there is no connection" + reason;
      end(call, null, new TransportException(Kind.CONNECT, false, message, why), 0);
    }
  }

  private boolean encode(Call<?> call, Wire now) {
    try {
      now.out.add(write(call, call.id, new JsonWriter()));
      return true;
    } catch (RuntimeException wrong) {
      end(call, null, wrong, 0);
      return false;
    }
  }

  @Override
  void beginAll(List<Call<?>> batch, long deadline) {
    int most = Math.max(1, calls.capacity() / 2);
    for (int from = 0; from < batch.size(); from += most) {
      List<Call<?>> some = batch.subList(from, Math.min(batch.size(), from + most));
      try {
        calls.acquire(some.size(), deadline);
      } catch (EthException failure) {
        if (from == 0) {
          throw failure;
        }
        // Others have left: the batch as a whole has not failed.
        batch.subList(from, batch.size()).forEach(call -> end(call, null, failure, 0));
        return;
      }
      some.forEach(this::start);
      sendAll(some);
      if (!some.get(0).waited || some.size() < batch.size()) {
        role.want(reader);
      }
    }
  }

  private void sendAll(List<Call<?>> batch) {
    Wire now = wire;
    if (now == null) {
      batch.forEach(this::unsent);
      return;
    }
    List<Call<?>> going = new ArrayList<>(batch.size());
    for (Call<?> call : batch) {
      if (!call.moves(null, now)) {
        continue;
      }
      if (wire != now && call.moves(now, null)) {
        send(call);
      } else {
        going.add(call);
      }
    }
    JsonWriter json = new JsonWriter(CALL_BYTES * going.size());
    while (!going.isEmpty()) {
      // A request that cannot be written must not spoil the others.
      Call<?> spoilt = writeAll(going, json.clear());
      if (spoilt == null) {
        now.out.add(json);
        break;
      }
      going.remove(spoilt);
    }
    now.out.flush();
  }

  /** Writes an array of requests; one that cannot be written is ended, and returned. */
  private @Nullable Call<?> writeAll(List<Call<?>> batch, JsonWriter json) {
    json.beginArray();
    for (Call<?> call : batch) {
      try {
        write(call, call.id, json);
      } catch (RuntimeException wrong) {
        end(call, null, wrong, 0);
        return call;
      }
    }
    json.endArray();
    return null;
  }

  // Ends of calls.

  @Override
  void abandon(Call<?> call, EthException why) {
    end(call, null, why, 0);
  }

  private <T> void end(Call<T> call, @Nullable T value, @Nullable Throwable failure, long bytes) {
    if (!call.end(value, failure)) {
      return;
    }
    if (call.slot >= 0) {
      calls.free(call);
    }
    tellEnd(call, failure, bytes);
    boolean reads = role.isMine();
    if (reads) {
      boolean waits = call.waited && !call.caller.isVirtual();
      if (waits && calls.inFlight() == 0) {
        lone = Math.min(lone + 1, settings.loneCallers);
      } else if (!waits || call.future == null) {
        // The others of a batch that is waited for are still in flight.
        lone = 0;
      }
    }
    if (call.waited) {
      call.wake();
    } else if (reads) {
      ready.add(call);
    } else {
      settings.callBack(call::deliver);
    }
  }

  /** Completes the futures of what was read, in one task. */
  private void deliverReady() {
    if (!ready.isEmpty()) {
      Call<?>[] some = ready.toArray(new Call<?>[0]);
      ready.clear();
      settings.callBack(
          () -> {
            for (Call<?> call : some) {
              call.deliver();
            }
          });
    }
  }

  @Override
  public long expire(long now) {
    long next = Times.NEVER;
    for (int i = 0; i < calls.capacity(); i++) {
      Call<?> call = calls.at(i);
      if (call != null && call.deadline <= now) {
        boolean sent = call.sentOver != null;
        end(call, null, sent || wire != null ? call.late(sent) : call.unsent(down), 0);
      } else if (call != null) {
        next = Math.min(next, call.deadline);
      }
    }
    Wire over = wire;
    return over == null ? next : Math.min(next, attend(over, now));
  }

  /** Pings a silent peer, and gives up one that takes or sends nothing. */
  private long attend(Wire over, long now) {
    long since = over.out.writingSince;
    if (since != 0 && now - since >= settings.timeoutNanos) {
      over.sock.close();
    }
    long next = since == 0 ? Times.NEVER : since + settings.timeoutNanos;
    if (over.frames == null) {
      return Math.min(next, now + settings.timeoutNanos);
    }
    long last = over.in.lastRead;
    if (now - last >= GIVEN_UP) {
      over.sock.close();
      return Times.NEVER;
    }
    if (now - last < SILENT) {
      return Math.min(next, last + SILENT);
    }
    if (over.pinged <= last) {
      over.pinged = now;
      over.out.control(Outbox.PING, new byte[0]);
    }
    return Math.min(next, last + GIVEN_UP);
  }

  // Reading.

  private void run(@Nullable Wire first) {
    Wire over = first;
    if (over == null) {
      over = again(0);
      if (over != null) {
        restore(over, Instant.now(), "there was none");
      }
    }
    while (over != null) {
      Throwable why = read(over);
      if (!(why instanceof EthException)) {
        over.sock.close();
      }
      wire = null;
      deliverReady();
      if (closed) {
        break;
      }
      Instant since = Instant.now();
      lost(over, why);
      over = again(1);
      if (over != null) {
        restore(over, since, String.valueOf(why.getMessage()));
      }
    }
    endAll();
    deliverReady();
  }

  /** Reads until the connection ends, and returns why. It has the role before and after. */
  private Throwable read(Wire over) {
    try {
      while (true) {
        over.sock.limit(0);
        Throwable fault = next(over);
        if (fault != null) {
          return fault;
        }
        if (canRest(over)) {
          deliverReady();
          role.rest(over.in);
          if (over.fault != null) {
            return over.fault;
          }
        }
      }
    } catch (IOException failure) {
      return failure;
    }
  }

  /** Whether callers that wait alone may read in place of the connection's thread. */
  private boolean canRest(Wire over) {
    return lone == settings.loneCallers
        && over.sock.isTimed()
        && over.in.buffered() == 0
        && subscriptions.isEmpty()
        && calls.inFlight() == 0;
  }

  /** Reads a message; returns why it could not. */
  private @Nullable Throwable next(Wire over) {
    try {
      if (over.frames != null) {
        over.frames.nextMessage();
      } else {
        over.in.allow(settings.answerBytes);
      }
      if (!over.json.nextDocument()) {
        if (over.frames == null) {
          return new EOFException("the peer closed the connection");
        }
        throw new MalformedException("an empty message");
      }
      over.answers.document();
      if (over.frames != null && over.json.nextDocument()) {
        throw new MalformedException("something is left behind the message's value");
      }
      return null;
    } catch (UncheckedIOException failure) {
      return fault(over, java.util.Objects.requireNonNull(failure.getCause()));
    } catch (IOException failure) {
      return fault(over, failure);
    } catch (MalformedException failure) {
      return fault(over, new Fatal(1002, Answers.noJson(failure)));
    } catch (EthException failure) {
      return fault(over, new Fatal(1002, failure));
    } catch (RuntimeException | Error failure) {
      return failure;
    }
  }

  /** Waits for a call's end; a caller that waits alone reads its answer itself. */
  @Override
  boolean await(Call<?> call) {
    if (!call.caller.isVirtual() && call.isOpen()) {
      readFor(List.of(call));
    }
    return call.await();
  }

  @Override
  void awaitAll(List<Call<?>> batch) {
    if (!Thread.currentThread().isVirtual()) {
      readFor(batch);
    }
    super.awaitAll(batch);
  }

  private void readFor(List<Call<?>> waited) {
    if (!subscriptions.isEmpty() || calls.inFlight() != waited.size() || !role.take()) {
      role.want(reader);
      return;
    }
    Wire over = wire;
    try {
      for (Call<?> call : waited) {
        if (over != null && over.fault == null) {
          over.fault = readFor(call, over);
        }
      }
    } finally {
      deliverReady();
      boolean others = calls.inFlight() > 0 || over == null || over.fault != null;
      if (others) {
        lone = 0;
      }
      role.leave();
      if (others || role.isWanted() || calls.inFlight() > 0 || closed) {
        role.want(reader);
      }
    }
  }

  /** Reads until the call has ended, or what comes is for the connection's thread. */
  private @Nullable Throwable readFor(Call<?> call, Wire over) {
    WsInput frames = java.util.Objects.requireNonNull(over.frames);
    while (call.isOpen()) {
      switch (frames.ahead()) {
        case WHOLE -> {
          Throwable fault = next(over);
          if (fault != null) {
            return fault;
          }
        }
        case PART -> {
          long left = Math.min(SLICE, (call.deadline - Times.now()) / 1_000_000 + 1);
          if (left <= 0 || Thread.currentThread().isInterrupted()) {
            return null;
          }
          try {
            over.sock.limit((int) left);
            if (!over.in.gather()) {
              return new EOFException("the peer closed the connection");
            }
          } catch (SocketTimeoutException none) {
            // The call may have ended otherwise.
          } catch (IOException failure) {
            return failure;
          }
        }
        case OTHER -> {
          return null;
        }
      }
    }
    return null;
  }

  private Throwable fault(Wire over, IOException failure) {
    if (failure instanceof Fatal fatal) {
      Thread.startVirtualThread(() -> part(over, fatal.code));
      return fatal.fault;
    }
    return failure;
  }

  /**
   * Says good-bye, and reads until the peer closes: closing a socket with bytes that nobody read
   * resets the connection, and the peer does not see the code.
   */
  private static void part(Wire over, int code) {
    try (Guard guard = Guard.until(Times.after(FAREWELL))) {
      guard.watch(over.sock);
      over.out.farewell(code);
      over.sock.limit(0);
      byte[] rest = new byte[1 << 13];
      while (over.sock.read(rest, 0, rest.length) > 0) {
        // What a peer that lied goes on to say is of no interest.
      }
    } catch (IOException closed) {
      // It has gone.
    } finally {
      over.sock.close();
    }
  }

  private final class Reader extends Answers {
    Reader(JsonReader json) {
      super(json);
    }

    @Override
    @Nullable Call<?> call(long id) {
      return calls.of(id);
    }

    @Override
    <T> void ended(Call<T> call, @Nullable T value, @Nullable Throwable failure, long bytes) {
      var first = call.onReader;
      if (first != null && failure == null && call.isOpen()) {
        first.accept(value);
      }
      end(call, value, failure, bytes);
    }

    @Override
    @Nullable Subscription<?> subscription(String id) {
      return byId.get(id);
    }

    @Override
    void unknown(String subscription, String value) {
      // A server may send the first value before it answers that the subscription is open.
      if (early.size() < EARLY && opening.get() > 0) {
        early.add(new String[] {subscription, value});
      }
    }

    @Override
    void unnamed(RpcException error) {
      Call<?> only = calls.only();
      if (only != null) {
        end(only, null, error, 0);
      }
    }
  }

  // Lost connections.

  private void lost(Wire over, Throwable why) {
    settings.tell(listener -> listener.lost(settings.endpoint.toString(), why));
    byId.clear();
    early.clear();
    subscriptions.forEach(one -> one.id = null);
    boolean lied = why instanceof EthException;
    down = why;
    for (int i = 0; i < calls.capacity(); i++) {
      Call<?> call = calls.at(i);
      if (call == null || call.sentOver != over) {
        continue;
      }
      if (call.request.isRepeatable() && !lied && !failsFast) {
        call.resent = true;
        call.moves(over, null);
      } else {
        end(call, null, lied ? why : gone(call, why), 0);
      }
    }
    deliverReady();
  }

  private TransportException gone(Call<?> call, Throwable why) {
    String message = call.request.method() + ": the connection was lost: " + why.getMessage();
    return new TransportException(Kind.CLOSED, true, message, why);
  }

  /** Connects anew; null when the provider is closed. */
  private @Nullable Wire again(int before) {
    for (int tried = before; ; tried++) {
      long until = tried == 0 ? 0 : Times.after(settings.reconnect.pauseNanos(tried));
      for (long left; (left = until - Times.now()) > 0 && !closed; ) {
        LockSupport.parkNanos(left);
      }
      if (closed) {
        return null;
      }
      try {
        return dial();
      } catch (RuntimeException failure) {
        // Calls that wait end at their deadlines.
        down = failure;
      }
    }
  }

  private void restore(Wire over, Instant since, String why) {
    wire = over;
    if (closed) {
      over.sock.close();
      return;
    }
    Deadlines.due(Times.now());
    for (Subscription<?> one : subscriptions) {
      if (one.hasEnded()) {
        subscriptions.remove(one);
      } else {
        // Who reads the gap and asks at once does so behind the request that subscribes.
        resubscribe(one);
        one.gap(since, "the connection was lost: " + why);
      }
    }
    for (int i = 0; i < calls.capacity(); i++) {
      Call<?> call = calls.at(i);
      if (call != null && call.sentOver == null) {
        send(call);
      }
    }
    over.out.flushSoon();
    settings.tell(listener -> listener.restored(settings.endpoint.toString()));
  }

  private void endAll() {
    for (int i = 0; i < calls.capacity(); i++) {
      Call<?> call = calls.at(i);
      if (call != null) {
        end(call, null, closedHere(), 0);
      }
    }
    subscriptions.forEach(one -> one.end(null));
    subscriptions.clear();
  }

  // Subscriptions.

  @Override
  public <T> Subscription<T> subscribe(Request<String> open, Decoder<T> read) {
    checkThread();
    String method = open.method();
    if (!method.contains("_subscribe")) {
      throw new IllegalArgumentException(
          "a method that subscribes is x_subscribe or x_subscribeY, not " + method);
    }
    Subscription<T> subscription =
        new Subscription<>(
            open, read, this::unsubscribe, () -> settings.tell(listener -> listener.slow(method)));
    opening.incrementAndGet();
    Call<String> call = new Call<>(open, settings.deadline(open), null);
    call.onReader = id -> opened(subscription, id);
    try {
      begin(call);
      if (!await(call)) {
        abandon(call, new TransportException(Kind.TIMEOUT, true, "interrupted", null));
        call.await();
      }
      call.result();
      return subscription;
    } catch (RuntimeException failure) {
      subscription.end(null);
      unsubscribe(subscription);
      throw failure;
    } finally {
      opening.decrementAndGet();
    }
  }

  /** Runs on the thread that reads, before it reads the subscription's first value. */
  private void opened(Subscription<?> subscription, String id) {
    if (subscription.hasEnded()) {
      unsubscribeAt(subscription, id);
      return;
    }
    subscriptions.add(subscription);
    subscription.id = id;
    byId.put(id, subscription);
    early.removeIf(
        value -> {
          boolean its = value[0].equals(id);
          if (its) {
            subscription.read(new JsonReader(value[1]));
          }
          return its;
        });
  }

  private void resubscribe(Subscription<?> subscription) {
    long deadline = settings.deadline(subscription.open);
    CallFuture<String> future = new CallFuture<>();
    Call<String> call = new Call<>(subscription.open, deadline, future);
    call.onReader = id -> opened(subscription, id);
    opening.incrementAndGet();
    future.whenComplete(
        (id, failure) -> {
          opening.decrementAndGet();
          boolean again = failure instanceof TransportException lost && lost.kind() == Kind.CLOSED;
          if (failure != null && !again) {
            subscriptions.remove(subscription);
            subscription.end(failure);
          }
        });
    try {
      // Who reads must not wait for calls that it has to send itself.
      calls.acquire(1, Times.now());
    } catch (TransportException busy) {
      Thread.startVirtualThread(() -> resubscribeLater(call));
      return;
    }
    start(call);
    send(call);
  }

  private void resubscribeLater(Call<String> call) {
    try {
      begin(call);
    } catch (RuntimeException failure) {
      CallFuture<String> future = java.util.Objects.requireNonNull(call.future);
      future.completeExceptionally(failure);
    }
  }

  private void unsubscribe(Subscription<?> subscription) {
    subscriptions.remove(subscription);
    String id = subscription.id;
    if (id != null && !closed) {
      unsubscribeAt(subscription, id);
    }
  }

  private void unsubscribeAt(Subscription<?> subscription, String id) {
    String method = subscription.open.method();
    String close = method.replace("_subscribe", "_unsubscribe");
    Request<Boolean> request = Request.of(close, json -> json.value(id), json -> !json.nextNull());
    Call<Boolean> call =
        new Call<>(request, Times.after(settings.timeoutNanos), new CallFuture<>());
    call.onReader = done -> byId.remove(id, subscription);
    Thread.startVirtualThread(
        () -> {
          try {
            begin(call);
          } catch (RuntimeException dropped) {
            // The server ends it with the connection at the latest.
          }
        });
  }

  @Override
  public void close() {
    if (closed) {
      return;
    }
    closed = true;
    Thread thread = reader;
    Wire now = wire;
    if (now != null) {
      try (Guard guard = Guard.until(Times.after(FAREWELL))) {
        guard.watch(now.sock);
        now.out.farewell(1000);
      }
      now.sock.close();
    }
    Guard handshake = dialing;
    if (handshake != null) {
      handshake.set(0);
    }
    LockSupport.unpark(thread);
    role.want(thread);
    Deadlines.remove(this);
    if (thread != null && !role.isMine()) {
      try {
        thread.join(Duration.ofSeconds(5));
      } catch (InterruptedException interrupted) {
        Thread.currentThread().interrupt();
      }
    }
    endAll();
  }
}
