package deponent.descriptor;

import deponent.rpc.internal.Descriptors;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/**
 * The files of a connection's server, each mapped once: it uses them again, and what was touched
 * before is there at once. A file is unmapped when the connection has ended, or others have taken
 * its place, and no view of it is left.
 */
final class MappedFiles {
  /** Files that a server lends on a connection at a time. */
  private static final int MOST = 8;

  private final ReentrantLock lock = new ReentrantLock();
  private final Map<String, MappedFile> known = new HashMap<>();
  private boolean closed;

  /** Maps so many bytes. */
  interface Mapper {
    MemorySegment map(long bytes) throws IOException;
  }

  /** A mapped file, with its views counted. */
  private static final class MappedFile {
    final MemorySegment address;
    final long bytes;
    int views;
    boolean isKnown = true;

    MappedFile(MemorySegment address, long bytes) {
      this.address = address;
      this.bytes = bytes;
    }
  }

  /** A view of a file's beginning; {@code size} is the file's. */
  Descriptors.Mapping view(String key, long bytes, long size, Mapper mapper) throws IOException {
    MappedFile file = taken(key, bytes);
    if (file == null) {
      file = added(key, new MappedFile(mapper.map(size), size));
    }
    MappedFile mapped = file;
    return new View(new Scoped(mapped.address, bytes, true, () -> given(mapped)));
  }

  private @Nullable MappedFile taken(String key, long bytes) {
    lock.lock();
    try {
      MappedFile file = known.get(key);
      if (file == null || file.bytes < bytes) {
        return null;
      }
      file.views++;
      return file;
    } finally {
      lock.unlock();
    }
  }

  private MappedFile added(String key, MappedFile file) {
    List<MappedFile> unused = new ArrayList<>();
    lock.lock();
    try {
      if (known.size() >= MOST) {
        forget(unused);
      }
      MappedFile before = known.put(key, file);
      if (before != null) {
        before.isKnown = false;
        if (before.views == 0) {
          unused.add(before);
        }
      }
      file.views++;
      file.isKnown = !closed;
    } finally {
      lock.unlock();
    }
    unmap(unused);
    return file;
  }

  private void forget(List<MappedFile> unused) {
    for (Iterator<MappedFile> files = known.values().iterator(); files.hasNext(); ) {
      MappedFile file = files.next();
      file.isKnown = false;
      if (file.views == 0) {
        unused.add(file);
      }
      files.remove();
    }
  }

  private void given(MappedFile file) {
    boolean last;
    lock.lock();
    try {
      file.views--;
      last = file.views == 0 && !file.isKnown;
    } finally {
      lock.unlock();
    }
    if (last) {
      Libc.unmap(file.address, file.bytes);
    }
  }

  private static void unmap(List<MappedFile> unused) {
    unused.forEach(file -> Libc.unmap(file.address, file.bytes));
  }

  /** Unmaps what no view is left of; the rest follows. */
  void close() {
    List<MappedFile> unused = new ArrayList<>();
    lock.lock();
    try {
      closed = true;
      forget(unused);
    } finally {
      lock.unlock();
    }
    unmap(unused);
  }

  private record View(Scoped scoped) implements Descriptors.Mapping {
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
