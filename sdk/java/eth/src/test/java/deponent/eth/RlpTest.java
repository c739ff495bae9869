package deponent.eth;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import deponent.sets.Sets;
import java.io.ByteArrayOutputStream;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.Test;

class RlpTest {
  /** The encoding by the words of the yellow paper, part by part. */
  private static byte[] slow(Rlp item) {
    byte[] payload;
    int base;
    if (item instanceof Rlp.Data(Bytes value)) {
      payload = value.toBytes();
      base = 0x80;
      if (payload.length == 1 && payload[0] >= 0) {
        return payload;
      }
    } else {
      ByteArrayOutputStream all = new ByteArrayOutputStream();
      ((Rlp.Items) item).values().forEach(one -> all.writeBytes(slow(one)));
      payload = all.toByteArray();
      base = 0xc0;
    }
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    if (payload.length < 56) {
      out.write(base + payload.length);
    } else {
      byte[] length = BigInteger.valueOf(payload.length).toByteArray();
      int zeros = length[0] == 0 ? 1 : 0;
      out.write(base + 55 + length.length - zeros);
      out.write(length, zeros, length.length - zeros);
    }
    out.writeBytes(payload);
    return out.toByteArray();
  }

  private static Rlp random(Random random, int depth) {
    if (depth == 0 || random.nextInt(3) == 0) {
      int[] lengths = {0, 1, 2, 54, 55, 56, 57, 255, 256, 257, 65_535, 65_536};
      byte[] bytes = new byte[lengths[random.nextInt(depth == 0 ? 10 : 12)]];
      random.nextBytes(bytes);
      return new Rlp.Data(Bytes.of(bytes));
    }
    List<Rlp> items = new ArrayList<>();
    for (int i = random.nextInt(5); i > 0; i--) {
      items.add(random(random, depth - 1));
    }
    return new Rlp.Items(items);
  }

  @Test
  void itIsThatOfTheSlowEncoder() {
    Random random = Sets.random();
    for (int i = 0; i < 1_000; i++) {
      Rlp item = random(random, 4);
      byte[] encoded = slow(item);
      assertArrayEquals(encoded, item.encode());
      assertEquals(item, Rlp.decode(encoded));
      assertEquals(Bytes.of(encoded), new RlpReader(encoded).encoded());
    }
  }

  @Test
  void changedBytesAreRefusedOrEncodeAgainToThemselves() {
    Random random = Sets.random();
    for (int i = 0; i < 20_000; i++) {
      byte[] encoded = random(random, 3).encode();
      encoded[random.nextInt(Math.min(encoded.length, 80))] = (byte) random.nextInt();
      try {
        assertArrayEquals(encoded, Rlp.decode(encoded).encode());
      } catch (MalformedException refused) {
        assertTrue(refused.getMessage().startsWith("RLP at byte "));
      }
    }
  }

  @SuppressWarnings("unchecked")
  private static Rlp ofSet(Object tree) {
    if (tree instanceof List<?> list) {
      return new Rlp.Items(((List<Object>) list).stream().map(RlpTest::ofSet).toList());
    }
    return new Rlp.Data(Bytes.of((String) tree));
  }

  @Test
  void ethersSetIsEncodedAndDecoded() {
    List<Map<String, Object>> set = Sets.ethers("rlp-coder");
    Sets.counted(set, 61);
    for (Map<String, Object> test : set) {
      byte[] encoded = Hex.decode((String) test.get("encoded"));
      Rlp decoded = ofSet(test.get("decoded"));
      assertArrayEquals(encoded, decoded.encode());
      assertEquals(decoded, Rlp.decode(encoded));
    }
  }

  private static Rlp ofFixture(Object in) {
    if (in instanceof List<?> list) {
      return new Rlp.Items(list.stream().map(RlpTest::ofFixture).toList());
    }
    RlpWriter number = new RlpWriter();
    if (in instanceof String text && text.startsWith("#")) {
      return Rlp.decode(number.add(new BigInteger(text.substring(1))).toBytes());
    }
    if (in instanceof String text) {
      return new Rlp.Data(Bytes.of(text.getBytes(StandardCharsets.UTF_8)));
    }
    return Rlp.decode(number.add(new BigInteger(in.toString())).toBytes());
  }

  @Test
  void thePublishedTestsAreEncodedAndDecoded() {
    Map<String, Map<String, Object>> set = Sets.fixture("RLPTests/rlptest.json");
    Sets.counted(set.keySet(), 28);
    set.forEach(
        (name, test) -> {
          byte[] encoded = Hex.decode((String) test.get("out"));
          Rlp decoded = ofFixture(test.get("in"));
          assertArrayEquals(encoded, decoded.encode(), name);
          assertEquals(decoded, Rlp.decode(encoded), name);
        });
  }

  @Test
  void thePublishedInvalidTestsAreRefused() {
    Map.of("invalidRLPTest.json", 26, "RandomRLPTests/example.json", 1)
        .forEach(
            (file, count) -> {
              Map<String, Map<String, Object>> set = Sets.fixture("RLPTests/" + file);
              Sets.counted(set.keySet(), count);
              set.forEach(
                  (name, test) -> {
                    byte[] encoded = Hex.decode((String) test.get("out"));
                    if ("VALID".equals(test.get("in"))) {
                      assertArrayEquals(encoded, Rlp.decode(encoded).encode(), name);
                    } else {
                      assertThrows(MalformedException.class, () -> Rlp.decode(encoded), name);
                    }
                  });
            });
  }

  private static void refused(String hex, String reason) {
    Throwable thrown =
        assertThrows(MalformedException.class, () -> Rlp.decode(Hex.decode(hex)), hex);
    assertTrue(thrown.getMessage().contains(reason), thrown.getMessage());
  }

  @Test
  void longerFormsAndLengthsBeyondTheInputAreRefused() {
    refused("", "an item is missing");
    refused("8101", "a byte below 128 with a head");
    refused("b80161", "a length of 1 in the long form");
    refused("b90001", "a length with leading zeros");
    refused("b8", "the length of an item is cut off");
    refused("bfffffffffffffffff", "longer than the input");
    refused("ffffffffffffffffff", "longer than the input");
    refused("c201", "of which 1 are there");
    refused("c1c2", "of which 0 are there");
    refused("0102", "bytes are left");
  }

  @Test
  void deepListsAreRefusedAndNotRunInto() {
    byte[] nested = {};
    for (int i = 0; i < 5_000; i++) {
      nested = new RlpWriter().list().addEncoded(nested).end().toBytes();
    }
    byte[] deep = nested;
    Throwable thrown = assertThrows(MalformedException.class, () -> Rlp.decode(deep));
    assertTrue(thrown.getMessage().contains("nest deeper than 1024"), thrown.getMessage());
    new RlpReader(deep).skip();
  }

  @Test
  void numbersHaveNoLeadingZerosAndFit() {
    for (long number : new long[] {0, 1, 127, 128, 255, 256, 1L << 32, Long.MAX_VALUE}) {
      byte[] encoded = new RlpWriter().add(number).toBytes();
      assertEquals(number, new RlpReader(encoded).number());
      assertEquals(BigInteger.valueOf(number), new RlpReader(encoded).integer());
      assertArrayEquals(encoded, new RlpWriter().add(BigInteger.valueOf(number)).toBytes());
      assertArrayEquals(encoded, new RlpWriter().add(Wei.of(number)).toBytes());
    }
    BigInteger large = BigInteger.ONE.shiftLeft(255);
    assertEquals(large, new RlpReader(new RlpWriter().add(large).toBytes()).integer());
    assertThrows(MalformedException.class, () -> new RlpReader(Hex.decode("820001")).number());
    assertThrows(MalformedException.class, () -> new RlpReader(Hex.decode("00")).number());
    byte[] beyond = new RlpWriter().add(BigInteger.ONE.shiftLeft(63)).toBytes();
    assertThrows(MalformedException.class, () -> new RlpReader(beyond).number());
    byte[] bits257 = new RlpWriter().add(BigInteger.ONE.shiftLeft(256)).toBytes();
    assertThrows(MalformedException.class, () -> new RlpReader(bits257).integer());
    assertThrows(IllegalArgumentException.class, () -> new RlpWriter().add(-1));
  }

  @Test
  void aReaderGoesThroughListsAndChecksTheirEnds() {
    Address address = Address.of("0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed");
    Hash hash = Keccak256.hash(new byte[3]);
    byte[] rlp =
        new RlpWriter()
            .list()
            .add(7)
            .list()
            .add(address)
            .add(hash)
            .end()
            .add("ab".getBytes(StandardCharsets.US_ASCII))
            .end()
            .toBytes();
    RlpReader reader = new RlpReader(rlp);
    assertEquals(7, reader.list().number());
    reader.list();
    assertEquals(address, reader.address());
    assertThrows(MalformedException.class, reader::end);
    assertEquals(hash, reader.hash());
    reader.end();
    assertEquals(Bytes.of("0x6162"), reader.bytes());
    reader.end().finish();
    assertThrows(IllegalStateException.class, reader::end);
  }
}
