package deponent.wallet;

import deponent.eth.Bytes;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.util.Arrays;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;
import javax.security.auth.Destroyable;

/**
 * A private key in a tree of keys (BIP-32). Its text does not show it.
 *
 * <pre>{@code
 * try (HdKey root = mnemonic.root("");
 *     HdKey account = root.derive("m/44'/60'/0'/0/5")) {
 *   account.privateKey();
 * }
 * }</pre>
 */
public final class HdKey implements Destroyable, AutoCloseable {
  /** Where wallets put Ethereum's keys, but for their index (BIP-44). */
  public static final String ETHEREUM = "m/44'/60'/0'/0";

  private static final int HARDENED = 1 << 31;
  private static final int PRIVATE_VERSION = 0x0488ade4;
  private static final int PUBLIC_VERSION = 0x0488b21e;
  private static final int ENCODED = 78;

  private static final BigInteger ORDER =
      new BigInteger("fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141", 16);

  private final PrivateKey key;
  private final byte[] chainCode;
  private final int depth;
  private final int parent;
  private final int index;

  private HdKey(PrivateKey key, byte[] chainCode, int depth, int parent, int index) {
    this.key = key;
    this.chainCode = chainCode;
    this.depth = depth;
    this.parent = parent;
    this.index = index;
  }

  /**
   * The root that a seed has, of 16 to 64 bytes.
   *
   * @throws IllegalArgumentException if there are more or fewer, or one of 2^127 has no root
   */
  public static HdKey ofSeed(byte[] seed) {
    if (seed.length < 16 || seed.length > 64) {
      throw new IllegalArgumentException("a seed has 16 to 64 bytes, not " + seed.length);
    }
    byte[] halves = hmac("Bitcoin seed".getBytes(StandardCharsets.US_ASCII), seed);
    byte[] secret = Arrays.copyOf(halves, PrivateKey.SIZE);
    byte[] chainCode = Arrays.copyOfRange(halves, PrivateKey.SIZE, halves.length);
    try {
      return new HdKey(PrivateKey.of(secret), chainCode, 0, 0, 0);
    } finally {
      Arrays.fill(halves, (byte) 0);
      Arrays.fill(secret, (byte) 0);
    }
  }

  /**
   * Of its text, {@code xprv} and what follows.
   *
   * @throws IllegalArgumentException if it is none; the message does not show it
   */
  public static HdKey of(String extended) {
    byte[] bytes = Base58.decodeChecked(extended);
    try {
      if (bytes.length != ENCODED) {
        throw new IllegalArgumentException("an extended key has 78 bytes, not " + bytes.length);
      }
      ByteBuffer in = ByteBuffer.wrap(bytes);
      if (in.getInt() != PRIVATE_VERSION) {
        throw new IllegalArgumentException("no extended private key: those begin with xprv");
      }
      int depth = in.get() & 0xff;
      int parent = in.getInt();
      int index = in.getInt();
      if (depth == 0 && (parent != 0 || index != 0)) {
        throw new IllegalArgumentException("a root has neither a parent nor an index");
      }
      byte[] chainCode = new byte[32];
      in.get(chainCode);
      if (in.get() != 0) {
        throw new IllegalArgumentException("a private key does not begin with 0");
      }
      byte[] secret = Arrays.copyOfRange(bytes, ENCODED - PrivateKey.SIZE, ENCODED);
      try {
        return new HdKey(PrivateKey.of(secret), chainCode, depth, parent, index);
      } finally {
        Arrays.fill(secret, (byte) 0);
      }
    } finally {
      Arrays.fill(bytes, (byte) 0);
    }
  }

  /**
   * The key at a path below this one, such as {@code m/44'/60'/0'/0/0}; {@code m} is this key, and
   * may be left out. An apostrophe or an {@code h} hardens.
   *
   * @throws IllegalArgumentException if it is no path, or goes deeper than 255 levels
   * @throws IllegalStateException if the key was destroyed
   */
  public HdKey derive(String path) {
    String[] parts = path.split("/", -1);
    int first = parts[0].equals("m") ? 1 : 0;
    int[] indexes = new int[parts.length - first];
    for (int i = first; i < parts.length; i++) {
      indexes[i - first] = index(parts[i], i);
    }
    HdKey found = new HdKey(privateKey(), chainCode.clone(), depth, parent, index);
    for (int next : indexes) {
      HdKey above = found;
      try {
        found = above.childAt(next);
      } finally {
        above.destroy();
      }
    }
    return found;
  }

  private static int index(String part, int place) {
    boolean hardened = part.endsWith("'") || part.endsWith("h") || part.endsWith("H");
    String digits = hardened ? part.substring(0, part.length() - 1) : part;
    if (digits.matches("[0-9]{1,10}") && Long.parseLong(digits) < 1L << 31) {
      return (int) Long.parseLong(digits) | (hardened ? HARDENED : 0);
    }
    throw new IllegalArgumentException(
        "part " + place + " of the path is no number below 2^31, with or without an apostrophe");
  }

  /**
   * A child.
   *
   * @param index from 0 to 2^31-1
   * @param hardened whether those who know the public key cannot know the child's
   * @throws IllegalArgumentException if the index is negative, or one of 2^127 has no key
   * @throws IllegalStateException if the key was destroyed
   */
  public HdKey child(int index, boolean hardened) {
    if (index < 0) {
      throw new IllegalArgumentException("an index is from 0 to 2^31-1, not " + index);
    }
    return childAt(hardened ? index | HARDENED : index);
  }

  private HdKey childAt(int number) {
    if (depth == 255) {
      throw new IllegalArgumentException("a tree of keys has 255 levels at most");
    }
    ByteBuffer data = ByteBuffer.allocate(37);
    byte[] secret = key.toBytes();
    if (number < 0) {
      data.put((byte) 0).put(secret);
    } else {
      data.put(key.publicKey().compressed().toBytes());
    }
    byte[] halves = hmac(chainCode, data.putInt(number).array());
    byte[] child = new byte[PrivateKey.SIZE];
    try {
      BigInteger left = new BigInteger(1, halves, 0, PrivateKey.SIZE);
      BigInteger sum = left.add(new BigInteger(1, secret)).mod(ORDER);
      if (left.compareTo(ORDER) >= 0 || sum.signum() == 0) {
        throw new IllegalArgumentException("there is no key at this index: take the next one");
      }
      byte[] bytes = sum.toByteArray();
      int length = Math.min(bytes.length, child.length);
      System.arraycopy(bytes, bytes.length - length, child, child.length - length, length);
      Arrays.fill(bytes, (byte) 0);
      byte[] code = Arrays.copyOfRange(halves, PrivateKey.SIZE, halves.length);
      return new HdKey(PrivateKey.of(child), code, depth + 1, fingerprint(), number);
    } finally {
      Arrays.fill(data.array(), (byte) 0);
      Arrays.fill(secret, (byte) 0);
      Arrays.fill(halves, (byte) 0);
      Arrays.fill(child, (byte) 0);
    }
  }

  /** The first four bytes of the public key's hash, by which children name it. */
  private int fingerprint() {
    return ByteBuffer.wrap(Base58.hash160(key.publicKey().compressed().toBytes())).getInt();
  }

  private static byte[] hmac(byte[] key, byte[] data) {
    try {
      Mac mac = Mac.getInstance("HmacSHA512");
      mac.init(new SecretKeySpec(key, "HmacSHA512"));
      return mac.doFinal(data);
    } catch (GeneralSecurityException no) {
      throw new IllegalStateException("each Java has HmacSHA512", no);
    }
  }

  /**
   * A copy of the key, which outlives this one.
   *
   * @throws IllegalStateException if the key was destroyed
   */
  public PrivateKey privateKey() {
    byte[] secret = key.toBytes();
    try {
      return PrivateKey.of(secret);
    } finally {
      Arrays.fill(secret, (byte) 0);
    }
  }

  /** The public key. */
  public PublicKey publicKey() {
    return key.publicKey();
  }

  /** The levels above this key: 0 of the root. */
  public int depth() {
    return depth;
  }

  /**
   * The text that wallets exchange: {@code xprv}, and a secret.
   *
   * @throws IllegalStateException if the key was destroyed
   */
  public String extended() {
    byte[] secret = key.toBytes();
    try {
      return encoded(PRIVATE_VERSION, (byte) 0, secret);
    } finally {
      Arrays.fill(secret, (byte) 0);
    }
  }

  /**
   * The text of the public key: {@code xpub}. With it, and one private key below that is not
   * hardened, this key is known.
   *
   * @throws IllegalStateException if the key was destroyed
   */
  public String extendedPublic() {
    Bytes point = key.publicKey().compressed();
    return encoded(PUBLIC_VERSION, point.at(0), point.slice(1, 33).toBytes());
  }

  private String encoded(int version, byte first, byte[] rest) {
    if (key.isDestroyed()) {
      throw new IllegalStateException("the key was destroyed");
    }
    ByteBuffer out = ByteBuffer.allocate(ENCODED).putInt(version).put((byte) depth);
    out.putInt(parent).putInt(index).put(chainCode).put(first).put(rest);
    String text = Base58.encodeChecked(out.array());
    Arrays.fill(out.array(), (byte) 0);
    return text;
  }

  /** Overwrites the key and the code of its children. */
  @Override
  public void destroy() {
    key.destroy();
    Arrays.fill(chainCode, (byte) 0);
  }

  @Override
  public boolean isDestroyed() {
    return key.isDestroyed();
  }

  /** As {@link #destroy}. */
  @Override
  public void close() {
    destroy();
  }

  /** The address and the depth, and not the key. */
  @Override
  public String toString() {
    return "HdKey[" + key.address() + ", depth " + depth + "]";
  }
}
