package deponent.descriptor;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.StructLayout;
import java.lang.foreign.SymbolLookup;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.VarHandle;
import java.util.Optional;

/** The functions of the C library that are used, and their constants on Linux. */
final class Libc {
  static final int AF_UNIX = 1;
  static final int SOL_SOCKET = 1;
  static final int SCM_RIGHTS = 1;
  private static final int STREAM_CLOEXEC = 1 | 0x80000;
  private static final int SO_SNDTIMEO = 21;
  private static final int SHUT_RDWR = 2;
  private static final int MSG_NOSIGNAL = 0x4000;
  private static final int MSG_CMSG_CLOEXEC = 0x40000000;
  private static final int F_GET_SEALS = 1034;
  private static final int F_SEAL_SHRINK = 2;
  private static final int PROT_READ = 1;
  private static final int MAP_SHARED = 1;
  private static final int EINTR = 4;

  /** What a call that failed gives. */
  private static final long FAILED = -1;

  private static final StructLayout STATE = Linker.Option.captureStateLayout();
  private static final VarHandle ERRNO =
      STATE.varHandle(MemoryLayout.PathElement.groupElement("errno"));

  private static final Linker LINKER = Linker.nativeLinker();
  private static final SymbolLookup LOOKUP = LINKER.defaultLookup();

  private Libc() {}

  private static boolean has(String name) {
    return LOOKUP.find(name).isPresent();
  }

  static boolean isThere() {
    return has("recvmsg") && has("mmap") && has("fcntl") && has("strerror");
  }

  /** A function that sets {@code errno}. */
  @SuppressWarnings("restricted")
  private static MethodHandle function(String name, FunctionDescriptor type, int fixed) {
    Optional<MemorySegment> found = LOOKUP.find(name);
    MemorySegment address =
        found.orElseThrow(() -> new UnsatisfiedLinkError("the C library has no " + name));
    Linker.Option errno = Linker.Option.captureCallState("errno");
    return fixed < 0
        ? LINKER.downcallHandle(address, type, errno)
        : LINKER.downcallHandle(address, type, errno, Linker.Option.firstVariadicArg(fixed));
  }

  /** Loaded when the first function is called. */
  private static final class Functions {
    static final MethodHandle SOCKET =
        function("socket", FunctionDescriptor.of(JAVA_INT, JAVA_INT, JAVA_INT, JAVA_INT), -1);
    static final MethodHandle CONNECT =
        function("connect", FunctionDescriptor.of(JAVA_INT, JAVA_INT, ADDRESS, JAVA_INT), -1);
    static final MethodHandle SETSOCKOPT =
        function(
            "setsockopt",
            FunctionDescriptor.of(JAVA_INT, JAVA_INT, JAVA_INT, JAVA_INT, ADDRESS, JAVA_INT),
            -1);
    static final MethodHandle RECVMSG =
        function("recvmsg", FunctionDescriptor.of(JAVA_LONG, JAVA_INT, ADDRESS, JAVA_INT), -1);
    static final MethodHandle SEND =
        function(
            "send", FunctionDescriptor.of(JAVA_LONG, JAVA_INT, ADDRESS, JAVA_LONG, JAVA_INT), -1);
    static final MethodHandle SHUTDOWN =
        function("shutdown", FunctionDescriptor.of(JAVA_INT, JAVA_INT, JAVA_INT), -1);
    static final MethodHandle CLOSE =
        function("close", FunctionDescriptor.of(JAVA_INT, JAVA_INT), -1);
    static final MethodHandle FCNTL =
        function("fcntl", FunctionDescriptor.of(JAVA_INT, JAVA_INT, JAVA_INT), 2);
    static final MethodHandle MMAP =
        function(
            "mmap",
            FunctionDescriptor.of(
                ADDRESS, ADDRESS, JAVA_LONG, JAVA_INT, JAVA_INT, JAVA_INT, JAVA_LONG),
            -1);
    static final MethodHandle MUNMAP =
        function("munmap", FunctionDescriptor.of(JAVA_INT, ADDRESS, JAVA_LONG), -1);
  }

  private static IOException failure(String what, MemorySegment state) {
    return new IOException(what + ": error " + (int) ERRNO.get(state, 0L) + " of the system");
  }

  private static boolean isInterrupted(MemorySegment state) {
    return (int) ERRNO.get(state, 0L) == EINTR;
  }

  /** Room for {@code errno}, of one thread at a time. */
  static MemorySegment state() {
    return Arena.ofAuto().allocate(STATE);
  }

  /** A function that is called again while a signal interrupts it. */
  private interface Call {
    long call() throws Throwable;
  }

  private static long call(String name, MemorySegment state, Call call) throws IOException {
    while (true) {
      long result;
      try {
        result = call.call();
      } catch (Throwable thrown) {
        throw new IllegalStateException("a call of " + name, thrown);
      }
      if (result != FAILED) {
        return result;
      }
      if (!isInterrupted(state)) {
        throw failure(name, state);
      }
    }
  }

  static int socket(MemorySegment state) throws IOException {
    return (int)
        call(
            "socket",
            state,
            () -> (int) Functions.SOCKET.invokeExact(state, AF_UNIX, STREAM_CLOEXEC, 0));
  }

  static void connect(MemorySegment state, int fd, MemorySegment address, int length)
      throws IOException {
    call("connect", state, () -> (int) Functions.CONNECT.invokeExact(state, fd, address, length));
  }

  /** Bounds how long {@code connect} and {@code send} block; 0 is no bound. */
  static void sendTimeout(MemorySegment state, int fd, long micros) throws IOException {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment time = arena.allocate(16, 8);
      time.set(JAVA_LONG, 0, micros / 1_000_000);
      time.set(JAVA_LONG, 8, micros % 1_000_000);
      call(
          "setsockopt",
          state,
          () ->
              (int) Functions.SETSOCKOPT.invokeExact(state, fd, SOL_SOCKET, SO_SNDTIMEO, time, 16));
    }
  }

  static long receive(MemorySegment state, int fd, MemorySegment message) throws IOException {
    return call(
        "recvmsg",
        state,
        () -> (long) Functions.RECVMSG.invokeExact(state, fd, message, MSG_CMSG_CLOEXEC));
  }

  static long send(MemorySegment state, int fd, MemorySegment from, long length)
      throws IOException {
    return call(
        "send",
        state,
        () -> (long) Functions.SEND.invokeExact(state, fd, from, length, MSG_NOSIGNAL));
  }

  /** Ends both directions, so that whoever blocks goes on; a socket that is shut already is. */
  static void shutdown(int fd) {
    try {
      int ignored = (int) Functions.SHUTDOWN.invokeExact(state(), fd, SHUT_RDWR);
    } catch (Throwable thrown) {
      throw new IllegalStateException("a call of shutdown", thrown);
    }
  }

  static void close(int fd) {
    try {
      int ignored = (int) Functions.CLOSE.invokeExact(state(), fd);
    } catch (Throwable thrown) {
      throw new IllegalStateException("a call of close", thrown);
    }
  }

  /** Whether a file of memory can become shorter, which would take mapped pages away. */
  static boolean canShrink(MemorySegment state, int fd) throws IOException {
    long seals =
        call("fcntl", state, () -> (int) Functions.FCNTL.invokeExact(state, fd, F_GET_SEALS));
    return (seals & F_SEAL_SHRINK) == 0;
  }

  static MemorySegment map(MemorySegment state, int fd, long bytes) throws IOException {
    long address =
        call(
            "mmap",
            state,
            () ->
                ((MemorySegment)
                        Functions.MMAP.invokeExact(
                            state, MemorySegment.NULL, bytes, PROT_READ, MAP_SHARED, fd, 0L))
                    .address());
    return MemorySegment.ofAddress(address);
  }

  static void unmap(MemorySegment address, long bytes) {
    try {
      int ignored = (int) Functions.MUNMAP.invokeExact(state(), address, bytes);
    } catch (Throwable thrown) {
      throw new IllegalStateException("a call of munmap", thrown);
    }
  }
}
