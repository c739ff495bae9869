package deponent.eth;

import java.util.Objects;

/**
 * Keccak-256, the hash function of Ethereum: the sponge as submitted to the contest, whose padding
 * is not that of SHA3-256.
 *
 * <pre>{@code
 * Keccak256.hash("transfer(address,uint256)".getBytes(StandardCharsets.UTF_8));
 * }</pre>
 */
public final class Keccak256 {
  /** Bytes of input that one permutation takes. */
  private static final int RATE = 136;

  private static final long[] ROUNDS = {
    0x0000000000000001L, 0x0000000000008082L, 0x800000000000808aL, 0x8000000080008000L,
    0x000000000000808bL, 0x0000000080000001L, 0x8000000080008081L, 0x8000000000008009L,
    0x000000000000008aL, 0x0000000000000088L, 0x0000000080008009L, 0x000000008000000aL,
    0x000000008000808bL, 0x800000000000008bL, 0x8000000000008089L, 0x8000000000008003L,
    0x8000000000008002L, 0x8000000000000080L, 0x000000000000800aL, 0x800000008000000aL,
    0x8000000080008081L, 0x8000000000008080L, 0x0000000080000001L, 0x8000000080008008L,
  };

  private final long[] state = new long[25];
  private final byte[] block = new byte[RATE];
  private int filled;

  /** Begins with no input. */
  public Keccak256() {}

  /** The hash of {@code input}. */
  public static Hash hash(byte[] input) {
    return hash(input, 0, input.length);
  }

  /** The hash of {@code input}. */
  public static Hash hash(Bytes input) {
    return hash(input.array, 0, input.array.length);
  }

  /**
   * The hash of {@code length} bytes from {@code at} on.
   *
   * @throws IndexOutOfBoundsException if they are not all there
   */
  public static Hash hash(byte[] input, int at, int length) {
    Objects.checkFromIndexSize(at, length, input.length);
    long[] state = new long[25];
    int end = at + length;
    while (end - at >= RATE) {
      absorb(state, input, at);
      at += RATE;
    }
    byte[] last = new byte[RATE];
    System.arraycopy(input, at, last, 0, end - at);
    return finish(state, last, end - at);
  }

  /**
   * Adds all of {@code input}.
   *
   * @return this one
   */
  public Keccak256 update(byte[] input) {
    return update(input, 0, input.length);
  }

  /**
   * Adds {@code length} bytes from {@code at} on.
   *
   * @return this one
   * @throws IndexOutOfBoundsException if they are not all there
   */
  public Keccak256 update(byte[] input, int at, int length) {
    Objects.checkFromIndexSize(at, length, input.length);
    int end = at + length;
    if (filled > 0) {
      int taken = Math.min(RATE - filled, length);
      System.arraycopy(input, at, block, filled, taken);
      filled += taken;
      at += taken;
      if (filled < RATE) {
        return this;
      }
      absorb(state, block, 0);
      filled = 0;
    }
    for (; end - at >= RATE; at += RATE) {
      absorb(state, input, at);
    }
    System.arraycopy(input, at, block, 0, end - at);
    filled = end - at;
    return this;
  }

  /** The hash of all that was added; what is added next begins another one. */
  public Hash digest() {
    Hash hash = finish(state, block, filled);
    java.util.Arrays.fill(state, 0);
    filled = 0;
    return hash;
  }

  private static Hash finish(long[] state, byte[] block, int filled) {
    java.util.Arrays.fill(block, filled, RATE, (byte) 0);
    block[filled] = 1;
    block[RATE - 1] |= (byte) 0x80;
    absorb(state, block, 0);
    byte[] hash = new byte[Hash.SIZE];
    for (int i = 0; i < 4; i++) {
      Words.putLittleLong(hash, 8 * i, state[i]);
    }
    return Hash.of(hash, 0);
  }

  private static void absorb(long[] state, byte[] input, int at) {
    for (int i = 0; i < RATE / 8; i++) {
      state[i] ^= Words.getLittleLong(input, at + 8 * i);
    }
    permute(state);
  }

  /** Keccak-f[1600]; lane x, y is at x + 5y. */
  private static void permute(long[] a) {
    long a0 = a[0],
        a1 = a[1],
        a2 = a[2],
        a3 = a[3],
        a4 = a[4],
        a5 = a[5],
        a6 = a[6],
        a7 = a[7],
        a8 = a[8],
        a9 = a[9],
        a10 = a[10],
        a11 = a[11],
        a12 = a[12],
        a13 = a[13],
        a14 = a[14],
        a15 = a[15],
        a16 = a[16],
        a17 = a[17],
        a18 = a[18],
        a19 = a[19],
        a20 = a[20],
        a21 = a[21],
        a22 = a[22],
        a23 = a[23],
        a24 = a[24];
    for (long round : ROUNDS) {
      long c0 = a0 ^ a5 ^ a10 ^ a15 ^ a20;
      long c1 = a1 ^ a6 ^ a11 ^ a16 ^ a21;
      long c2 = a2 ^ a7 ^ a12 ^ a17 ^ a22;
      long c3 = a3 ^ a8 ^ a13 ^ a18 ^ a23;
      long c4 = a4 ^ a9 ^ a14 ^ a19 ^ a24;
      long d0 = c4 ^ Long.rotateLeft(c1, 1);
      long d1 = c0 ^ Long.rotateLeft(c2, 1);
      long d2 = c1 ^ Long.rotateLeft(c3, 1);
      long d3 = c2 ^ Long.rotateLeft(c4, 1);
      long d4 = c3 ^ Long.rotateLeft(c0, 1);
      long b0 = a0 ^ d0;
      long b10 = Long.rotateLeft(a1 ^ d1, 1);
      long b20 = Long.rotateLeft(a2 ^ d2, 62);
      long b5 = Long.rotateLeft(a3 ^ d3, 28);
      long b15 = Long.rotateLeft(a4 ^ d4, 27);
      long b16 = Long.rotateLeft(a5 ^ d0, 36);
      long b1 = Long.rotateLeft(a6 ^ d1, 44);
      long b11 = Long.rotateLeft(a7 ^ d2, 6);
      long b21 = Long.rotateLeft(a8 ^ d3, 55);
      long b6 = Long.rotateLeft(a9 ^ d4, 20);
      long b7 = Long.rotateLeft(a10 ^ d0, 3);
      long b17 = Long.rotateLeft(a11 ^ d1, 10);
      long b2 = Long.rotateLeft(a12 ^ d2, 43);
      long b12 = Long.rotateLeft(a13 ^ d3, 25);
      long b22 = Long.rotateLeft(a14 ^ d4, 39);
      long b23 = Long.rotateLeft(a15 ^ d0, 41);
      long b8 = Long.rotateLeft(a16 ^ d1, 45);
      long b18 = Long.rotateLeft(a17 ^ d2, 15);
      long b3 = Long.rotateLeft(a18 ^ d3, 21);
      long b13 = Long.rotateLeft(a19 ^ d4, 8);
      long b14 = Long.rotateLeft(a20 ^ d0, 18);
      long b24 = Long.rotateLeft(a21 ^ d1, 2);
      long b9 = Long.rotateLeft(a22 ^ d2, 61);
      long b19 = Long.rotateLeft(a23 ^ d3, 56);
      long b4 = Long.rotateLeft(a24 ^ d4, 14);
      a0 = b0 ^ (~b1 & b2) ^ round;
      a1 = b1 ^ (~b2 & b3);
      a2 = b2 ^ (~b3 & b4);
      a3 = b3 ^ (~b4 & b0);
      a4 = b4 ^ (~b0 & b1);
      a5 = b5 ^ (~b6 & b7);
      a6 = b6 ^ (~b7 & b8);
      a7 = b7 ^ (~b8 & b9);
      a8 = b8 ^ (~b9 & b5);
      a9 = b9 ^ (~b5 & b6);
      a10 = b10 ^ (~b11 & b12);
      a11 = b11 ^ (~b12 & b13);
      a12 = b12 ^ (~b13 & b14);
      a13 = b13 ^ (~b14 & b10);
      a14 = b14 ^ (~b10 & b11);
      a15 = b15 ^ (~b16 & b17);
      a16 = b16 ^ (~b17 & b18);
      a17 = b17 ^ (~b18 & b19);
      a18 = b18 ^ (~b19 & b15);
      a19 = b19 ^ (~b15 & b16);
      a20 = b20 ^ (~b21 & b22);
      a21 = b21 ^ (~b22 & b23);
      a22 = b22 ^ (~b23 & b24);
      a23 = b23 ^ (~b24 & b20);
      a24 = b24 ^ (~b20 & b21);
    }
    a[0] = a0;
    a[1] = a1;
    a[2] = a2;
    a[3] = a3;
    a[4] = a4;
    a[5] = a5;
    a[6] = a6;
    a[7] = a7;
    a[8] = a8;
    a[9] = a9;
    a[10] = a10;
    a[11] = a11;
    a[12] = a12;
    a[13] = a13;
    a[14] = a14;
    a[15] = a15;
    a[16] = a16;
    a[17] = a17;
    a[18] = a18;
    a[19] = a19;
    a[20] = a20;
    a[21] = a21;
    a[22] = a22;
    a[23] = a23;
    a[24] = a24;
  }
}
