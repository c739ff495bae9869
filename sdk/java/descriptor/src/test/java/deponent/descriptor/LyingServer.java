package deponent.descriptor;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static java.lang.foreign.ValueLayout.JAVA_SHORT;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** A server on a Unix socket that answers one request with some files. */
final class LyingServer {
  private static final Linker LINKER = Linker.nativeLinker();

  /** A file of memory, with so many bytes of which each is 7, that may shrink or not. */
  record Memory(int bytes, boolean isSealed) {}

  private final Arena arena = Arena.ofShared();
  private final int listening;
  private final List<Integer> open = new ArrayList<>();

  /** Answers with a head and an empty body, and files beside it. */
  static void start(Path path, String head, List<Memory> files) {
    new LyingServer(path).serve(head, files);
  }

  private LyingServer(Path path) {
    listening = call("socket", Libc.AF_UNIX, 1, 0);
    MemorySegment address = arena.allocate(110, 8);
    address.set(JAVA_SHORT, 0, (short) Libc.AF_UNIX);
    byte[] name = path.toString().getBytes(StandardCharsets.UTF_8);
    MemorySegment.copy(name, 0, address, JAVA_BYTE, 2, name.length);
    call("bind", listening, address, name.length + 3);
    call("listen", listening, 5);
  }

  private void serve(String head, List<Memory> files) {
    Thread.ofPlatform().daemon().start(() -> answer(head, files));
  }

  private void answer(String head, List<Memory> files) {
    int peer = call("accept", listening, MemorySegment.NULL, MemorySegment.NULL);
    MemorySegment request = arena.allocate(1 << 16);
    call("recv", peer, request, request.byteSize(), 0);
    byte[] text = head.getBytes(StandardCharsets.US_ASCII);
    MemorySegment bytes = arena.allocate(text.length);
    MemorySegment.copy(text, 0, bytes, JAVA_BYTE, 0, text.length);
    MemorySegment vector = arena.allocate(16, 8);
    vector.set(ADDRESS, 0, bytes);
    vector.set(JAVA_LONG, 8, text.length);
    MemorySegment control = arena.allocate(16 + (4L * files.size() + 7 & ~7L), 8);
    control.set(JAVA_LONG, 0, 16 + 4L * files.size());
    control.set(JAVA_INT, 8, Libc.SOL_SOCKET);
    control.set(JAVA_INT, 12, Libc.SCM_RIGHTS);
    for (int index = 0; index < files.size(); index++) {
      int file = file(files.get(index));
      open.add(file);
      control.set(JAVA_INT, 16 + 4L * index, file);
    }
    MemorySegment message = arena.allocate(56, 8);
    message.set(ADDRESS, 16, vector);
    message.set(JAVA_LONG, 24, 1);
    message.set(ADDRESS, 32, control);
    message.set(JAVA_LONG, 40, control.byteSize());
    call("sendmsg", peer, message, 0);
    open.forEach(Libc::close);
    call("recv", peer, request, request.byteSize(), 0); // the end
    Libc.close(peer);
    Libc.close(listening);
  }

  private int file(Memory memory) {
    int file = call("memfd_create", arena.allocateFrom("lie"), 2);
    MemorySegment bytes = arena.allocate(memory.bytes);
    bytes.fill((byte) 7);
    call("write", file, bytes, (long) memory.bytes);
    if (memory.isSealed) {
      call("fcntl", file, 1033, 2);
    }
    return file;
  }

  @SuppressWarnings("restricted")
  private static int call(String name, Object... arguments) {
    MemoryLayout[] types = new MemoryLayout[arguments.length];
    for (int index = 0; index < types.length; index++) {
      types[index] =
          switch (arguments[index]) {
            case Integer number -> JAVA_INT;
            case Long number -> JAVA_LONG;
            default -> ADDRESS;
          };
    }
    MethodHandle function =
        LINKER.downcallHandle(
            LINKER.defaultLookup().find(name).orElseThrow(),
            FunctionDescriptor.of(JAVA_INT, types));
    try {
      int result = (int) function.invokeWithArguments(arguments);
      if (result < 0) {
        throw new IllegalStateException(name + " fails");
      }
      return result;
    } catch (RuntimeException failure) {
      throw failure;
    } catch (Throwable impossible) {
      throw new IllegalStateException(impossible);
    }
  }
}
