package deponent.descriptor;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static java.lang.foreign.ValueLayout.JAVA_SHORT;

import deponent.rpc.internal.Descriptors;
import java.io.Closeable;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.channels.ClosedChannelException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;

/** A connected Unix socket. The file descriptor is closed when nobody uses it any more. */
final class LinuxConnection implements Descriptors.Connection {
  private static final int NONE = -1;

  /** The bit beside the number of users that says that it is closed. */
  private static final int CLOSED = 1 << 30;

  /** Bytes of a read or write that goes through {@link #scratch}. */
  private static final int PIECE = 1 << 18;

  /** Bytes of a read of memory outside of the heap. */
  private static final int LARGE = 1 << 20;

  /** Bytes for what comes beside the data: room for some files more than the one that is due. */
  private static final int CONTROL = 256;

  /** Bytes of {@code sun_path}, with the zero behind the path. */
  private static final int PATH = 108;

  // Places in struct msghdr, iovec and cmsghdr, on 64 bits.
  private static final int MESSAGE_BYTES = 56;
  private static final int VECTOR = 16;
  private static final int VECTORS = 24;
  private static final int CONTROL_AT = 32;
  private static final int CONTROL_BYTES = 40;
  private static final int HEAD_BYTES = 16;

  private final int fd;
  private final AtomicInteger users = new AtomicInteger();
  private final Arena memory = Arena.ofAuto();
  private final MemorySegment state = Libc.state();
  private final MemorySegment scratch = memory.allocate(PIECE);
  private final MemorySegment message = memory.allocate(MESSAGE_BYTES, 8);
  private final MemorySegment vector = memory.allocate(16, 8);
  private final MemorySegment control = memory.allocate(CONTROL, 8);
  private final MappedFiles files = new MappedFiles();
  private boolean isExpected;
  private int came = NONE;

  private LinuxConnection(int fd) {
    this.fd = fd;
  }

  static LinuxConnection open(Path path, long nanos, Consumer<Closeable> watch) throws IOException {
    byte[] name = path.toString().getBytes(StandardCharsets.UTF_8);
    if (name.length >= PATH) {
      throw new IOException("the path of a Unix socket has at most 107 bytes: " + path);
    }
    MemorySegment state = Libc.state();
    LinuxConnection connection = new LinuxConnection(Libc.socket(state));
    try (Arena arena = Arena.ofConfined()) {
      watch.accept(connection);
      MemorySegment address = arena.allocate(2 + PATH, 8);
      address.set(JAVA_SHORT, 0, (short) Libc.AF_UNIX);
      MemorySegment.copy(name, 0, address, JAVA_BYTE, 2, name.length);
      Libc.sendTimeout(state, connection.fd, Math.max(1, nanos / 1_000));
      Libc.connect(state, connection.fd, address, 2 + name.length + 1);
      Libc.sendTimeout(state, connection.fd, 0);
      return connection;
    } catch (IOException | RuntimeException failure) {
      connection.close();
      throw failure;
    }
  }

  private void enter() throws ClosedChannelException {
    int now;
    do {
      now = users.get();
      if ((now & CLOSED) != 0) {
        throw new ClosedChannelException();
      }
    } while (!users.compareAndSet(now, now + 1));
  }

  private void leave() {
    if (users.decrementAndGet() == CLOSED) {
      end();
    }
  }

  /** Runs once, when it is closed and nobody uses it. */
  private void end() {
    Libc.close(fd);
    drop();
    files.close();
  }

  private void drop() {
    if (came != NONE) {
      Libc.close(came);
      came = NONE;
    }
  }

  @Override
  public void close() {
    int now;
    do {
      now = users.get();
      if ((now & CLOSED) != 0) {
        return;
      }
    } while (!users.compareAndSet(now, now | CLOSED));
    if (now == 0) {
      end();
    } else {
      // The descriptor stays until its users have seen that.
      Libc.shutdown(fd);
    }
  }

  @Override
  public int read(ByteBuffer into) throws IOException {
    if (!into.hasRemaining()) {
      return 0;
    }
    enter();
    try {
      boolean direct = into.isDirect();
      int length = Math.min(into.remaining(), direct ? LARGE : PIECE);
      MemorySegment to = direct ? MemorySegment.ofBuffer(into) : scratch;
      int read = receive(to, length);
      if (read > 0 && !direct) {
        into.put(scratch.asSlice(0, read).asByteBuffer());
      } else if (read > 0) {
        into.position(into.position() + read);
      }
      return read == 0 ? -1 : read;
    } finally {
      leave();
    }
  }

  private int receive(MemorySegment to, int length) throws IOException {
    vector.set(ADDRESS, 0, to);
    vector.set(JAVA_LONG, 8, length);
    message.fill((byte) 0);
    message.set(ADDRESS, VECTOR, vector);
    message.set(JAVA_LONG, VECTORS, 1);
    message.set(ADDRESS, CONTROL_AT, control);
    message.set(JAVA_LONG, CONTROL_BYTES, CONTROL);
    int read = (int) Libc.receive(state, fd, message);
    takeFiles(Math.min(CONTROL, message.get(JAVA_LONG, CONTROL_BYTES)));
    return read;
  }

  /** Keeps the first file that is expected, and closes all others. */
  private void takeFiles(long bytes) {
    for (long at = 0; at + HEAD_BYTES <= bytes; ) {
      long length = control.get(JAVA_LONG, at);
      if (length < HEAD_BYTES || length > bytes - at) {
        return;
      }
      if (control.get(JAVA_INT, at + 8) == Libc.SOL_SOCKET
          && control.get(JAVA_INT, at + 12) == Libc.SCM_RIGHTS) {
        for (long file = at + HEAD_BYTES; file + 4 <= at + length; file += 4) {
          takeFile(control.get(JAVA_INT, file));
        }
      }
      at += length + 7 & ~7L;
    }
  }

  private void takeFile(int file) {
    if (isExpected) {
      isExpected = false;
      came = file;
    } else {
      Libc.close(file);
    }
  }

  @Override
  public void write(byte[] from, int at, int length) throws IOException {
    enter();
    try {
      for (int begin = at; begin < at + length; ) {
        int some = Math.min(PIECE, at + length - begin);
        MemorySegment.copy(from, begin, scratch, JAVA_BYTE, 0, some);
        for (long sent = 0; sent < some; ) {
          sent += Libc.send(state, fd, scratch.asSlice(sent), some - sent);
        }
        begin += some;
      }
    } finally {
      leave();
    }
  }

  @Override
  public void expect() throws IOException {
    enter();
    try {
      drop();
      isExpected = true;
    } finally {
      leave();
    }
  }

  @Override
  public Descriptors.Mapping map(long bytes) throws IOException {
    enter();
    try {
      if (came == NONE) {
        throw new IOException("no file came with it");
      }
      Path file = Path.of("/proc/self/fd/" + came);
      BasicFileAttributes found = Files.readAttributes(file, BasicFileAttributes.class);
      if (found.size() < bytes) {
        throw new IOException("a file of " + found.size() + " bytes for a body of " + bytes);
      }
      if (Libc.canShrink(state, came)) {
        throw new IOException("the file could become shorter, so it is not mapped");
      }
      int descriptor = came;
      return files.view(
          String.valueOf(found.fileKey()),
          bytes,
          found.size(),
          size -> Libc.map(state, descriptor, size));
    } finally {
      drop();
      leave();
    }
  }
}
