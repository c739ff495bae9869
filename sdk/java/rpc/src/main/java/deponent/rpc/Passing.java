package deponent.rpc;

import deponent.rpc.internal.Descriptors;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.Optional;
import java.util.ServiceLoader;
import org.jspecify.annotations.Nullable;

/** A Unix socket over which files come, by the module {@code deponent.descriptor}. */
final class Passing extends Sock {
  final Descriptors.Connection connection;

  private Passing(Descriptors.Connection connection) {
    this.connection = connection;
  }

  /** The service, found once. */
  private static final class Found {
    static final Optional<Descriptors> SERVICE =
        ServiceLoader.load(Descriptors.class, Passing.class.getClassLoader()).stream()
            .map(ServiceLoader.Provider::get)
            .filter(Descriptors::isSupported)
            .findFirst();
  }

  static Optional<Descriptors> service() {
    return Found.SERVICE;
  }

  static Passing open(Descriptors service, Settings settings, Guard guard) {
    @Nullable Path path = settings.endpoint.path();
    try {
      return new Passing(
          service.connect(
              java.util.Objects.requireNonNull(path),
              Math.max(1, guard.remainingNanos()),
              guard::watch));
    } catch (IOException | RuntimeException failure) {
      throw failed(settings, guard, failure);
    }
  }

  @Override
  int read(byte[] into, int at, int length) throws IOException {
    return connection.read(ByteBuffer.wrap(into, at, length));
  }

  @Override
  int read(ByteBuffer into) throws IOException {
    return connection.read(into);
  }

  @Override
  void write(byte[] from, int at, int length) throws IOException {
    connection.write(from, at, length);
  }

  @Override
  public void close() {
    connection.close();
  }
}
