package deponent.wallet;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import deponent.eth.Address;
import deponent.eth.Authorization;
import deponent.eth.Bytes;
import deponent.eth.Hash;
import deponent.eth.Keccak256;
import deponent.eth.Signature;
import deponent.eth.SigningRequest;
import deponent.eth.TypedData;
import deponent.sets.Sets;
import java.math.BigInteger;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.Test;

class KeysTest {
  private static final BigInteger ORDER =
      new BigInteger("fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141", 16);

  @Test
  void keysHaveTheAddressesOfTheSet() {
    List<Map<String, Object>> set = Sets.ethers("accounts");
    Sets.counted(set, 1_038);
    for (Map<String, Object> test : set) {
      if (test.get("privateKey") instanceof String secret) {
        PrivateKey key = PrivateKey.of(secret);
        assertEquals(Address.of((String) test.get("address")), key.address());
        assertEquals(secret, Bytes.of(key.toBytes()).toString());
        Bytes compressed = key.publicKey().compressed();
        assertEquals(key.publicKey(), PublicKey.of(compressed));
        assertEquals(key.publicKey(), PublicKey.of(key.publicKey().toBytes()));
      }
    }
  }

  @Test
  void whatIsSignedIsRecovered() {
    Random random = Sets.random();
    for (int i = 0; i < 300; i++) {
      PrivateKey key = PrivateKey.random();
      byte[] bytes = new byte[32];
      random.nextBytes(bytes);
      Hash hash = Hash.of(bytes);
      Signature signature = key.sign(hash);
      assertTrue(signature.isCanonical());
      assertEquals(signature, key.sign(hash));
      assertEquals(key.publicKey(), PublicKey.recover(hash, signature).orElseThrow());
      assertTrue(key.publicKey().verifies(hash, signature));
      Hash other = Keccak256.hash(bytes);
      assertFalse(key.publicKey().verifies(other, signature));
      Authorization.Signed signed = key.sign(Authorization.of(1, key.address(), 5));
      assertEquals(key.address(), Recovery.authority(signed).orElseThrow());
    }
  }

  @Test
  void theVectorsOfRfc6979AreSigned() {
    // Of Trezor's and CoreBitcoin's sets, whose messages are hashed by SHA-256.
    check(
        "0000000000000000000000000000000000000000000000000000000000000001",
        "Satoshi Nakamoto",
        "934b1ea10a4b3c1757e2b0c017d0b6143ce3c9a7e6a4a49860d7a6ab210ee3d8"
            + "2442ce9d2b916064108014783e923ec36b49743e2ffa1c4496f01a512aafd9e5");
    check(
        "f8b8af8ce3c7cca5e300d33939540c10d45ce001b8f252bfbc57ba0342904181",
        "Alan Turing",
        "7063ae83e7f62bbb171798131b4a0564b956930092b33b07b395615d9ec7e15c"
            + "58dfcc1e00a35e1572f366ffe34ba0fc47db1e7189759b9fb233c5b05ab388ea");
  }

  private static void check(String secret, String message, String expected) {
    Hash hash = Hash.of(sha256(message.getBytes()));
    Bytes signature = PrivateKey.of(secret).sign(hash).toBytes();
    assertEquals("0x" + expected, signature.slice(0, 64).toString());
  }

  private static byte[] sha256(byte[] input) {
    try {
      return java.security.MessageDigest.getInstance("SHA-256").digest(input);
    } catch (java.security.NoSuchAlgorithmException no) {
      throw new AssertionError(no);
    }
  }

  @Test
  void messagesAndTypedDataAreSigned() {
    // The example of EIP-712, whose key is the hash of "cow"; and that of ethers for a message.
    PrivateKey cow = PrivateKey.of(Keccak256.hash("cow".getBytes()).toBytes());
    Address bob = Address.of("0xbBbBBBBbbBBBbbbBbbBbbbbBBbBbbbbBbBbbBBbB");
    TypedData mail =
        TypedData.of(
            TypedData.domain(
                "Ether Mail", "1", 1, Address.of("0xCcCCccccCCCCcCCCCCCcCcCccCcCCCcCcccccccC")),
            "Mail",
            TypedData.types(
                "Mail(Person from,Person to,string contents)",
                "Person(string name,address wallet)"),
            Map.of(
                "from", List.of("Cow", cow.address()),
                "to", List.of("Bob", bob),
                "contents", "Hello, Bob!"));
    Signature signature = cow.sign(mail);
    assertEquals(
        "0x4355c47d63924e8a72e509b65029052eb6c299d53a04e167c5775fd466751c9d"
            + "07299936d304c153f6443dfa05f40ff007d72911b6f72307f996231605b915621c",
        signature.toString());
    assertEquals(
        cow.address(),
        Recovery.signer(new SigningRequest.OfTypedData(mail), signature).orElseThrow());
    Signature greeting = cow.signMessage("Hello");
    Bytes hello = Bytes.of("Hello".getBytes());
    assertEquals(
        cow.address(),
        Recovery.signer(new SigningRequest.OfMessage(hello), greeting).orElseThrow());
  }

  @Test
  void aKeyOfNoVariableSaysSo() {
    Throwable thrown =
        assertThrows(
            NullPointerException.class, () -> PrivateKey.of(System.getenv("DEPONENT_NO_SUCH")));
    assertTrue(thrown.getMessage().contains("is the variable set"), thrown.getMessage());
  }

  @Test
  void whatIsNoKeyIsRefusedAndNotShown() {
    String order = ORDER.toString(16);
    for (String secret :
        List.of("", "00", "00".repeat(32), order, "ff".repeat(32), "01".repeat(33), "zz")) {
      Throwable thrown =
          assertThrows(IllegalArgumentException.class, () -> PrivateKey.of(secret), secret);
      assertFalse(secret.length() > 2 && thrown.getMessage().contains(secret));
    }
    assertEquals(
        ORDER.subtract(BigInteger.ONE),
        new BigInteger(1, PrivateKey.of(ORDER.subtract(BigInteger.ONE).toString(16)).toBytes()));
    for (String point :
        List.of("00", "02" + "ff".repeat(32), "05" + "00".repeat(32), "04" + "01".repeat(64))) {
      assertThrows(IllegalArgumentException.class, () -> PublicKey.of(Bytes.of(point)), point);
    }
  }

  @Test
  void signaturesOfNoKeyRecoverNothing() {
    Hash hash = Keccak256.hash(new byte[1]);
    BigInteger one = BigInteger.ONE;
    BigInteger zero = BigInteger.ZERO;
    for (Signature signature :
        List.of(
            new Signature(zero, one, 0),
            new Signature(one, zero, 0),
            new Signature(ORDER, one, 0),
            new Signature(one, ORDER, 1),
            new Signature(one, one, 2),
            // No point has this x.
            new Signature(BigInteger.valueOf(5), one, 0))) {
      assertTrue(PublicKey.recover(hash, signature).isEmpty(), signature.toString());
    }
  }

  @Test
  void aDestroyedKeySignsNothing() {
    PrivateKey key = PrivateKey.random();
    assertFalse(key.toString().contains(Bytes.of(key.toBytes()).toString().substring(2)));
    byte[] before = key.toBytes();
    key.close();
    assertTrue(key.isDestroyed());
    assertThrows(IllegalStateException.class, () -> key.sign(Hash.ZERO));
    assertThrows(IllegalStateException.class, key::toBytes);
    assertArrayEquals(before, PrivateKey.of(before).toBytes());
  }
}
