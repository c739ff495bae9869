package deponent.eth;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import deponent.sets.Sets;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.util.HexFormat;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.Test;

/** Hex, addresses, hashes, bytes and amounts. */
class ValuesTest {
  private static void refused(String reason, Runnable made) {
    Throwable thrown = assertThrows(IllegalArgumentException.class, made::run);
    assertTrue(thrown.getMessage().contains(reason), thrown.getMessage());
  }

  @Test
  void hexIsWhatTheJdkMakesOfIt() {
    Random random = Sets.random();
    for (int i = 0; i < 2_000; i++) {
      byte[] bytes = new byte[random.nextInt(200)];
      random.nextBytes(bytes);
      String hex = HexFormat.of().formatHex(bytes);
      assertEquals("0x" + hex, Hex.encode(bytes));
      assertArrayEquals(bytes, Hex.decode(hex));
      assertArrayEquals(bytes, Hex.decode("0x" + hex.toUpperCase(Locale.ROOT)));
    }
  }

  @Test
  void hexOfOddLengthAndOtherCharactersAreRefused() {
    refused("an odd number of hex digits, 3", () -> Hex.decode("0x123"));
    refused("no hex digit at 4: 'g0'", () -> Hex.decode("0x12g0"));
    refused("no hex digit at 1", () -> Hex.decode("1\u0131"));
    refused("no hex digit at 1", () -> Hex.decode("0X12"));
    refused("no hex digit at 0", () -> Hex.decode(" 12 "));
  }

  @Test
  void eachCharacterAtEachPlaceIsADigitOrRefused() {
    for (int place = 0; place < 18; place++) {
      for (char one = 0; one < 300; one++) {
        String hex = "0".repeat(place) + one + "f".repeat(17 - place);
        int value = one < 128 ? Character.digit(one, 16) : -1;
        if (value >= 0) {
          assertEquals(hex.toLowerCase(Locale.ROOT), Hex.encode(Hex.decode(hex)).substring(2));
        } else if (!hex.startsWith("0x")) {
          refused("no hex digit at " + place + ":", () -> Hex.decode(hex));
        }
      }
    }
  }

  @Test
  void addressesHaveTheChecksumsOfTheSet() {
    List<Map<String, Object>> set = Sets.ethers("accounts");
    Sets.counted(set, 1_038);
    for (Map<String, Object> test : set) {
      String checked = (String) test.get("checksumAddress");
      Address address = Address.of((String) test.get("address"));
      assertEquals(checked, address.toString());
      assertEquals(address, Address.of(checked));
      assertEquals(address, Address.of(checked.substring(2)));
      assertEquals(address, Address.of(address.toBytes()));
    }
  }

  @Test
  void addressesWithAWrongChecksumAreRefused() {
    String right = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed";
    assertEquals(right, Address.of(right).toString());
    assertEquals(right, Address.of(right.toLowerCase(Locale.ROOT)).toString());
    String upper = "0x" + right.substring(2).toUpperCase(Locale.ROOT);
    assertEquals(right, Address.of(upper).toString());
    refused("wrong checksum", () -> Address.of(right.replace("Ef1", "ef1")));
    refused("20 bytes, not 19", () -> Address.of(right.substring(0, 40)));
    refused("20 bytes, not 21", () -> Address.of(new byte[21]));
  }

  @Test
  void contractsHaveTheAddressesOfTheirCreators() {
    Address creator = Address.of("0x6ac7ea33f8831ea9dcc53393aaa88b25a785dbf0");
    assertEquals(
        Address.of("0xcd234a471b72ba2f1ccf0a70fcaba648a5eecd8d"), Address.ofCreated(creator, 0));
    assertEquals(
        Address.of("0xfffd933a0bc612844eaf0c6fe3e5b8e9b6c1d19c"), Address.ofCreated(creator, 3));
    // The first example of EIP-1014.
    assertEquals(
        Address.of("0x4D1A2e2bB4F88F0250f26Ffff098B0b30B26BF38"),
        Address.ofCreated(Address.ZERO, Hash.ZERO, Keccak256.hash(new byte[1])));
  }

  @Test
  void valuesAreEqualByTheirBytesAndOrderedByThem() {
    Random random = Sets.random();
    for (int i = 0; i < 2_000; i++) {
      byte[] one = new byte[32];
      byte[] other = new byte[32];
      random.nextBytes(one);
      System.arraycopy(one, 0, other, 0, 32);
      other[random.nextInt(32)] ^= (byte) (1 << random.nextInt(8));
      assertEquals(Hash.of(one), Hash.of(one.clone()));
      assertNotEquals(Hash.of(one), Hash.of(other));
      assertEquals(Hash.of(one).hashCode(), Hash.of(one.clone()).hashCode());
      int expected = Integer.signum(java.util.Arrays.compareUnsigned(one, other));
      assertEquals(expected, Hash.of(one).compareTo(Hash.of(other)));
      assertEquals(
          expected, Wei.of(new BigInteger(1, one)).compareTo(Wei.of(new BigInteger(1, other))));
      assertEquals(expected, Integer.signum(Bytes.of(one).compareTo(Bytes.of(other))));
      assertArrayEquals(one, Hash.of(one).toBytes());
      int addresses = Integer.signum(java.util.Arrays.compareUnsigned(one, 0, 20, other, 0, 20));
      assertEquals(addresses, Address.of(one, 0).compareTo(Address.of(other, 0)));
      assertEquals(addresses == 0, Address.of(one, 0).equals(Address.of(other, 0)));
    }
  }

  @Test
  void nobodyChangesAValue() {
    byte[] bytes = {1, 2, 3};
    Bytes held = Bytes.of(bytes);
    bytes[0] = 9;
    held.toBytes()[1] = 9;
    assertEquals(Bytes.of("0x010203"), held);
    assertTrue(held.asBuffer().isReadOnly());
    assertEquals(Bytes.of("0x0203"), held.slice(1, 3));
    assertEquals(Bytes.of("0x01020302"), Bytes.concat(held, held.slice(1, 2)));
  }

  @Test
  void amountsAreExact() {
    assertEquals(Wei.of(1_500_000_000L), Wei.gwei("1.5"));
    assertEquals("0.500000021", Wei.ether("0.5").plus(Wei.gwei("21")).toEther().toPlainString());
    assertEquals("1000", Wei.ether("1000").toEther().toString());
    assertEquals(new BigDecimal("1.5"), Wei.gwei("1.5").toGwei());
    assertEquals(BigInteger.TEN.pow(18), Wei.ether("1").toBigInteger());
    assertEquals(Wei.ether("2"), Wei.ether("6").dividedBy(3));
    refused("more than 18 decimals", () -> Wei.ether("0.1234567890123456789"));
    refused("no decimal number", () -> Wei.ether("-1"));
    refused("no decimal number", () -> Wei.ether("1e3"));
    refused("not negative", () -> Wei.of(-1));
    refused("from 0 to 2^256-1", () -> Wei.of(BigInteger.ONE.shiftLeft(256)));
    assertThrows(ArithmeticException.class, () -> Wei.of(1).minus(Wei.of(2)));
    Wei most = Wei.of(BigInteger.ONE.shiftLeft(256).subtract(BigInteger.ONE));
    assertThrows(ArithmeticException.class, () -> most.plus(Wei.of(1)));
    assertThrows(ArithmeticException.class, () -> most.times(2));
    assertThrows(ArithmeticException.class, () -> Wei.ether("10").toLong());
    assertEquals(5, Wei.of(5).toLong());
  }

  @Test
  void amountsAreWhatBigIntegerMakesOfThem() {
    Random random = Sets.random();
    for (int i = 0; i < 5_000; i++) {
      BigInteger one = new BigInteger(random.nextInt(257), random);
      BigInteger other = new BigInteger(random.nextInt(257), random);
      assertEquals(one, Wei.of(one).toBigInteger());
      assertEquals(one.toString(), Wei.of(one).toString());
      assertEquals(one.bitLength(), Wei.of(one).bitLength());
      if (one.add(other).bitLength() <= 256) {
        assertEquals(one.add(other), Wei.of(one).plus(Wei.of(other)).toBigInteger());
      }
      if (one.compareTo(other) >= 0) {
        assertEquals(one.subtract(other), Wei.of(one).minus(Wei.of(other)).toBigInteger());
      }
    }
  }

  @Test
  void etherAndGweiAreThoseOfTheSet() {
    List<Map<String, Object>> set = Sets.ethers("units");
    Sets.counted(set, 20);
    for (Map<String, Object> test : set) {
      String wei = (String) test.get("wei");
      if (wei.startsWith("-")) {
        continue;
      }
      Wei amount = Wei.of(new BigInteger(wei));
      if (test.get("ether") instanceof String ether) {
        assertEquals(amount, Wei.ether(ether));
        assertEquals(0, amount.toEther().compareTo(new BigDecimal(ether)));
      }
      if (test.get("gwei") instanceof String gwei) {
        assertEquals(amount, Wei.gwei(gwei));
      }
    }
  }
}
