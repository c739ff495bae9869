package deponent.rpc.internal;

import java.io.Closeable;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.List;
import java.util.function.Consumer;

/**
 * Unix sockets over which open files come ({@code SCM_RIGHTS}), the files as memory, and memory
 * that is used again: to touch it for the first time is the most expensive part of reading.
 */
public interface Descriptors {
  /** Whether this system has them. */
  boolean isSupported();

  /**
   * Connects.
   *
   * @param nanos the time for it
   * @param watch is given what ends all that blocks, before anything does
   */
  Connection connect(Path path, long nanos, Consumer<Closeable> watch) throws IOException;

  /** Memory outside of the heap for so many bytes. */
  Mapping room(int bytes);

  /** A connection. One thread at a time uses it, and any thread closes it. */
  interface Connection extends Closeable {
    /** Reads at least one byte; -1 at the end. Of files that come the first is kept. */
    int read(ByteBuffer into) throws IOException;

    /** Writes all bytes. */
    void write(byte[] from, int at, int length) throws IOException;

    /** Keeps the next file that comes, and gives up one that came before. */
    void expect() throws IOException;

    /**
     * Maps the beginning of the file that came.
     *
     * @throws IOException if none came, it is shorter, or could become shorter
     */
    Mapping map(long bytes) throws IOException;

    /** Ends what blocks. What was mapped stays. */
    @Override
    void close();
  }

  /** Memory outside of the heap; that of another process is read alone. */
  interface Mapping {
    /** All of it, in buffers of 2^30 bytes but for the last. */
    List<ByteBuffer> buffers();

    /** Gives it up: reading a buffer is an {@link IllegalStateException} from then on. */
    void close();
  }
}
