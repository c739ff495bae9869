package deponent.bench;

import java.util.List;
import java.util.Map;

/** The libraries that are measured, by name. */
final class Library {
  /** This SDK. */
  static final String OURS = "Deponent";

  /** This SDK with BouncyCastle instead of libsecp256k1. */
  static final String BOUNCY_CASTLE = "Deponent, BouncyCastle";

  /** web3j, of Maven. */
  static final String WEB3J = "web3j";

  /** Brane, of the jars in {@code DEPONENT_BRANE}. */
  static final String BRANE = "Brane";

  private Library() {}

  /** Those that are there. */
  static List<String> names() {
    return Jars.present()
        ? List.of(OURS, BRANE, WEB3J, BOUNCY_CASTLE)
        : List.of(OURS, WEB3J, BOUNCY_CASTLE);
  }

  /** What one does without a connection. */
  static Map<String, Operation> operations(String name) {
    return switch (name) {
      case OURS -> OursOperations.all();
      case BOUNCY_CASTLE -> OursOperations.keys();
      case WEB3J -> Web3jOperations.all();
      case BRANE -> Jars.brane().operations();
      default -> throw new IllegalArgumentException("no library is called " + name);
    };
  }
}
