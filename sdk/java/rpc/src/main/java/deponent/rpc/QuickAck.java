package deponent.rpc;

import java.io.IOException;
import java.net.Socket;
import jdk.net.ExtendedSocketOptions;

/** Linux's {@code TCP_QUICKACK}, where the module {@code jdk.net} is there. */
final class QuickAck {
  private static final boolean THERE =
      ModuleLayer.boot().findModule("jdk.net").isPresent()
          && QuickAck.class.getModule().canRead(ModuleLayer.boot().findModule("jdk.net").get());

  private QuickAck() {}

  static boolean is(Socket socket) {
    return THERE && Options.supported(socket);
  }

  static void set(Socket socket) throws IOException {
    Options.set(socket);
  }

  /** Loaded only where the module is. */
  private static final class Options {
    static boolean supported(Socket socket) {
      return socket.supportedOptions().contains(ExtendedSocketOptions.TCP_QUICKACK);
    }

    static void set(Socket socket) throws IOException {
      socket.setOption(ExtendedSocketOptions.TCP_QUICKACK, true);
    }
  }
}
