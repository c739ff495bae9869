package deponent.descriptor;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.ref.Cleaner;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;

/**
 * Buffers over memory that stays, which cannot be read any more once they are closed. Where nobody
 * closes them, the memory is given back when none of them is left.
 */
final class Scoped {
  private static final Cleaner CLEANER = Cleaner.create();

  /** Bytes of each buffer but the last. */
  private static final long PIECE = 1 << 30;

  private final Arena arena = Arena.ofShared();
  private final List<ByteBuffer> buffers = new ArrayList<>();
  private final Cleaner.Cleanable given;

  /**
   * Of so many bytes from an address on.
   *
   * @param giveBack runs once, and does not refer to the buffers
   */
  @SuppressWarnings("restricted")
  Scoped(MemorySegment address, long bytes, boolean isReadOnly, Runnable giveBack) {
    MemorySegment all = MemorySegment.ofAddress(address.address());
    all = all.reinterpret(bytes, arena, null);
    if (isReadOnly) {
      all = all.asReadOnly();
    }
    for (long at = 0; at < bytes; at += PIECE) {
      buffers.add(all.asSlice(at, Math.min(PIECE, bytes - at)).asByteBuffer());
    }
    // Each buffer refers to the arena's scope, as do its slices.
    given = CLEANER.register(arena.scope(), giveBack);
  }

  /** Whether buffers refer to the very scope that their arena has, which the cleaner rests on. */
  static boolean isSound() {
    try (Arena arena = Arena.ofShared()) {
      MemorySegment some = arena.allocate(1);
      return some.scope() == arena.scope()
          && MemorySegment.ofBuffer(some.asByteBuffer().duplicate()).scope() == arena.scope();
    }
  }

  List<ByteBuffer> buffers() {
    return List.copyOf(buffers);
  }

  /**
   * Gives the memory back.
   *
   * @throws IllegalStateException if a buffer is being used for input or output
   */
  void close() {
    arena.close();
    given.clean();
  }
}
