package deponent.secp256k1;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import deponent.wallet.internal.Curve;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.security.SecureRandom;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/**
 * The curve of libsecp256k1 (bitcoin-core), called by its own functions. Its context is made once,
 * blinded by random numbers, and only read from then on.
 */
public final class Libsecp256k1 implements Curve {
  /** {@code SECP256K1_CONTEXT_NONE}. */
  private static final int CONTEXT = 1;

  /** {@code SECP256K1_EC_UNCOMPRESSED}. */
  private static final int UNCOMPRESSED = 2;

  /** Bytes of the library's own forms of keys and of recoverable signatures. */
  private static final int KEY = 64;

  private static final int SIGNATURE = 65;
  private static final int POINT = 65;

  private final MemorySegment context;
  private final MethodHandle verifySecret;
  private final MethodHandle createKey;
  private final MethodHandle parseKey;
  private final MethodHandle serializeKey;
  private final MethodHandle sign;
  private final MethodHandle parseSignature;
  private final MethodHandle serializeSignature;
  private final MethodHandle recover;

  /**
   * Loads the library.
   *
   * @throws UnsatisfiedLinkError if there is none for this machine, or it cannot be loaded
   */
  public Libsecp256k1() {
    SymbolLookup library = Library.load();
    MethodHandle create = function(library, "context_create", ADDRESS, JAVA_INT);
    MethodHandle randomize = function(library, "context_randomize", JAVA_INT, ADDRESS, ADDRESS);
    verifySecret = function(library, "ec_seckey_verify", JAVA_INT, ADDRESS, ADDRESS);
    createKey = function(library, "ec_pubkey_create", JAVA_INT, ADDRESS, ADDRESS, ADDRESS);
    parseKey = function(library, "ec_pubkey_parse", JAVA_INT, ADDRESS, ADDRESS, ADDRESS, JAVA_LONG);
    serializeKey =
        function(
            library, "ec_pubkey_serialize", JAVA_INT, ADDRESS, ADDRESS, ADDRESS, ADDRESS, JAVA_INT);
    sign =
        function(
            library,
            "ecdsa_sign_recoverable",
            JAVA_INT,
            ADDRESS,
            ADDRESS,
            ADDRESS,
            ADDRESS,
            ADDRESS,
            ADDRESS);
    parseSignature =
        function(
            library,
            "ecdsa_recoverable_signature_parse_compact",
            JAVA_INT,
            ADDRESS,
            ADDRESS,
            ADDRESS,
            JAVA_INT);
    serializeSignature =
        function(
            library,
            "ecdsa_recoverable_signature_serialize_compact",
            JAVA_INT,
            ADDRESS,
            ADDRESS,
            ADDRESS,
            ADDRESS);
    recover = function(library, "ecdsa_recover", JAVA_INT, ADDRESS, ADDRESS, ADDRESS, ADDRESS);
    try (Arena arena = Arena.ofConfined()) {
      context = (MemorySegment) create.invokeExact(CONTEXT);
      byte[] seed = new byte[32];
      new SecureRandom().nextBytes(seed);
      if ((int) randomize.invokeExact(context, arena.allocateFrom(JAVA_BYTE, seed)) != 1) {
        throw new UnsatisfiedLinkError("libsecp256k1 took no seed");
      }
    } catch (Throwable thrown) {
      throw rethrown(thrown);
    }
  }

  @SuppressWarnings("restricted")
  private static MethodHandle function(
      SymbolLookup library, String name, MemoryLayout result, MemoryLayout... parameters) {
    MemorySegment symbol =
        library
            .find("secp256k1_" + name)
            .orElseThrow(() -> new UnsatisfiedLinkError("the library has no secp256k1_" + name));
    FunctionDescriptor descriptor = FunctionDescriptor.of(result, parameters);
    return Linker.nativeLinker().downcallHandle(symbol, descriptor);
  }

  private static RuntimeException rethrown(Throwable thrown) {
    if (thrown instanceof Error error) {
      throw error;
    }
    return thrown instanceof RuntimeException known ? known : new IllegalStateException(thrown);
  }

  @Override
  public String name() {
    return "libsecp256k1";
  }

  @Override
  public byte @Nullable [] publicKey(byte[] secret) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment key = arena.allocate(KEY);
      MemorySegment held = arena.allocateFrom(JAVA_BYTE, secret);
      try {
        if ((int) verifySecret.invokeExact(context, held) != 1) {
          return null;
        }
        int made = (int) createKey.invokeExact(context, key, held);
        return made == 1 ? coordinates(arena, key) : null;
      } finally {
        held.fill((byte) 0);
      }
    } catch (Throwable thrown) {
      throw rethrown(thrown);
    }
  }

  @Override
  public byte[] sign(byte[] secret, byte[] hash) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment signature = arena.allocate(SIGNATURE);
      MemorySegment message = arena.allocateFrom(JAVA_BYTE, hash);
      MemorySegment held = arena.allocateFrom(JAVA_BYTE, secret);
      try {
        int signed =
            (int)
                sign.invokeExact(
                    context, signature, message, held, MemorySegment.NULL, MemorySegment.NULL);
        if (signed != 1) {
          throw new IllegalStateException("libsecp256k1 made no signature");
        }
      } finally {
        held.fill((byte) 0);
      }
      MemorySegment halves = arena.allocate(64);
      MemorySegment parity = arena.allocate(ValueLayout.JAVA_INT);
      int written = (int) serializeSignature.invokeExact(context, halves, parity, signature);
      if (written != 1) {
        throw new IllegalStateException("libsecp256k1 wrote no signature");
      }
      byte[] bytes = new byte[65];
      MemorySegment.copy(halves, JAVA_BYTE, 0, bytes, 0, 64);
      bytes[64] = (byte) (parity.get(ValueLayout.JAVA_INT, 0) & 1);
      return bytes;
    } catch (Throwable thrown) {
      throw rethrown(thrown);
    }
  }

  @Override
  public byte @Nullable [] recover(byte[] hash, byte[] rs, int yParity) {
    // The library ends the process for a parity that it does not know.
    if (yParity != 0 && yParity != 1) {
      return null;
    }
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment signature = arena.allocate(SIGNATURE);
      MemorySegment halves = arena.allocateFrom(JAVA_BYTE, rs);
      if ((int) parseSignature.invokeExact(context, signature, halves, yParity) != 1) {
        return null;
      }
      MemorySegment key = arena.allocate(KEY);
      MemorySegment message = arena.allocateFrom(JAVA_BYTE, hash);
      int found = (int) recover.invokeExact(context, key, signature, message);
      return found == 1 ? coordinates(arena, key) : null;
    } catch (Throwable thrown) {
      throw rethrown(thrown);
    }
  }

  @Override
  public byte @Nullable [] point(byte[] encoded) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment key = arena.allocate(KEY);
      MemorySegment bytes = arena.allocateFrom(JAVA_BYTE, encoded);
      int found = (int) parseKey.invokeExact(context, key, bytes, (long) encoded.length);
      return found == 1 ? coordinates(arena, key) : null;
    } catch (Throwable thrown) {
      throw rethrown(thrown);
    }
  }

  private byte[] coordinates(Arena arena, MemorySegment key) throws Throwable {
    MemorySegment point = arena.allocate(POINT);
    MemorySegment length = arena.allocateFrom(JAVA_LONG, POINT);
    int written = (int) serializeKey.invokeExact(context, point, length, key, UNCOMPRESSED);
    if (written != 1) {
      throw new IllegalStateException("libsecp256k1 wrote no key");
    }
    return Arrays.copyOfRange(point.toArray(JAVA_BYTE), 1, POINT);
  }
}
