package deponent.wallet;

import deponent.eth.Bytes;
import deponent.eth.JsonReader;
import deponent.eth.JsonWriter;
import deponent.eth.MalformedException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Locale;
import org.bouncycastle.crypto.digests.SHA256Digest;
import org.bouncycastle.crypto.generators.PKCS5S2ParametersGenerator;
import org.bouncycastle.crypto.generators.SCrypt;
import org.bouncycastle.crypto.params.KeyParameter;
import org.jspecify.annotations.Nullable;

/**
 * The way from a password to a key.
 *
 * @param salt random bytes
 * @param bytes the number of bytes of the key
 * @param rounds of PBKDF2 with HMAC and SHA-256, or n of scrypt
 * @param blocks r of scrypt, and 0 of PBKDF2
 * @param lanes p of scrypt, and 0 of PBKDF2
 */
record KeyDerivation(Bytes salt, int bytes, int rounds, int blocks, int lanes) {
  /** Most memory of scrypt, in bytes. */
  private static final long MOST_MEMORY = 1L << 30;

  /** Most rounds of PBKDF2, and most work of scrypt as n times r times p. */
  private static final long MOST_ROUNDS = 1L << 24;

  static KeyDerivation scrypt(Bytes salt, int bytes, int n, int r, int p) {
    return new KeyDerivation(salt, bytes, n, r, p);
  }

  /** The key of a password, whose bytes do not stay in memory. */
  byte[] derive(String password) {
    byte[] bytes = utf8(password, "a password");
    try {
      return derive(bytes);
    } finally {
      Arrays.fill(bytes, (byte) 0);
    }
  }

  /**
   * A secret text as UTF-8. Java writes halves of surrogate pairs as question marks, so that one
   * text would open what another has closed.
   *
   * @throws IllegalArgumentException if there is such a half; the message shows none of the text
   */
  static byte[] utf8(String text, String what) {
    for (int i = 0; i < text.length(); i++) {
      if (Character.isSurrogate(text.charAt(i))) {
        if (Character.isBmpCodePoint(text.codePointAt(i))) {
          throw new IllegalArgumentException(what + " has half of a surrogate pair");
        }
        i++;
      }
    }
    return text.getBytes(StandardCharsets.UTF_8);
  }

  private byte[] derive(byte[] password) {
    if (blocks == 0) {
      return pbkdf2(password, salt.toBytes(), rounds, bytes);
    }
    if (blocks == 1 && rounds >= 1 << 16) {
      return NarrowScrypt.derive(password, salt.toBytes(), rounds, lanes, bytes);
    }
    return SCrypt.generate(password, salt.toBytes(), rounds, blocks, lanes, bytes);
  }

  static byte[] pbkdf2(byte[] password, byte[] salt, int rounds, int bytes) {
    PKCS5S2ParametersGenerator pbkdf2 = new PKCS5S2ParametersGenerator(new SHA256Digest());
    pbkdf2.init(password, salt, rounds);
    return ((KeyParameter) pbkdf2.generateDerivedMacParameters(8 * bytes)).getKey();
  }

  /** Whether these are parameters of scrypt, within the bounds. */
  static boolean isScrypt(long n, long r, long p) {
    boolean numbers = n > 1 && Long.bitCount(n) == 1 && r > 0 && p > 0;
    // Bounded one by one first, so that the products do not overflow.
    boolean few = n <= MOST_ROUNDS && r <= 1_024 && p <= 1_024;
    return numbers && few && 128 * n * r <= MOST_MEMORY && n * r * p <= MOST_ROUNDS;
  }

  static String noScrypt(long n, long r, long p) {
    String what = "scrypt with n=" + n + ", r=" + r + ", p=" + p;
    return what + ": n is a power of two; 2^24 rounds, 1 GiB at most";
  }

  void write(JsonWriter json) {
    json.name("kdf").value(blocks > 0 ? "scrypt" : "pbkdf2").name("kdfparams").beginObject();
    json.name("dklen").value(bytes);
    if (blocks > 0) {
      json.name("n").value(rounds).name("p").value(lanes).name("r").value(blocks);
    } else {
      json.name("c").value(rounds).name("prf").value("hmac-sha256");
    }
    json.name("salt").value(Keystore.digits(salt)).endObject();
  }

  /** The members of the JSON. */
  static final class Fields {
    String name = "";
    private String prf = "";
    private @Nullable Bytes salt;
    private long bytes;
    private long n;
    private long r;
    private long p;
    private long c;

    void read(JsonReader json) {
      json.beginObject();
      while (json.hasNext()) {
        switch (json.nextName()) {
          case "salt" -> salt = Keystore.hex(json);
          case "dklen" -> bytes = json.nextLong();
          case "n" -> n = json.nextLong();
          case "r" -> r = json.nextLong();
          case "p" -> p = json.nextLong();
          case "c" -> c = json.nextLong();
          case "prf" -> prf = json.nextString();
          default -> json.skipValue();
        }
      }
      json.endObject();
    }

    KeyDerivation checked() {
      if (salt == null || salt.size() > 1_024) {
        throw new MalformedException("a keystore has a salt of 1,024 bytes at most");
      }
      if (bytes < 32 || bytes > 64) {
        throw new MalformedException("a keystore's key has 32 to 64 bytes, not " + bytes);
      }
      return switch (name.toLowerCase(Locale.ROOT)) {
        case "scrypt" -> scrypt(salt);
        case "pbkdf2" -> pbkdf2(salt);
        default ->
            throw new MalformedException(
                "a keystore's kdf is scrypt or pbkdf2, not " + Keystore.shown(name));
      };
    }

    private KeyDerivation scrypt(Bytes salt) {
      if (!isScrypt(n, r, p)) {
        throw new MalformedException(noScrypt(n, r, p));
      }
      return new KeyDerivation(salt, (int) bytes, (int) n, (int) r, (int) p);
    }

    private KeyDerivation pbkdf2(Bytes salt) {
      if (!prf.equalsIgnoreCase("hmac-sha256") || c < 1 || c > MOST_ROUNDS) {
        throw new MalformedException(
            "pbkdf2 with c=" + c + " and " + Keystore.shown(prf) + ": hmac-sha256, 2^24 at most");
      }
      return new KeyDerivation(salt, (int) bytes, (int) c, 0, 0);
    }
  }
}
