package deponent.wallet;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import deponent.eth.Address;
import deponent.eth.Bytes;
import deponent.eth.MalformedException;
import deponent.sets.Sets;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.bouncycastle.crypto.generators.SCrypt;
import org.junit.jupiter.api.Test;

class KeystoreTest {
  /** Cheap: a test opens many. */
  private static final Keystore.Scrypt FEW = new Keystore.Scrypt(1 << 10, 8, 1);

  private static String json(Object tree) {
    return switch (tree) {
      case Map<?, ?> map -> {
        StringBuilder text = new StringBuilder("{");
        map.forEach(
            (name, value) ->
                text.append(text.length() > 1 ? "," : "")
                    .append(json(name))
                    .append(':')
                    .append(json(value)));
        yield text.append('}').toString();
      }
      case String text -> '"' + text + '"';
      default -> tree.toString();
    };
  }

  @Test
  void thePublishedKeystoresAreOpenedAndWrittenAgain() {
    Map<String, Map<String, Object>> set = Sets.fixture("KeyStoreTests/basic_tests.json");
    Sets.counted(set.keySet(), 5);
    set.forEach(
        (name, test) -> {
          Keystore keystore = Keystore.ofJson(json(test.get("json")));
          PrivateKey key = keystore.decrypt((String) test.get("password"));
          assertEquals("0x" + test.get("priv"), Bytes.of(key.toBytes()).toString(), name);
          Keystore again = Keystore.ofJson(keystore.toJson());
          assertEquals(keystore.toJson(), again.toJson(), name);
          assertEquals(keystore.id(), again.id(), name);
        });
  }

  @Test
  void keystoresOfTheSetAreOpened() {
    List<Map<String, Object>> set = Sets.ethers("wallets");
    Sets.counted(set, 9);
    for (Map<String, Object> test : set) {
      String json = (String) test.get("json");
      String password = (String) test.get("password");
      boolean presale = test.get("type").equals("crowdsale");
      if (presale) {
        assertThrows(MalformedException.class, () -> Keystore.ofJson(json));
        assertThrows(
            IllegalArgumentException.class, () -> Keystore.decryptPresale(json, password + "x"));
      }
      PrivateKey key =
          presale
              ? Keystore.decryptPresale(json, password)
              : Keystore.ofJson(json).decrypt(password);
      assertEquals(test.get("privateKey"), Bytes.of(key.toBytes()).toString());
      assertEquals(Address.of((String) test.get("address")), key.address());
    }
  }

  @Test
  void theNarrowScryptIsBouncyCastlesWhereThatGoes() {
    Random random = Sets.random();
    for (int i = 0; i < 20; i++) {
      byte[] password = new byte[random.nextInt(40)];
      byte[] salt = new byte[random.nextInt(40)];
      random.nextBytes(password);
      random.nextBytes(salt);
      int n = 2 << random.nextInt(12);
      int lanes = 1 + random.nextInt(3);
      assertArrayEquals(
          SCrypt.generate(password, salt, n, 1, lanes, 32 + i),
          NarrowScrypt.derive(password, salt, n, lanes, 32 + i));
    }
  }

  private static final PrivateKey KEY =
      PrivateKey.of("7a28b5ba57c53603b0b07b56bba752f7784bf506fa95edc395f5cf6c7514fe9d");

  @Test
  void aKeyIsPutUnderAPasswordAndTakenOut() {
    for (String password : new String[] {"", "foo", "p\u00e4ss \u20ac \ud83d\ude00"}) {
      Keystore keystore = Keystore.encrypt(KEY, password, FEW);
      assertEquals(KEY.address(), keystore.address().orElseThrow());
      assertFalse(keystore.toJson().contains("7a28b5ba57c5"));
      PrivateKey key = Keystore.ofJson(keystore.toJson()).decrypt(password);
      assertArrayEquals(KEY.toBytes(), key.toBytes());
      Throwable thrown =
          assertThrows(IllegalArgumentException.class, () -> keystore.decrypt(password + "x"));
      assertTrue(thrown.getMessage().startsWith("another password"), thrown.getMessage());
    }
    for (int[] wrong :
        new int[][] {{1 << 21, 8, 1}, {1000, 8, 1}, {1, 8, 1}, {1024, 0, 1}, {1024, 8, -1}}) {
      assertThrows(
          IllegalArgumentException.class, () -> new Keystore.Scrypt(wrong[0], wrong[1], wrong[2]));
    }
    String light = Keystore.encrypt(KEY, "a", Keystore.Scrypt.LIGHT).toJson();
    assertTrue(light.contains("\"n\":4096,\"p\":6,\"r\":8"), light);
    assertEquals(KEY.address(), Keystore.ofJson(light).decrypt("a").address());
  }

  private static void refused(String from, String to, String reason) {
    String json = Keystore.encrypt(KEY, "a", FEW).toJson();
    assertTrue(json.contains(from), json);
    Throwable thrown =
        assertThrows(MalformedException.class, () -> Keystore.ofJson(json.replace(from, to)), to);
    assertTrue(thrown.getMessage().contains(reason), thrown.getMessage());
  }

  @Test
  void whatIsNoKeystoreOrCostsTooMuchIsRefused() {
    refused("\"version\":3", "\"version\":1", "version 3 is read, not 1");
    refused("aes-128-ctr", "aes-256-ctr", "not 'aes-256-ctr'");
    refused("\"kdf\":\"scrypt\"", "\"kdf\":\"argon\"", "not 'argon'");
    refused("\"kdf\":\"scrypt\"", "\"kdf\":\"pbkdf2\"", "c=0");
    refused("\"n\":1024", "\"n\":1000", "a power of two");
    refused("\"n\":1024", "\"n\":4194304", "1 GiB at most");
    refused("\"n\":1024", "\"n\":4611686018427387904", "1 GiB at most");
    refused("\"p\":1", "\"p\":1025", "1 GiB at most");
    refused("\"r\":8", "\"r\":0", "a power of two");
    refused("\"dklen\":32", "\"dklen\":31", "32 to 64 bytes");
    refused("\"salt\":\"", "\"salt\":\"0", "an odd number of hex digits");
    refused("\"iv\":\"", "\"iv\":\"00", "16 bytes of iv, not 17 bytes");
    refused("\"mac\"", "\"tag\"", "32 bytes of mac, not none");
    refused("\"address\":\"", "\"address\":\"00", "20 bytes, not 21");
    refused("{", "[", "JSON at byte 0");
  }

  @Test
  void aKeystoreOfAnotherAccountIsNotOpened() {
    String json = Keystore.encrypt(KEY, "a", FEW).toJson();
    String other = json.replaceFirst("\"address\":\"..", "\"address\":\"11");
    Throwable thrown =
        assertThrows(IllegalArgumentException.class, () -> Keystore.ofJson(other).decrypt("a"));
    assertTrue(thrown.getMessage().contains("its key is that of"), thrown.getMessage());
  }

  @Test
  void changedJsonIsRefusedOrItsKeyTheSame() {
    Random random = Sets.random();
    byte[] json = Keystore.encrypt(KEY, "a", FEW).toJson().getBytes();
    for (int i = 0; i < 300; i++) {
      byte[] changed = json.clone();
      changed[random.nextInt(json.length)] = (byte) (32 + random.nextInt(95));
      try {
        PrivateKey key = Keystore.ofJson(new String(changed)).decrypt("a");
        assertArrayEquals(KEY.toBytes(), key.toBytes());
      } catch (MalformedException | IllegalArgumentException refused) {
        assertTrue(refused.getMessage().length() < 400, refused.getMessage());
      }
    }
  }

  @Test
  void halvesOfSurrogatePairsAreNoPasswords() {
    String smile = "\ud83d\ude00";
    PrivateKey same = Keystore.encrypt(KEY, smile, FEW).decrypt(smile);
    assertArrayEquals(KEY.toBytes(), same.toBytes());
    Keystore asked = Keystore.encrypt(KEY, "?", FEW);
    Mnemonic mnemonic = Mnemonic.random(12);
    String wallet =
        "{\"encseed\": \"" + "00".repeat(32) + "\", \"ethaddr\": \"" + "00".repeat(20) + "\"}";
    for (String half : List.of("\ud83d", "\ude00", "a\ud83d", "\ude00\ud83d", smile + "\ude00")) {
      for (Runnable one :
          List.<Runnable>of(
              () -> asked.decrypt(half),
              () -> Keystore.encrypt(KEY, half, FEW),
              () -> mnemonic.seed(half),
              () -> Keystore.decryptPresale(wallet, half))) {
        String message = assertThrows(IllegalArgumentException.class, one::run, half).getMessage();
        assertTrue(message.endsWith("has half of a surrogate pair"), message);
      }
      assertThrows(IllegalArgumentException.class, () -> KEY.signMessage(half));
    }
  }

  @Test
  void whatIsNoWalletOfThePresaleIsRefused() {
    String address = "\"ethaddr\": \"" + "00".repeat(20) + "\"";
    for (String json :
        List.of(
            "{}",
            "{" + address + "}",
            "{\"encseed\": \"" + "00".repeat(32) + "\"}",
            "{\"encseed\": \"" + "00".repeat(16) + "\", " + address + "}",
            "{\"encseed\": \"" + "00".repeat(33) + "\", " + address + "}",
            "{\"encseed\": \"" + "00".repeat(4_112) + "\", " + address + "}",
            "{\"encseed\": \"" + "00".repeat(32) + "\", \"ethaddr\": \"00\"}")) {
      assertThrows(MalformedException.class, () -> Keystore.decryptPresale(json, "a"), json);
    }
    String other = "{\"encseed\": \"" + "00".repeat(32) + "\", " + address + "}";
    assertThrows(IllegalArgumentException.class, () -> Keystore.decryptPresale(other, "a"), other);
  }
}
