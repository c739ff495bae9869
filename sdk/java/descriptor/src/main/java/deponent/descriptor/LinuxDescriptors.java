package deponent.descriptor;

import deponent.rpc.internal.Descriptors;
import java.io.Closeable;
import java.io.IOException;
import java.nio.file.Path;
import java.util.function.Consumer;

/** By functions of Linux's C library, on processors of 64 bits. */
public final class LinuxDescriptors implements Descriptors {
  private final Rooms rooms = new Rooms();

  /** For {@code ServiceLoader}. */
  public LinuxDescriptors() {}

  @Override
  public boolean isSupported() {
    String processor = System.getProperty("os.arch");
    return System.getProperty("os.name").equals("Linux")
        && (processor.equals("amd64") || processor.equals("aarch64"))
        && Libc.isThere()
        && Scoped.isSound();
  }

  @Override
  public Mapping room(int bytes) {
    return rooms.room(bytes);
  }

  @Override
  public Connection connect(Path path, long nanos, Consumer<Closeable> watch) throws IOException {
    return LinuxConnection.open(path, nanos, watch);
  }
}
