package deponent.rpc;

import deponent.eth.TransportException;
import deponent.eth.TransportException.Kind;
import java.io.Closeable;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.StandardProtocolFamily;
import java.net.StandardSocketOptions;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.nio.file.Path;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLException;
import javax.net.ssl.SSLParameters;
import javax.net.ssl.SSLSocket;
import org.jspecify.annotations.Nullable;

/** A connected stream socket. One thread reads and another writes. */
abstract class Sock implements Closeable {
  /** Reads at least one byte; -1 at the end. */
  abstract int read(byte[] into, int at, int length) throws IOException;

  abstract void write(byte[] from, int at, int length) throws IOException;

  /** Whether a read can end after a time, and another go on where it was. */
  boolean isTimed() {
    return false;
  }

  /** Lets reads end after a time, 0 for never, with a {@code SocketTimeoutException}. */
  void limit(int millis) throws IOException {}

  /** Reads at least one byte, into memory outside of the heap without a copy; -1 at the end. */
  int read(ByteBuffer into) throws IOException {
    byte[] piece = new byte[Math.min(into.remaining(), 1 << 16)];
    int read = read(piece, 0, piece.length);
    if (read > 0) {
      into.put(piece, 0, read);
    }
    return read;
  }

  @Override
  public abstract void close();

  /** Connects, with TLS where the address says so. */
  static Sock open(Settings settings, Guard guard) {
    Endpoint endpoint = settings.endpoint;
    Path path = endpoint.path();
    Sock plain = null;
    try {
      if (path != null) {
        return unix(path, guard);
      }
      InetSocketAddress proxy = settings.proxy;
      plain =
          proxy == null
              ? tcp(endpoint.bareHost(), endpoint.port(), guard)
              : tcp(proxy.getHostString(), proxy.getPort(), guard);
      if (proxy != null) {
        Head.tunnel(plain, endpoint, guard);
      }
      return endpoint.tls() ? tls((Tcp) plain, settings) : plain;
    } catch (IOException | RuntimeException failure) {
      Guard.shut(plain);
      throw failed(settings, guard, failure);
    }
  }

  /** Connects as {@link #open} does, by a channel where that reads without a copy. */
  static Sock direct(Settings settings, Guard guard) {
    Endpoint endpoint = settings.endpoint;
    if (endpoint.path() != null || endpoint.tls() || settings.proxy != null) {
      return open(settings, guard);
    }
    try {
      return channel(endpoint.bareHost(), endpoint.port(), guard);
    } catch (IOException | RuntimeException failure) {
      throw failed(settings, guard, failure);
    }
  }

  private static Sock channel(String host, int port, Guard guard) throws IOException {
    IOException last = new IOException("the host has no address");
    for (InetAddress address : InetAddress.getAllByName(host)) {
      SocketChannel channel = SocketChannel.open();
      guard.watch(channel);
      try {
        channel.connect(new InetSocketAddress(address, port));
        channel.setOption(StandardSocketOptions.TCP_NODELAY, true);
        channel.setOption(StandardSocketOptions.SO_KEEPALIVE, true);
        return new Channel(channel, QuickAck.is(channel.socket()));
      } catch (IOException failure) {
        channel.close();
        last = failure;
      }
    }
    throw last;
  }

  /** The exception for a connection that did not come about. */
  static RuntimeException failed(Settings settings, Guard guard, Exception failure) {
    if (failure instanceof RuntimeException as) {
      return as;
    }
    if (failure instanceof Fatal fatal) {
      return fatal.fault;
    }
    String to = settings.endpoint + ": ";
    if (Thread.currentThread().isInterrupted()) {
      return new TransportException(Kind.TIMEOUT, false, to + "interrupted", failure);
    }
    if (guard.expired()) {
      return new TransportException(
          Kind.TIMEOUT, false, to + "no connection before the deadline", failure);
    }
    Kind kind = failure instanceof SSLException ? Kind.TLS : Kind.CONNECT;
    return new TransportException(kind, false, to + failure.getMessage(), failure);
  }

  private static Sock unix(Path path, Guard guard) throws IOException {
    UnixDomainSocketAddress address = UnixDomainSocketAddress.of(path);
    SocketChannel channel = SocketChannel.open(StandardProtocolFamily.UNIX);
    guard.watch(channel);
    try {
      channel.connect(address);
    } catch (IOException | RuntimeException failure) {
      channel.close();
      throw failure;
    }
    return new Channel(channel, false);
  }

  private static Sock tcp(String host, int port, Guard guard) throws IOException {
    IOException last = new IOException("the host has no address");
    for (InetAddress address : InetAddress.getAllByName(host)) {
      Socket socket = new Socket();
      guard.watch(socket);
      try {
        long left = Math.min(Integer.MAX_VALUE, guard.remainingNanos() / 1_000_000);
        socket.connect(new InetSocketAddress(address, port), (int) Math.max(1, left));
        socket.setTcpNoDelay(true);
        socket.setOption(StandardSocketOptions.SO_KEEPALIVE, true);
        return new Tcp(socket, socket);
      } catch (IOException failure) {
        socket.close();
        last = failure;
      }
    }
    throw last;
  }

  private static Sock tls(Tcp plain, Settings settings) throws IOException {
    SSLContext context = settings.ssl;
    if (context == null) {
      try {
        context = SSLContext.getDefault();
      } catch (java.security.NoSuchAlgorithmException none) {
        throw new SSLException(none);
      }
    }
    Endpoint endpoint = settings.endpoint;
    SSLSocket socket =
        (SSLSocket)
            context
                .getSocketFactory()
                .createSocket(plain.raw, endpoint.bareHost(), endpoint.port(), true);
    SSLParameters parameters = socket.getSSLParameters();
    parameters.setEndpointIdentificationAlgorithm("HTTPS");
    socket.setSSLParameters(parameters);
    socket.startHandshake();
    return new Tcp(socket, plain.raw);
  }

  private static final class Tcp extends Sock {
    private final Socket raw;
    private final InputStream in;
    private final OutputStream out;
    private final boolean quickAck;
    private final boolean timed;
    private int limit;

    /** Whether bytes were read since something was written or the option was set. */
    private volatile boolean unacknowledged;

    Tcp(Socket socket, Socket raw) throws IOException {
      this.raw = raw;
      // TLS may lose a record of which it has read a part.
      timed = socket == raw;
      in = socket.getInputStream();
      out = socket.getOutputStream();
      quickAck = QuickAck.is(raw);
    }

    @Override
    int read(byte[] into, int at, int length) throws IOException {
      // Without it an answer in small segments waits 40 ms for an acknowledgement. Linux forgets
      // it, and what is written acknowledges, too.
      if (unacknowledged) {
        unacknowledged = false;
        QuickAck.set(raw);
      }
      int read = in.read(into, at, length);
      if (quickAck && read > 0) {
        unacknowledged = true;
      }
      return read;
    }

    @Override
    void write(byte[] from, int at, int length) throws IOException {
      if (unacknowledged) {
        unacknowledged = false;
      }
      out.write(from, at, length);
    }

    @Override
    boolean isTimed() {
      return timed;
    }

    @Override
    void limit(int millis) throws IOException {
      if (limit != millis) {
        limit = millis;
        raw.setSoTimeout(millis);
      }
    }

    /** Closes the socket below TLS, which does not wait for a blocked writer. */
    @Override
    public void close() {
      Guard.shut(raw);
    }
  }

  private static final class Channel extends Sock {
    /** Bytes of a read or write: Java copies each through a direct buffer that it keeps. */
    private static final int PIECE = 1 << 16;

    /** Bytes of a read that is not copied. */
    private static final int LARGE = 1 << 20;

    private final SocketChannel channel;
    private final boolean quickAck;
    private byte @Nullable [] array;
    private @Nullable ByteBuffer view;

    Channel(SocketChannel channel, boolean quickAck) {
      this.channel = channel;
      this.quickAck = quickAck;
    }

    @Override
    int read(ByteBuffer into) throws IOException {
      int limit = into.limit();
      int length = Math.min(into.remaining(), LARGE);
      into.limit(into.position() + length);
      try {
        return acknowledged(channel.read(into), length);
      } finally {
        into.limit(limit);
      }
    }

    private int acknowledged(int read, int length) throws IOException {
      if (quickAck && read > 0 && read < length) {
        QuickAck.set(channel.socket());
      }
      return read;
    }

    @Override
    int read(byte[] into, int at, int length) throws IOException {
      ByteBuffer buffer = view;
      if (buffer == null || array != into) {
        buffer = ByteBuffer.wrap(into);
        view = buffer;
        array = into;
      }
      buffer.limit(at + Math.min(length, PIECE)).position(at);
      return acknowledged(channel.read(buffer), length);
    }

    @Override
    void write(byte[] from, int at, int length) throws IOException {
      ByteBuffer buffer = ByteBuffer.wrap(from);
      int end = at + length;
      for (int begin = at; begin < end; ) {
        buffer.limit(Math.min(end, begin + PIECE)).position(begin);
        begin += channel.write(buffer);
      }
    }

    @Override
    public void close() {
      Guard.shut(channel);
    }
  }
}
