package deponent.wallet;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.bouncycastle.crypto.engines.Salsa20Engine;

/**
 * Scrypt (RFC 7914) with r = 1 and more rounds than its n may have then. BouncyCastle refuses that,
 * and some keystores have it.
 */
final class NarrowScrypt {
  /** Ints of a block, which is two of Salsa20. */
  private static final int BLOCK = 32;

  private static final int HALF = BLOCK / 2;
  private static final int SALSA_ROUNDS = 8;

  private NarrowScrypt() {}

  static byte[] derive(byte[] password, byte[] salt, int n, int lanes, int bytes) {
    byte[] mixed = KeyDerivation.pbkdf2(password, salt, 1, 4 * BLOCK * lanes);
    ByteBuffer buffer = ByteBuffer.wrap(mixed).order(ByteOrder.LITTLE_ENDIAN);
    int[] memory = new int[BLOCK * n];
    int[] block = new int[BLOCK];
    for (int lane = 0; lane < lanes; lane++) {
      int from = 4 * BLOCK * lane;
      buffer.slice(from, 4 * BLOCK).order(ByteOrder.LITTLE_ENDIAN).asIntBuffer().get(block);
      mix(block, memory, n);
      buffer.slice(from, 4 * BLOCK).order(ByteOrder.LITTLE_ENDIAN).asIntBuffer().put(block);
    }
    return KeyDerivation.pbkdf2(password, mixed, 1, bytes);
  }

  /** ROMix: n blocks are written one after the other, then n are read as the last one says. */
  private static void mix(int[] block, int[] memory, int n) {
    int[] half = new int[HALF];
    for (int i = 0; i < n; i++) {
      System.arraycopy(block, 0, memory, BLOCK * i, BLOCK);
      mix(block, half);
    }
    for (int i = 0; i < n; i++) {
      int from = BLOCK * (block[HALF] & n - 1);
      for (int j = 0; j < BLOCK; j++) {
        block[j] ^= memory[from + j];
      }
      mix(block, half);
    }
  }

  /** BlockMix. */
  private static void mix(int[] block, int[] half) {
    for (int j = 0; j < HALF; j++) {
      half[j] = block[HALF + j] ^ block[j];
    }
    Salsa20Engine.salsaCore(SALSA_ROUNDS, half, half);
    System.arraycopy(half, 0, block, 0, HALF);
    for (int j = 0; j < HALF; j++) {
      half[j] ^= block[HALF + j];
    }
    Salsa20Engine.salsaCore(SALSA_ROUNDS, half, half);
    System.arraycopy(half, 0, block, HALF, HALF);
  }
}
