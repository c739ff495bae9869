package deponent.descriptor;

import deponent.rpc.internal.Descriptors;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.locks.ReentrantLock;

/** Memory that is used again. */
final class Rooms {
  /** Bytes that are kept while nobody uses them. */
  private static final long KEPT = 256L << 20;

  /** Bytes of the smallest piece. */
  private static final int LEAST = 1 << 20;

  private static final long PAGE = 4_096;

  private final ReentrantLock lock = new ReentrantLock();
  private final List<Piece> idle = new ArrayList<>();
  private long idleBytes;

  /** Memory with an arena of its own. */
  private record Piece(Arena arena, MemorySegment memory) {
    static Piece of(long bytes) {
      Arena arena = Arena.ofShared();
      return new Piece(arena, arena.allocate(bytes, PAGE));
    }
  }

  Descriptors.Mapping room(int bytes) {
    Piece piece = taken(bytes).orElseGet(() -> Piece.of(Math.max(LEAST, rounded(bytes))));
    return new Room(new Scoped(piece.memory, bytes, false, () -> given(piece)));
  }

  /** Bytes that nobody uses. */
  long idleBytes() {
    lock.lock();
    try {
      return idleBytes;
    } finally {
      lock.unlock();
    }
  }

  private static long rounded(int bytes) {
    return Long.highestOneBit(2L * bytes - 1);
  }

  /** The smallest piece that holds so many. */
  private Optional<Piece> taken(int bytes) {
    lock.lock();
    try {
      Optional<Piece> found =
          idle.stream()
              .filter(piece -> piece.memory.byteSize() >= bytes)
              .min(Comparator.comparingLong(piece -> piece.memory.byteSize()));
      found.ifPresent(
          piece -> {
            idle.remove(piece);
            idleBytes -= piece.memory.byteSize();
          });
      return found;
    } finally {
      lock.unlock();
    }
  }

  private void given(Piece piece) {
    boolean isKept;
    lock.lock();
    try {
      isKept = idleBytes + piece.memory.byteSize() <= KEPT;
      if (isKept) {
        idle.add(piece);
        idleBytes += piece.memory.byteSize();
      }
    } finally {
      lock.unlock();
    }
    if (!isKept) {
      piece.arena.close();
    }
  }

  private record Room(Scoped scoped) implements Descriptors.Mapping {
    @Override
    public List<ByteBuffer> buffers() {
      return scoped.buffers();
    }

    @Override
    public void close() {
      scoped.close();
    }
  }
}
