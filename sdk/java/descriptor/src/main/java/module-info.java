import org.jspecify.annotations.NullMarked;

/** Answers as memory of the server, for {@code deponent.rpc}, on Java 22 and newer, on Linux. */
@NullMarked
module deponent.descriptor {
  requires deponent.rpc;
  requires static org.jspecify;

  provides deponent.rpc.internal.Descriptors with
      deponent.descriptor.LinuxDescriptors;
}
