package deponent.wallet;

import deponent.eth.Address;
import deponent.eth.Bytes;
import deponent.eth.JsonReader;
import deponent.eth.Keccak256;
import deponent.eth.MalformedException;
import java.security.GeneralSecurityException;
import java.util.Arrays;
import javax.crypto.Cipher;
import javax.crypto.spec.IvParameterSpec;
import javax.crypto.spec.SecretKeySpec;
import org.jspecify.annotations.Nullable;

/** The wallets that Ethereum's sale of 2014 gave out: a seed under a password. */
final class Presale {
  private static final int ROUNDS = 2_000;
  private static final int BLOCK = 16;

  /** The seed is a text of 194 digits; nothing is as long as this. */
  private static final int LONGEST = 4_096;

  private final Bytes encrypted;
  private final Address address;

  private Presale(Bytes encrypted, Address address) {
    this.encrypted = encrypted;
    this.address = address;
  }

  static Presale ofJson(String json) {
    JsonReader reader = new JsonReader(json);
    @Nullable Bytes encrypted = null;
    @Nullable String address = null;
    reader.beginObject();
    while (reader.hasNext()) {
      switch (reader.nextName()) {
        case "encseed" -> encrypted = Keystore.hex(reader);
        case "ethaddr" -> address = reader.nextString();
        default -> reader.skipValue();
      }
    }
    reader.endObject();
    reader.finish();
    boolean blocks = encrypted != null && encrypted.size() % BLOCK == 0;
    if (!blocks || encrypted.size() < 2 * BLOCK || encrypted.size() > LONGEST || address == null) {
      throw new MalformedException("a wallet of the presale has encseed, in blocks, and ethaddr");
    }
    try {
      return new Presale(encrypted, Address.of(address));
    } catch (IllegalArgumentException no) {
      throw new MalformedException("a presale's ethaddr: " + no.getMessage(), no);
    }
  }

  PrivateKey decrypt(String password) {
    byte[] secret = KeyDerivation.utf8(password, "a password");
    byte[] derived = KeyDerivation.pbkdf2(secret, secret, ROUNDS, BLOCK);
    byte[] seed = new byte[0];
    try {
      seed = seed(derived);
      PrivateKey key = PrivateKey.of(Keccak256.hash(seed).toBytes());
      if (key.address().equals(address)) {
        return key;
      }
      key.destroy();
    } catch (GeneralSecurityException padding) {
      // The password is another one.
    } finally {
      Arrays.fill(secret, (byte) 0);
      Arrays.fill(derived, (byte) 0);
      Arrays.fill(seed, (byte) 0);
    }
    throw new IllegalArgumentException("another password, or a wallet that was changed");
  }

  private byte[] seed(byte[] derived) throws GeneralSecurityException {
    byte[] bytes = encrypted.toBytes();
    Cipher cipher = Cipher.getInstance("AES/CBC/PKCS5Padding");
    IvParameterSpec iv = new IvParameterSpec(bytes, 0, BLOCK);
    cipher.init(Cipher.DECRYPT_MODE, new SecretKeySpec(derived, "AES"), iv);
    return cipher.doFinal(bytes, BLOCK, bytes.length - BLOCK);
  }
}
