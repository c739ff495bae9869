package deponent.eth;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import deponent.sets.Sets;
import java.io.ByteArrayInputStream;
import java.io.InputStream;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;

class JsonTest {
  /** Gives at most three bytes at a time. */
  private static JsonReader slowly(byte[] json) {
    InputStream in =
        new ByteArrayInputStream(json) {
          @Override
          public synchronized int read(byte[] into, int at, int length) {
            return super.read(into, at, Math.min(length, 3));
          }
        };
    return new JsonReader(in, 64);
  }

  private static final String TEXT =
      "{\"a\":[1,-2.5e3,true,false,null],\"b\\u0041\":{\"hash\":\"0x"
          + "ab".repeat(32)
          + "\", \"long\" : \"\u00e4\\n\\ud83d\\ude00\u20ac "
          + "x".repeat(300)
          + "\"},\"\":[[],{}]} ";

  private static final String TREE =
      "{a=[1, -2.5E+3, true, false, null], bA={hash=0x"
          + "ab".repeat(32)
          + ", long=\u00e4\n\ud83d\ude00\u20ac "
          + "x".repeat(300)
          + "}, =[[], {}]}";

  @Test
  void allKindsAreReadWholeAndByteByByte() {
    byte[] bytes = TEXT.getBytes(StandardCharsets.UTF_8);
    for (JsonReader json : List.of(new JsonReader(bytes), slowly(bytes))) {
      assertEquals(TREE, Sets.tree(json).toString());
      json.finish();
      assertEquals(bytes.length, json.position());
    }
    JsonReader skipped = slowly(bytes);
    skipped.skipValue();
    skipped.finish();
    JsonReader text = slowly(bytes);
    assertEquals(TEXT.strip(), text.nextJson());
    text.finish();
  }

  @Test
  void membersAreSkippedAndTakenAsText() {
    JsonReader json = slowly(TEXT.getBytes(StandardCharsets.UTF_8));
    json.beginObject();
    assertTrue(json.hasNext());
    assertTrue(json.hasNext());
    assertEquals("a", json.nextName());
    assertEquals("[1,-2.5e3,true,false,null]", json.nextJson());
    assertEquals("bA", json.nextName());
    json.skipValue();
    assertEquals("", json.nextName());
    json.beginArray();
    json.skipValue();
    assertTrue(json.hasNext());
    json.skipValue();
    assertFalse(json.hasNext());
    json.endArray();
    json.endObject();
    json.finish();
  }

  @Test
  void readingGoesOnBehindAValueOfAnotherForm() {
    String[] values = {
      "{\"a\":[1,{\"b\":\"}]\"}],\"c\":null}",
      "[[[]],1]",
      "\"0xabc\"",
      "\"0x0g\\\"\"",
      "true",
      "-1e5",
      "[]"
    };
    for (String value : values) {
      String text = "{\"x\":" + value + ",\"y\":[" + value + ",7]} {\"z\":8} ";
      byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
      for (JsonReader json : List.of(new JsonReader(bytes), slowly(bytes))) {
        json.beginObject();
        json.nextName();
        assertEquals(1, json.depth());
        assertThrows(MalformedException.class, json::nextBytes);
        json.leaveTo(1);
        assertEquals("y", json.nextName());
        json.beginArray();
        // One of the values is an array, and is left where it was opened.
        if (json.peek() == JsonReader.Kind.ARRAY) {
          json.beginArray();
        }
        json.leaveTo(1);
        assertFalse(json.hasNext());
        json.endObject();
        assertTrue(json.nextDocument());
        json.beginObject();
        json.nextName();
        assertThrows(MalformedException.class, json::nextDocument);
        json.leaveTo(1);
        json.endObject();
        assertFalse(json.nextDocument());
      }
    }
  }

  @Test
  void aReaderIsUsedAgain() {
    JsonReader json = new JsonReader("[1,{\"a\":");
    assertThrows(MalformedException.class, json::skipValue);
    byte[] next = "  {\"b\":2} ".getBytes(StandardCharsets.UTF_8);
    assertEquals("{b=2}", Sets.tree(json.reset(next, 2, 7)).toString());
    json.finish();
    assertEquals(7, json.position());
    assertThrows(IllegalStateException.class, () -> slowly(next).reset(next, 0, 1));
  }

  @Test
  void namesAreFoundInATable() {
    String[] members = {
      "number",
      "hash",
      "parentHash",
      "nonce",
      "sha3Uncles",
      "logsBloom",
      "transactionsRoot",
      "stateRoot",
      "receiptsRoot",
      "miner",
      "difficulty",
      "extraData",
      "size",
      "gasLimit",
      ""
    };
    JsonReader.Names names = JsonReader.Names.of(members);
    for (int i = 0; i < members.length; i++) {
      JsonReader json = new JsonReader("{\"" + members[i] + "\":1,\"other\":2,\"n\\u006fnce\":3}");
      json.beginObject();
      assertEquals(i, json.nextName(names), members[i]);
      assertEquals(1, json.nextLong());
      assertEquals(-1, json.nextName(names));
      json.skipValue();
      assertEquals(3, json.nextName(names));
      assertEquals(3, json.nextLong());
      json.endObject();
    }
  }

  @Test
  void hexOfAnyLengthIsDecodedWhileItArrives() {
    Random random = Sets.random();
    for (int length : new int[] {0, 1, 31, 32, 63, 64, 65, 1_000, 100_000}) {
      byte[] bytes = new byte[length];
      random.nextBytes(bytes);
      byte[] json = ("[\"" + Hex.encode(bytes) + "\"]").getBytes(StandardCharsets.US_ASCII);
      for (JsonReader reader : List.of(new JsonReader(json), slowly(json))) {
        reader.beginArray();
        assertEquals(Bytes.of(bytes), reader.nextBytes());
        reader.endArray();
        reader.finish();
      }
    }
  }

  @Test
  void wholeNumbersAreWrittenAndReadAsLongDoesIt() {
    Random random = Sets.random();
    long[] edges = {0, 9, 10, 99, 100, -1, -10, Long.MAX_VALUE, Long.MIN_VALUE, 1L << 62};
    for (int i = 0; i < 2_000; i++) {
      long number = i < edges.length ? edges[i] : random.nextLong() >> random.nextInt(64);
      byte[] json = new JsonWriter().beginArray().value(number).value(i).endArray().toBytes();
      String text = new String(json, StandardCharsets.US_ASCII);
      assertEquals("[" + number + "," + i + "]", text);
      for (JsonReader reader : List.of(new JsonReader(json), slowly(json))) {
        reader.beginArray();
        assertEquals(number, reader.nextLong());
        assertEquals(i, reader.nextLong());
        reader.endArray();
        reader.finish();
      }
    }
    for (String wrong : List.of("01", "1x", "1.0", "1e2", "9223372036854775808", "-")) {
      byte[] json = ("[" + wrong + "]").getBytes(StandardCharsets.US_ASCII);
      for (JsonReader reader : List.of(new JsonReader(json), slowly(json))) {
        reader.beginArray();
        assertThrows(
            MalformedException.class,
            () -> {
              reader.nextLong();
              reader.endArray();
            },
            wrong);
      }
    }
  }

  @Test
  void valuesOfEthereumAreRead() {
    JsonWriter out = new JsonWriter();
    Address address = Address.of("0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed");
    Hash hash = Keccak256.hash(new byte[1]);
    BigInteger big = BigInteger.ONE.shiftLeft(256).subtract(BigInteger.ONE);
    out.beginArray().value(address).value(hash).quantity(0).quantity(Long.MAX_VALUE).quantity(big);
    out.quantity(Wei.ether("1")).value(Bytes.of("0x00ff")).value(-5).value(true).nullValue();
    out.value("\"\\\n\u00e4\ud83d").beginObject().name("n").value(1).name("m").beginArray();
    out.endArray().endObject().endArray();
    JsonReader in = slowly(out.toBytes());
    in.beginArray();
    assertEquals(address, in.nextAddress());
    assertEquals(hash, in.nextHash());
    assertEquals(0, in.nextQuantity());
    assertEquals(Long.MAX_VALUE, in.nextQuantity());
    assertEquals(big, in.nextBigQuantity());
    assertEquals(Wei.ether("1"), in.nextWei());
    assertEquals(Bytes.of("0x00ff"), in.nextBytes());
    assertEquals(-5, in.nextLong());
    assertTrue(in.nextBoolean());
    assertTrue(in.nextNull());
    assertEquals("\"\\\n\u00e4\ud83d", in.nextString());
    assertEquals("{\"n\":1,\"m\":[]}", in.nextJson());
    in.endArray();
    in.finish();
  }

  private static void refused(String json, String reason) {
    for (JsonReader reader :
        List.of(new JsonReader(json), slowly(json.getBytes(StandardCharsets.UTF_8)))) {
      Throwable thrown =
          assertThrows(
              MalformedException.class,
              () -> {
                Sets.tree(reader);
                reader.finish();
              },
              json);
      assertTrue(thrown.getMessage().contains(reason), thrown.getMessage());
    }
    JsonReader skipper = new JsonReader(json);
    assertThrows(
        MalformedException.class,
        () -> {
          skipper.skipValue();
          skipper.finish();
        },
        json);
  }

  @Test
  void whatIsNoJsonIsRefusedWithItsPlace() {
    refused("", "at byte 0: the text ends where a value is expected");
    refused("[1,]", "at byte 3: no value: ']'");
    refused("[1 2]", "a comma is expected");
    refused("{\"a\":1,}", "a name is expected");
    refused("{\"a\" 1}", "a colon is expected");
    refused("{a:1}", "a name is expected");
    refused("[1", "the text ends in an object or array");
    refused("\"abc", "the text ends in a string");
    refused("\"a\nb\"", "a control character");
    refused("tru", "the text ends in true");
    refused("trux", "no value");
    refused("nul!", "no value");
    refused("1.", "no number");
    refused("-", "no number");
    refused("1 1", "something is left behind");
    refused("[1}", "a comma is expected");
    refused("NaN", "no value");
    refused("[".repeat(600), "nest deeper than 512");
    refused("1".repeat(2_000), "a number of more than");
  }

  @Test
  void wrongEscapesAndBytesAreRefused() {
    for (String json : List.of("\"\\x\"", "\"\\u12g4\"", "\"\\u12\"")) {
      assertThrows(MalformedException.class, () -> new JsonReader(json).nextString(), json);
    }
    byte[] latin = {'"', (byte) 0xe4, '"'};
    assertThrows(MalformedException.class, () -> new JsonReader(latin).nextString());
  }

  @Test
  void wrongValuesOfEthereumAreRefused() {
    check("\"0x\"", JsonReader::nextQuantity, "begins with 0x");
    check("\"12\"", JsonReader::nextQuantity, "begins with 0x");
    check("12", JsonReader::nextQuantity, "not a quantity");
    check("\"0xg\"", JsonReader::nextQuantity, "no hex digits");
    check("\"0x8000000000000000\"", JsonReader::nextQuantity, "beyond 2^63-1");
    check("\"0x" + "f".repeat(65) + "\"", JsonReader::nextWei, "more than 256 bits");
    check("\"0x12\"", JsonReader::nextAddress, "has 40 digits, not 2");
    check("\"0x" + "0".repeat(63) + "x\"", JsonReader::nextHash, "no hex digits");
    check("\"0x123\"", JsonReader::nextBytes, "an odd number");
    check("\"0x1g\"", JsonReader::nextBytes, "no hex digit: 'g\"'");
    check("\"0x12", JsonReader::nextBytes, "the text ends in hex");
    check("1.5", JsonReader::nextLong, "no whole number");
    check("9223372036854775808", JsonReader::nextLong, "no whole number");
    JsonReader leading = new JsonReader("\"0x000000000000000000001\"");
    assertEquals(1, leading.nextQuantity());
  }

  private interface Read {
    Object of(JsonReader json);
  }

  private static void check(String json, Read read, String reason) {
    for (JsonReader reader :
        List.of(new JsonReader(json), slowly(json.getBytes(StandardCharsets.UTF_8)))) {
      Throwable thrown = assertThrows(MalformedException.class, () -> read.of(reader), json);
      assertTrue(thrown.getMessage().contains(reason), thrown.getMessage());
    }
  }

  @Test
  void changedBytesAreRefusedOrReadAlikeInAnyPieces() {
    Random random = Sets.random();
    byte[] whole = TEXT.getBytes(StandardCharsets.UTF_8);
    for (int i = 0; i < 20_000; i++) {
      byte[] json = whole.clone();
      json[random.nextInt(json.length)] = (byte) random.nextInt();
      assertEquals(outcome(new JsonReader(json)), outcome(slowly(json)));
    }
  }

  private static String outcome(JsonReader json) {
    try {
      String tree = Sets.tree(json).toString();
      json.finish();
      return tree;
    } catch (MalformedException refused) {
      return "refused";
    }
  }

  @Test
  void hexMayEndTheText() {
    for (int size = 0; size < 100; size++) {
      String hex = "\"0x" + "ab".repeat(size) + "\"";
      assertEquals(size, new JsonReader(hex).nextBytes().size());
      assertEquals(size, slowly(hex.getBytes(StandardCharsets.US_ASCII)).nextBytes().size());
    }
  }
}
