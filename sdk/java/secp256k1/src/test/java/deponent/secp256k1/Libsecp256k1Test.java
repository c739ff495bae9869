package deponent.secp256k1;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import deponent.sets.Sets;
import deponent.wallet.PrivateKey;
import deponent.wallet.Recovery;
import deponent.wallet.internal.BouncyCastle;
import deponent.wallet.internal.Curve;
import java.math.BigInteger;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.Test;

/** libsecp256k1 beside BouncyCastle: the same bytes. */
class Libsecp256k1Test {
  private static final BigInteger ORDER =
      new BigInteger("fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141", 16);

  private final Curve fast = new Libsecp256k1();
  private final Curve slow = new BouncyCastle();

  private static byte[] word(BigInteger number) {
    byte[] bytes = number.toByteArray();
    byte[] word = new byte[32];
    int from = Math.max(0, bytes.length - 32);
    System.arraycopy(bytes, from, word, 32 - bytes.length + from, bytes.length - from);
    return word;
  }

  /** Random ones, and those at the edges. */
  private static byte[] word(Random random) {
    return switch (random.nextInt(12)) {
      case 0 -> word(BigInteger.valueOf(random.nextInt(3)));
      case 1 -> word(ORDER.subtract(BigInteger.valueOf(random.nextInt(5) - 2L)));
      case 2 -> word(ORDER.shiftRight(1).add(BigInteger.valueOf(random.nextInt(3) - 1L)));
      case 3 -> word(BigInteger.ONE.shiftLeft(256).subtract(BigInteger.ONE));
      default -> word(new BigInteger(256, random));
    };
  }

  @Test
  void bothGiveTheSameBytes() {
    Random random = Sets.random();
    for (int i = 0; i < 1_000; i++) {
      byte[] secret = word(random);
      byte[] hash = word(random);
      byte[] key = slow.publicKey(secret);
      assertArrayEquals(key, fast.publicKey(secret));
      if (key != null && new BigInteger(1, hash).compareTo(ORDER) < 0) {
        byte[] signature = slow.sign(secret, hash);
        assertArrayEquals(signature, fast.sign(secret, hash));
        byte[] halves = Arrays.copyOf(signature, 64);
        assertArrayEquals(key, fast.recover(hash, halves, signature[64]));
        assertArrayEquals(key, slow.recover(hash, halves, signature[64]));
      }
      byte[] halves = Arrays.copyOf(word(random), 64);
      System.arraycopy(word(random), 0, halves, 32, 32);
      for (int parity = 0; parity < 2; parity++) {
        assertArrayEquals(slow.recover(hash, halves, parity), fast.recover(hash, halves, parity));
      }
      byte[] point = new byte[33];
      point[0] = (byte) (2 + random.nextInt(2));
      System.arraycopy(word(random), 0, point, 1, 32);
      assertArrayEquals(slow.point(point), fast.point(point));
    }
    assertNull(fast.recover(new byte[32], new byte[64], 2));
  }

  @Test
  void theWalletTakesIt() {
    assertEquals("libsecp256k1", Recovery.library());
    assertEquals(
        "0x7E5F4552091A69125d5DfCb7b8C2659029395Bdf",
        PrivateKey.of("00".repeat(31) + "01").address().toString());
  }

  @Test
  void manyThreadsUseItAtATime() throws Exception {
    byte[] secret = word(BigInteger.TEN);
    List<Future<byte[]>> signatures = new ArrayList<>();
    try (ExecutorService threads = Executors.newFixedThreadPool(8)) {
      for (int i = 0; i < 2_000; i++) {
        byte[] hash = word(BigInteger.valueOf(i));
        Callable<byte[]> sign = () -> fast.sign(secret, hash);
        signatures.add(threads.submit(sign));
      }
    }
    for (int i = 0; i < 2_000; i += 100) {
      byte[] hash = word(BigInteger.valueOf(i));
      assertArrayEquals(slow.sign(secret, hash), signatures.get(i).get());
    }
  }

  @Test
  void theLibraryIsNamedAsInTheJars() {
    String folder = "fr/acinq/secp256k1/jni/native/";
    assertEquals(
        folder + "linux-aarch64/libsecp256k1-jni.so", Library.resource("Linux", "aarch64"));
    assertEquals(folder + "linux-x86_64/libsecp256k1-jni.so", Library.resource("Linux", "amd64"));
    assertEquals(folder + "darwin/libsecp256k1-jni.dylib", Library.resource("Mac OS X", "aarch64"));
  }
}
