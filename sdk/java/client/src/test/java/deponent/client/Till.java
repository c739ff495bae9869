package deponent.client;

import deponent.eth.Abi;
import deponent.eth.Bytes;
import deponent.eth.JsonReader;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.math.BigInteger;
import java.nio.file.Files;
import java.nio.file.Path;

/** The contract {@code Till.sol} of the scripts for chains for tests. */
final class Till {
  static final Abi ABI;
  static final Bytes BYTECODE;

  static {
    Path root = Path.of("").toAbsolutePath().getParent().getParent().getParent();
    Path file = root.resolve("crates/node/tests/tools/Till.json");
    try {
      byte[] json = Files.readAllBytes(file);
      ABI = Abi.ofJson(new JsonReader(json));
      BYTECODE = bytecode(new JsonReader(json));
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }

  private Till() {}

  private static Bytes bytecode(JsonReader json) {
    Bytes code = Bytes.EMPTY;
    json.beginObject();
    while (json.hasNext()) {
      if (json.nextName().equals("bytecode")) {
        code = json.nextBytes();
      } else {
        json.skipValue();
      }
    }
    json.endObject();
    return code;
  }

  /** The init code of a till with a least amount. */
  static Bytes with(long least) {
    return ABI.constructor().encode(BYTECODE, BigInteger.valueOf(least));
  }

  /** The init code of a contract that reverts with bytes, whatever it is asked. */
  static Bytes reverting(Bytes with) {
    // PUSH1 size PUSH1 10 PUSH0 CODECOPY PUSH1 size PUSH0 REVERT, and the bytes behind it.
    int size = with.size();
    Bytes code =
        Bytes.concat(
            Bytes.of(new byte[] {0x60, (byte) size, 0x60, 10, 0x5f, 0x39}),
            Bytes.of(new byte[] {0x60, (byte) size, 0x5f, (byte) 0xfd}),
            with);
    return deployed(code);
  }

  /** The init code of a contract with a code of less than 256 bytes. */
  static Bytes deployed(Bytes code) {
    // PUSH1 size PUSH1 10 PUSH0 CODECOPY PUSH1 size PUSH0 RETURN, and the code behind it.
    byte size = (byte) code.size();
    return Bytes.concat(
        Bytes.of(new byte[] {0x60, size, 0x60, 10, 0x5f, 0x39, 0x60, size, 0x5f, (byte) 0xf3}),
        code);
  }
}
