package deponent.wallet;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.Arrays;

/**
 * The library jc-kzg-4844, with the setup of Ethereum's ceremony. Its jar's name is no name of a
 * module, so no module can require it: it is found on the class path.
 */
final class Kzg {
  private static final String MISSING =
      "blobs need io.consensys.protocols:jc-kzg-4844 (2.1.8) on the class path";

  private static final int POINTS = 4_096;
  private static final int G1 = POINTS * 48;

  private final Class<?> library;

  private Kzg(Class<?> library) {
    this.library = library;
  }

  /** The library, or why there is none. */
  private static final class Loaded {
    private static final Object KZG = attempt();

    private static Object attempt() {
      try {
        return load();
      } catch (IllegalStateException none) {
        return none;
      }
    }
  }

  /**
   * The library, loaded once.
   *
   * @throws IllegalStateException if the jar is missing, or has no code for this machine
   */
  static Kzg loaded() {
    if (Loaded.KZG instanceof IllegalStateException none) {
      throw new IllegalStateException(none.getMessage(), none);
    }
    return (Kzg) Loaded.KZG;
  }

  private static Kzg load() {
    try {
      ClassLoader loader = Kzg.class.getClassLoader();
      Kzg kzg = new Kzg(Class.forName("ethereum.ckzg4844.CKZG4844JNI", true, loader));
      kzg.call("loadNativeLibrary");
      byte[] setup = setup();
      byte[] monomial = Arrays.copyOf(setup, G1);
      byte[] lagrange = Arrays.copyOfRange(setup, G1, 2 * G1);
      byte[] second = Arrays.copyOfRange(setup, 2 * G1, setup.length);
      try {
        kzg.call("loadTrustedSetup", monomial, lagrange, second, 0L);
      } catch (RuntimeException failed) {
        // The application may have loaded it before; there is one for the whole process.
        if (!String.valueOf(failed.getMessage()).contains("already loaded")) {
          throw failed;
        }
      }
      return kzg;
    } catch (ClassNotFoundException missing) {
      throw new IllegalStateException(MISSING, missing);
    } catch (LinkageError | RuntimeException other) {
      throw new IllegalStateException(
          "jc-kzg-4844 does not load on this machine: " + other.getMessage(), other);
    }
  }

  private static byte[] setup() {
    try (InputStream in = Kzg.class.getResourceAsStream("trusted_setup.bin")) {
      if (in == null) {
        throw new IllegalStateException("the jar of deponent-wallet has no trusted_setup.bin");
      }
      return in.readAllBytes();
    } catch (IOException unread) {
      throw new UncheckedIOException(unread);
    }
  }

  /** The commitment to a blob. */
  byte[] commitment(byte[] blob) {
    return (byte[]) call("blobToKzgCommitment", (Object) blob);
  }

  /** The proofs of all cells of a blob, one after the other. */
  byte[] cellProofs(byte[] blob) {
    return get(call("computeCellsAndKzgProofs", (Object) blob), "getProofs");
  }

  /** The cells of a blob, one after the other. */
  byte[] cells(byte[] blob) {
    return (byte[]) call("computeCells", (Object) blob);
  }

  /** Whether the proofs are those of cells of blobs with these commitments. */
  boolean verifies(byte[] commitments, long[] places, byte[] cells, byte[] proofs) {
    return (boolean) call("verifyCellKzgProofBatch", commitments, places, cells, proofs);
  }

  private static byte[] get(Object of, String name) {
    try {
      return (byte[]) invoke(of.getClass().getMethod(name), of);
    } catch (NoSuchMethodException other) {
      throw new IllegalStateException("another version of jc-kzg-4844: no " + name, other);
    }
  }

  private Object call(String name, Object... arguments) {
    for (Method method : library.getMethods()) {
      if (method.getName().equals(name) && method.getParameterCount() == arguments.length) {
        return invoke(method, null, arguments);
      }
    }
    throw new IllegalStateException("another version of jc-kzg-4844: no " + name);
  }

  private static Object invoke(Method method, Object of, Object... arguments) {
    try {
      return method.invoke(of, arguments);
    } catch (IllegalAccessException closed) {
      throw new IllegalStateException("jc-kzg-4844 is not accessible", closed);
    } catch (InvocationTargetException thrown) {
      if (thrown.getCause() instanceof Error error) {
        throw error;
      }
      throw (RuntimeException) thrown.getCause();
    }
  }
}
