package deponent.wallet;

import deponent.eth.Address;
import deponent.eth.Bytes;
import deponent.eth.JsonReader;
import deponent.eth.JsonWriter;
import deponent.eth.Keccak256;
import deponent.eth.MalformedException;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.security.SecureRandom;
import java.util.Arrays;
import java.util.Locale;
import java.util.Optional;
import java.util.UUID;
import javax.crypto.Cipher;
import javax.crypto.spec.IvParameterSpec;
import javax.crypto.spec.SecretKeySpec;
import org.jspecify.annotations.Nullable;

/**
 * A private key under a password: the keystore of version 3, as geth and other wallets have it.
 *
 * <pre>{@code
 * PrivateKey key = Keystore.ofJson(Files.readString(file)).decrypt(password);
 * Files.writeString(file, Keystore.encrypt(key, password).toJson());
 * }</pre>
 */
public final class Keystore {
  private static final int VERSION = 3;
  private static final int KEY_BYTES = 32;

  private final String id;
  private final @Nullable Address address;
  private final Bytes iv;
  private final Bytes ciphertext;
  private final Bytes mac;
  private final KeyDerivation derivation;

  private Keystore(
      String id,
      @Nullable Address address,
      Bytes iv,
      Bytes ciphertext,
      Bytes mac,
      KeyDerivation derivation) {
    this.id = id;
    this.address = address;
    this.iv = iv;
    this.ciphertext = ciphertext;
    this.mac = mac;
    this.derivation = derivation;
  }

  /**
   * Of its JSON. What costs more than a GiB of memory or 2^24 rounds to open is refused.
   *
   * @throws MalformedException if it is no keystore of version 3
   */
  public static Keystore ofJson(String json) {
    Fields fields = new Fields();
    JsonReader reader = new JsonReader(json);
    fields.read(reader);
    reader.finish();
    return fields.keystore();
  }

  /**
   * The key of a wallet of Ethereum's sale of 2014, whose JSON has a member {@code encseed}.
   *
   * @throws MalformedException if it is no such wallet
   * @throws IllegalArgumentException if the password is another, or the wallet was changed
   */
  public static PrivateKey decryptPresale(String json, String password) {
    return Presale.ofJson(json).decrypt(password);
  }

  /**
   * The cost of scrypt (RFC 7914), which takes 128 n r bytes of memory, and time that grows with n
   * r p. Who guesses passwords pays it for each guess.
   *
   * @param n a power of two
   * @param r blocks of 128 bytes
   * @param p times that it is done
   */
  public record Scrypt(int n, int r, int p) {
    /** 256 MiB, a second or two: what geth takes. */
    public static final Scrypt STANDARD = new Scrypt(1 << 18, 8, 1);

    /** 4 MiB, a tenth of a second: geth's for small devices. */
    public static final Scrypt LIGHT = new Scrypt(1 << 12, 8, 6);

    /**
     * Checks the bounds.
     *
     * @throws IllegalArgumentException if n is no power of two, r or p is not from 1 to 1,024, or
     *     it takes more than a GiB or 2^24 rounds n r p
     */
    public Scrypt {
      if (!KeyDerivation.isScrypt(n, r, p)) {
        throw new IllegalArgumentException(KeyDerivation.noScrypt(n, r, p));
      }
    }
  }

  /** Puts a key under a password, by {@link Scrypt#STANDARD}. */
  public static Keystore encrypt(PrivateKey key, String password) {
    return encrypt(key, password, Scrypt.STANDARD);
  }

  /** Puts a key under a password, at a cost that is chosen. */
  public static Keystore encrypt(PrivateKey key, String password, Scrypt cost) {
    SecureRandom random = new SecureRandom();
    Bytes salt = random(random, 32);
    Bytes iv = random(random, 16);
    KeyDerivation derivation = KeyDerivation.scrypt(salt, KEY_BYTES, cost.n(), cost.r(), cost.p());
    byte[] derived = derivation.derive(password);
    byte[] secret = key.toBytes();
    try {
      Bytes ciphertext = Bytes.of(cipher(Cipher.ENCRYPT_MODE, derived, iv, secret));
      String id = UUID.randomUUID().toString();
      return new Keystore(id, key.address(), iv, ciphertext, mac(derived, ciphertext), derivation);
    } finally {
      Arrays.fill(derived, (byte) 0);
      Arrays.fill(secret, (byte) 0);
    }
  }

  private static Bytes random(SecureRandom random, int count) {
    byte[] bytes = new byte[count];
    random.nextBytes(bytes);
    return Bytes.of(bytes);
  }

  /** The account, where the keystore says it. Nothing proves it before {@link #decrypt}. */
  public Optional<Address> address() {
    return Optional.ofNullable(address);
  }

  /** The keystore's own name. */
  public String id() {
    return id;
  }

  /**
   * The key.
   *
   * @throws IllegalArgumentException if the password is another, or the keystore was changed
   */
  public PrivateKey decrypt(String password) {
    byte[] derived = derivation.derive(password);
    byte[] secret = new byte[0];
    try {
      if (!MessageDigest.isEqual(mac(derived, ciphertext).toBytes(), mac.toBytes())) {
        throw new IllegalArgumentException("another password, or a keystore that was changed");
      }
      secret = cipher(Cipher.DECRYPT_MODE, derived, iv, ciphertext.toBytes());
      PrivateKey key = PrivateKey.of(secret);
      Address its = key.address();
      if (address != null && !address.equals(its)) {
        key.destroy();
        throw new IllegalArgumentException(
            "the keystore says " + address + ", and its key is that of " + its);
      }
      return key;
    } finally {
      Arrays.fill(secret, (byte) 0);
      Arrays.fill(derived, (byte) 0);
    }
  }

  private static Bytes mac(byte[] derived, Bytes ciphertext) {
    return Bytes.of(
        new Keccak256().update(derived, 16, 16).update(ciphertext.toBytes()).digest().toBytes());
  }

  private static byte[] cipher(int mode, byte[] derived, Bytes iv, byte[] input) {
    try {
      Cipher cipher = Cipher.getInstance("AES/CTR/NoPadding");
      SecretKeySpec key = new SecretKeySpec(derived, 0, 16, "AES");
      cipher.init(mode, key, new IvParameterSpec(iv.toBytes()));
      return cipher.doFinal(input);
    } catch (GeneralSecurityException no) {
      throw new IllegalStateException("each Java has AES", no);
    }
  }

  /** The JSON, as a file of geth's keystore has it. */
  public String toJson() {
    JsonWriter json = new JsonWriter(512).beginObject();
    if (address != null) {
      json.name("address").value(digits(Bytes.of(address.toBytes())));
    }
    json.name("crypto").beginObject().name("cipher").value("aes-128-ctr");
    json.name("ciphertext").value(digits(ciphertext));
    json.name("cipherparams").beginObject().name("iv").value(digits(iv)).endObject();
    derivation.write(json);
    json.name("mac").value(digits(mac)).endObject();
    json.name("id").value(id).name("version").value(VERSION).endObject();
    return new String(json.toBytes(), StandardCharsets.UTF_8);
  }

  static String digits(Bytes bytes) {
    return bytes.toString().substring(2);
  }

  /** The account and not the key. */
  @Override
  public String toString() {
    return "Keystore[" + (address == null ? id : address) + "]";
  }

  /** The members of the JSON; wallets differ in the cases of their names. */
  private static final class Fields {
    private String id = "";
    private long version;
    private String cipher = "";
    private @Nullable String address;
    private @Nullable Bytes iv;
    private @Nullable Bytes ciphertext;
    private @Nullable Bytes mac;
    private final KeyDerivation.Fields derivation = new KeyDerivation.Fields();

    void read(JsonReader json) {
      json.beginObject();
      while (json.hasNext()) {
        switch (json.nextName().toLowerCase(Locale.ROOT)) {
          case "id" -> id = json.nextString();
          case "version" -> version = version(json);
          case "address" -> address = json.nextString();
          case "crypto" -> crypto(json);
          default -> json.skipValue();
        }
      }
      json.endObject();
    }

    private static long version(JsonReader json) {
      if (json.peek() == JsonReader.Kind.STRING) {
        return json.nextString().equals("3") ? VERSION : 0;
      }
      return json.nextLong();
    }

    private void crypto(JsonReader json) {
      json.beginObject();
      while (json.hasNext()) {
        switch (json.nextName().toLowerCase(Locale.ROOT)) {
          case "cipher" -> cipher = json.nextString();
          case "ciphertext" -> ciphertext = hex(json);
          case "mac" -> mac = hex(json);
          case "cipherparams" -> {
            json.beginObject();
            while (json.hasNext()) {
              if (json.nextName().equals("iv")) {
                iv = hex(json);
              } else {
                json.skipValue();
              }
            }
            json.endObject();
          }
          case "kdf" -> derivation.name = json.nextString();
          case "kdfparams" -> derivation.read(json);
          default -> json.skipValue();
        }
      }
      json.endObject();
    }

    Keystore keystore() {
      if (version != VERSION) {
        throw new MalformedException("a keystore of version 3 is read, not " + version);
      }
      if (!cipher.equals("aes-128-ctr")) {
        throw new MalformedException("a keystore is under aes-128-ctr, not " + shown(cipher));
      }
      Bytes vector = there(iv, "iv", 16);
      Bytes secret = there(ciphertext, "ciphertext", KEY_BYTES);
      Bytes tag = there(mac, "mac", 32);
      return new Keystore(id, account(), vector, secret, tag, derivation.checked());
    }

    private @Nullable Address account() {
      if (address == null || address.isEmpty()) {
        return null;
      }
      try {
        return Address.of(address);
      } catch (IllegalArgumentException no) {
        throw new MalformedException("a keystore's address: " + no.getMessage(), no);
      }
    }
  }

  static Bytes hex(JsonReader json) {
    try {
      return Bytes.of(json.nextString());
    } catch (IllegalArgumentException no) {
      throw new MalformedException("a keystore: " + no.getMessage(), no);
    }
  }

  static Bytes there(@Nullable Bytes bytes, String name, int size) {
    if (bytes == null || bytes.size() != size) {
      String found = bytes == null ? "none" : bytes.size() + " bytes";
      throw new MalformedException(
          "a keystore has " + size + " bytes of " + name + ", not " + found);
    }
    return bytes;
  }

  static String shown(String text) {
    return "'" + (text.length() > 40 ? text.substring(0, 40) + ".." : text) + "'";
  }
}
