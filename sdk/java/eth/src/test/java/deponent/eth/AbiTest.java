package deponent.eth;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.management.ThreadMXBean;
import deponent.sets.Sets;
import java.lang.management.ManagementFactory;
import java.math.BigInteger;
import java.nio.BufferOverflowException;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.Test;

class AbiTest {
  private static final Address FRIEND = Address.of("0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed");
  private static final AbiFunction TRANSFER =
      AbiFunction.of("function transfer(address to, uint256 value) returns (bool)");

  private static void refused(String reason, Runnable made) {
    Throwable thrown = assertThrows(IllegalArgumentException.class, made::run);
    assertTrue(thrown.getMessage().contains(reason), thrown.getMessage());
  }

  private static void malformed(String reason, Runnable made) {
    Throwable thrown = assertThrows(MalformedException.class, made::run);
    assertTrue(thrown.getMessage().contains(reason), thrown.getMessage());
  }

  @Test
  void aTransferIsEncodedAndDecoded() {
    String expected =
        "0xa9059cbb0000000000000000000000005aaeb6053f3e94c9b9a09f33669435e7ef1beaed"
            + "0000000000000000000000000000000000000000000000000de0b6b3a7640000";
    Wei one = Wei.ether("1");
    for (Object value : List.of(one, one.toBigInteger(), one.toLong())) {
      assertEquals(expected, TRANSFER.encodeHex(FRIEND, value));
      assertEquals(Bytes.of(expected), TRANSFER.encode(FRIEND, value));
    }
    AbiValues arguments = TRANSFER.decodeArguments(Bytes.of(expected));
    assertEquals(FRIEND, arguments.address("to"));
    assertEquals(one.toBigInteger(), arguments.integer(1));
    assertTrue(TRANSFER.decodeResult(AbiValuesOf.word(1)).bool(0));
    assertEquals("transfer(address,uint256)", TRANSFER.signature());
    assertEquals(
        "function transfer(address to, uint256 value) returns (bool)", TRANSFER.toString());
    assertTrue(TRANSFER.isCalledBy(Bytes.of(expected)));
    assertFalse(TRANSFER.isCalledBy(Bytes.of("0xa9059c")));
  }

  @Test
  void anEncodingIsThatOfTheSlowEncoder() {
    Random random = Sets.random();
    for (int i = 0; i < 20_000; i++) {
      AbiType type = AbiValuesOf.randomType(random, 4);
      assertEquals(type, AbiType.of(type.toString()));
      Object value = AbiValuesOf.random(type, random);
      Bytes encoded = AbiValuesOf.slow(type, value);
      assertEquals(encoded, type.encode(value), type.toString());
      assertEquals(value, type.decode(encoded.toBytes()), type.toString());
    }
  }

  @Test
  void changedBytesAreRefusedOrDecodeToValuesThatEncode() {
    Random random = Sets.random();
    for (int i = 0; i < 50_000; i++) {
      AbiType type = AbiValuesOf.randomType(random, 4);
      byte[] encoded = type.encode(AbiValuesOf.random(type, random)).toBytes();
      if (encoded.length == 0) {
        continue;
      }
      for (int changes = random.nextInt(3); changes >= 0; changes--) {
        encoded[random.nextInt(encoded.length)] = (byte) (1 << random.nextInt(8));
      }
      byte[] cut = Arrays.copyOf(encoded, encoded.length - random.nextInt(2));
      try {
        Object value = type.decode(cut);
        assertEquals(value, type.decode(type.encode(value).toBytes()));
      } catch (MalformedException refused) {
        assertTrue(refused.getMessage().startsWith("ABI at byte "), refused.getMessage());
      }
    }
  }

  @Test
  void valuesOutOfRangeAreRefusedWithTheirPlace() {
    refused(
        "transfer(address,uint256) .value: -1 does not fit uint256",
        () -> TRANSFER.encode(FRIEND, -1));
    refused(".to: String is no value of address", () -> TRANSFER.encode("0x", 1));
    refused("1 values, where (address,uint256) has 2", () -> TRANSFER.encode(FRIEND));
    AbiFunction all = AbiFunction.of("f(uint8[] a, (bytes4 b, int8 c)[2] d)");
    Bytes four = Bytes.of("0x01020304");
    Object right = List.of(List.of(four, 127), List.of(four, -128));
    all.encode(List.of(0, 255), right);
    refused("f(uint8[],(bytes4,int8)[2]) .a[1]: 256", () -> all.encode(List.of(1, 256), right));
    refused("3 elements do not fit", () -> all.encode(List.of(), List.of(1, 2, 3)));
    Object wrong = List.of(List.of(four, 1), List.of(four, -129));
    refused(".d[1].c: -129 does not fit int8", () -> all.encode(List.of(), wrong));
    Object longer = List.of(List.of(four, 1), List.of(Bytes.of("0x0102030405"), 1));
    refused(".d[1].b: 5 bytes do not fit bytes4", () -> all.encode(List.of(), longer));
    refused(".a[0]: null", () -> all.encode(Arrays.asList((Object) null), right));
    refused(
        "half of a surrogate pair at 1 of the string",
        () -> AbiType.of("string").encode("a\ud83d"));
    refused(
        "more than 2 decimals",
        () -> AbiType.of("fixed64x2").encode(new java.math.BigDecimal("1.234")));
    refused("does not fit uint64", () -> AbiType.of("uint64").encode(Wei.ether("20")));
    refused("does not fit int64", () -> AbiType.of("int64").encode(Wei.ether("10")));
    for (int bits = 8; bits <= 256; bits += 8) {
      AbiType unsigned = AbiType.of("uint" + bits);
      AbiType signed = AbiType.of("int" + bits);
      BigInteger most = BigInteger.ONE.shiftLeft(bits).subtract(BigInteger.ONE);
      unsigned.encode(most);
      refused("does not fit", () -> unsigned.encode(most.add(BigInteger.ONE)));
      signed.encode(most.shiftRight(1));
      signed.encode(most.shiftRight(1).not());
      refused("does not fit", () -> signed.encode(most.shiftRight(1).add(BigInteger.ONE)));
      refused(
          "does not fit", () -> signed.encode(most.shiftRight(1).not().subtract(BigInteger.ONE)));
    }
  }

  @Test
  void aBufferIsWrittenAndItsBoundsAreKept() {
    Bytes expected = TRANSFER.encode(FRIEND, 5);
    byte[] into = new byte[100];
    Arrays.fill(into, (byte) 9);
    assertEquals(68, TRANSFER.encodeTo(into, 7, FRIEND, 5));
    assertEquals(expected, Bytes.of(into, 7, 68));
    assertEquals(9, into[6]);
    assertEquals(9, into[75]);
    byte[] before = into.clone();
    assertThrows(IndexOutOfBoundsException.class, () -> TRANSFER.encodeTo(into, 40, FRIEND, 5));
    assertArrayEquals(before, into);
    for (ByteBuffer buffer : List.of(ByteBuffer.allocate(100), ByteBuffer.allocateDirect(100))) {
      buffer.position(3);
      TRANSFER.encodeTo(buffer, FRIEND, 5);
      assertEquals(71, buffer.position());
      byte[] written = new byte[68];
      buffer.get(3, written);
      assertEquals(expected, Bytes.of(written));
      buffer.clear().limit(60);
      assertThrows(BufferOverflowException.class, () -> TRANSFER.encodeTo(buffer, FRIEND, 5));
      assertEquals(0, buffer.position());
    }
  }

  @Test
  void nothingIsAllocatedForABuffer() {
    AbiFunction all =
        AbiFunction.of("f(address a, uint256 b, bytes32 c, bytes d, string e, uint64[] f, bool g)");
    Object[] arguments = {
      FRIEND, Wei.ether("1000000"), Hash.ZERO, Bytes.of("0x1234"), "text", List.of(1L, 2L), true
    };
    byte[] into = new byte[1024];
    ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
    long allocated = Long.MAX_VALUE;
    // The interpreter and the compilers allocate by themselves at first.
    for (int round = 0; round < 50 && allocated > 0; round++) {
      long before = threads.getCurrentThreadAllocatedBytes();
      for (int i = 0; i < 10_000; i++) {
        all.encodeTo(into, 0, arguments);
      }
      allocated = threads.getCurrentThreadAllocatedBytes() - before;
    }
    assertTrue(allocated < 10_000, allocated + " bytes for 10,000 calls");
  }

  @Test
  void theAbiOfErc721WithItsOverloadsIsRead() {
    Abi abi =
        Abi.of(
            "function safeTransferFrom(address from, address to, uint256 id)",
            "function safeTransferFrom(address from, address to, uint256 id, bytes data) external"
                + " payable",
            "function ownerOf(uint256 id) view returns (address owner)",
            "event Transfer(address indexed from, address indexed to, uint256 indexed id)",
            "error NotOwner(address who, uint256 id);",
            "constructor(string name) payable",
            "receive() external payable");
    assertEquals(3, abi.functions().size());
    refused("several have the name", () -> abi.function("safeTransferFrom"));
    refused("there is no function 'burn'", () -> abi.function("burn"));
    AbiFunction longer = abi.function("safeTransferFrom(address,address,uint256,bytes)");
    assertEquals("0xb88d4fde", longer.selector().toString());
    assertEquals(AbiFunction.Mutability.PAYABLE, longer.mutability());
    Bytes data = longer.encode(FRIEND, Address.ZERO, 1, Bytes.EMPTY);
    assertEquals(longer, abi.functionOf(data).orElseThrow());
    Bytes revert = abi.error("NotOwner").encode(FRIEND, 7);
    assertEquals(FRIEND, abi.errorOf(revert).orElseThrow().decode(revert).address("who"));
    Bytes reason = AbiError.REASON.encode("no");
    assertEquals("no", abi.errorOf(reason).orElseThrow().decode(reason).text(0));
    assertEquals("0x4e487b71", AbiError.PANIC.selector().toString());
    assertTrue(abi.constructor().isPayable());
    Bytes code = abi.constructor().encode(Bytes.of("0x6000"), "Coin");
    assertEquals("0x6000", code.slice(0, 2).toString());
    assertEquals(98, code.size());
    assertEquals(
        "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef",
        abi.event("Transfer").topic().toString());
  }

  @Test
  void structsMayNameEachOtherInAnyOrder() {
    Abi abi =
        Abi.of(
            "struct Line { Point from; Point[2] more; }",
            "struct Point { uint256 x; int8 y; }",
            "function draw(Line line, Point[] points) returns (Point middle)");
    AbiFunction draw = abi.function("draw");
    assertEquals("draw(((uint256,int8),(uint256,int8)[2]),(uint256,int8)[])", draw.signature());
    Object point = Map.of("x", 1, "y", -1);
    Object line = Map.of("from", point, "more", List.of(point, point));
    AbiValues values = draw.decodeArguments(draw.encode(line, List.of(point)));
    assertEquals(BigInteger.ONE, values.tuple("line").tuple("from").integer("x"));
    assertEquals(BigInteger.ONE.negate(), ((AbiValues) values.list(1).get(0)).integer("y"));
    refused("no type of the ABI: 'Circle'", () -> Abi.of("struct Line { Circle c; }"));
    refused("two structs", () -> Abi.of("struct A { bool b; }", "struct A { bool c; }"));
    refused("is not an integer", () -> values.tuple(0).integer(0));
  }

  @Test
  void logsOfAllKindsAreFoundAndDecoded() {
    AbiEvent event =
        AbiEvent.of("event E(uint256 a, address indexed b, uint8 c, string indexed d)");
    List<Hash> topics = event.topics(FRIEND, "text");
    assertEquals(Keccak256.hash("text".getBytes()), topics.get(2));
    Bytes data = Bytes.concat(AbiValuesOf.word(5), AbiValuesOf.word(6));
    AbiValues values = event.decode(topics, data);
    assertEquals(BigInteger.valueOf(5), values.integer("a"));
    assertEquals(FRIEND, values.address(1));
    assertEquals(BigInteger.valueOf(6), values.integer("c"));
    assertEquals(topics.get(2), values.hash("d"));
    assertEquals(Arrays.asList(event.topic(), null, topics.get(2)), event.topics(null, "text"));
    malformed("is not of event E", () -> event.decode(topics.subList(0, 2), data));
    refused("3 values, where", () -> event.topics(FRIEND, "a", "b"));
    AbiEvent anonymous =
        AbiEvent.of(
            "E(uint8 indexed a, uint8 indexed b, uint8 indexed c, bool indexed d)" + " anonymous");
    assertEquals(4, anonymous.topics(1, 2, 3, true).size());
    refused("has 5 topics", () -> AbiEvent.of(anonymous.toString().replace(" anonymous", "")));
  }

  @Test
  void whatIsNoSignatureIsRefused() {
    for (String signature :
        List.of(
            "f",
            "f(",
            "f(uint",
            "f(uint7)",
            "f(uint264)",
            "f(bytes0)",
            "f(bytes33)",
            "f(uint08)",
            "f(uint256[-1])",
            "f(uint256[01])",
            "f(uint256[99999999999])",
            "f(string[2147483647])x",
            "f(uint256) returns",
            "f(uint256) returns ()x",
            "1f()",
            "f(a b c)",
            "f(uint a b)",
            "f(uint indexed a)",
            "f(uint,)",
            "f(fixed128x81)",
            "f(foo)",
            "f(uint[2)",
            "f() views",
            "f(" + "(".repeat(40) + ")".repeat(40) + ")",
            "f(uint" + "[]".repeat(40) + ")",
            "f(uint256[99999999][99999999])")) {
      assertThrows(IllegalArgumentException.class, () -> AbiFunction.of(signature), signature);
    }
  }

  @Test
  void whatIsNoJsonOfAContractIsRefused() {
    malformed("without the member abi", () -> Abi.ofJson("{}"));
    malformed(
        "no type of the ABI: 'uint7'",
        () -> Abi.ofJson("[{\"name\":\"f\",\"inputs\":[{\"name\":\"a\",\"type\":\"uint7\"}]}]"));
    malformed("an entry of the type 'struct'", () -> Abi.ofJson("[{\"type\":\"struct\"}]"));
    malformed("JSON at byte 1", () -> Abi.ofJson("[1]"));
    malformed("an entry of the type function without a name", () -> Abi.ofJson("[{}]"));
    for (String name : List.of("f(uint8)", "f() {} void g", "a-b", "1f", "\u00e4", "f\u0661")) {
      for (String type : List.of("function", "event", "error")) {
        malformed(
            "an entry of the type " + type + " with the name '" + name + "'",
            () -> Abi.ofJson("[{\"type\":\"" + type + "\",\"name\":\"" + name + "\"}]"));
      }
    }
    String indexed = "{\"name\":\"a\",\"type\":\"uint8\",\"indexed\":true},".repeat(5);
    malformed(
        "event 'E': E(uint8,uint8,uint8,uint8,uint8) has 6 topics",
        () ->
            Abi.ofJson(
                "[{\"type\":\"event\",\"name\":\"E\",\"inputs\":["
                    + indexed.substring(0, indexed.length() - 1)
                    + "]}]"));
    String large = "{\"name\":\"a\",\"type\":\"uint256[60000000]\"}";
    malformed(
        "function 'f': a tuple has more than 2^31 bytes",
        () -> Abi.ofJson("[{\"name\":\"f\",\"inputs\":[" + large + "," + large + "]}]"));
    assertThrows(IllegalArgumentException.class, () -> AbiType.of("uint8[\u0661]"));
    String deep = "{\"type\":\"tuple\",\"components\":[";
    malformed(
        "nest deeper",
        () -> Abi.ofJson("[{\"inputs\":[" + deep.repeat(50) + "]}".repeat(50) + "]}]"));
    Abi artifact =
        Abi.ofJson(
            "{\"bytecode\":{\"object\":\"0x\"},\"abi\":[{\"type\":\"function\",\"name\":"
                + "\"f\",\"inputs\":[{\"type\":\"tuple[2][]\",\"name\":\"p\",\"components\":[{\"name\":"
                + "\"x\",\"type\":\"uint8\"}]}],\"outputs\":[],\"stateMutability\":\"pure\"}]}");
    assertEquals("f((uint8)[2][])", artifact.function("f").signature());
  }

  private static Bytes words(long... words) {
    Bytes all = Bytes.EMPTY;
    for (long word : words) {
      all = Bytes.concat(all, AbiValuesOf.word(word));
    }
    return all;
  }

  private static void undecodable(String returns, Bytes data, String reason) {
    AbiFunction function = AbiFunction.of("f() returns (" + returns + ")");
    malformed(reason, () -> function.decodeResult(data));
  }

  @Test
  void dirtyBitsAreRefused() {
    undecodable("bool", words(2), "a bool is 0 or 1, not 2");
    undecodable("uint8", words(256), "256 does not fit uint8");
    undecodable("int8", words(128), "128 does not fit int8");
    undecodable("address", words(-1), "an address of more than 20 bytes");
    undecodable("bytes4", words(1), "more than 4 bytes of bytes4");
    undecodable(
        "string", Bytes.concat(words(32, 1), Bytes.of("0xff" + "00".repeat(31))), "no UTF-8");
    undecodable("uint256", Bytes.EMPTY, "there may be no contract");
    undecodable("uint256", Bytes.of("0x00"), "the data ends in (uint256)");
  }

  @Test
  void bombsAreRefusedAtOnce() {
    undecodable("uint256[]", words(32, Integer.MAX_VALUE), "for which there are too few bytes");
    undecodable("uint256[]", words(32, -1), "is beyond the data");
    undecodable("uint256[]", words(1L << 40, 0), "an offset is beyond the data");
    undecodable("bytes", words(32, Integer.MAX_VALUE), "of which 0 are there");
    undecodable("bytes", words(96, 0), "points beyond the data");
    undecodable("uint256[0][]", words(32, Integer.MAX_VALUE), "parts overlap");
    undecodable("uint256[0][100000000]", words(1), "parts overlap");
    undecodable("()[][]", words(32, 1, 32, 100_000_000), "parts overlap");
    undecodable("uint256[10000000]", words(1), "the data ends in");
    undecodable("string[10000000]", words(32), "too few bytes");
  }

  @Test
  void partsThatAreReadAgainAndAgainAreRefused() {
    // Thirty levels of ten offsets, which all point to the next level: 10^30 values.
    int levels = 30;
    int width = 10;
    long[] words = new long[1 + levels * (1 + width)];
    words[0] = 32;
    for (int level = 0; level < levels; level++) {
      int at = 1 + level * (1 + width);
      words[at] = width;
      Arrays.fill(words, at + 1, at + 1 + width, 32L * width);
    }
    undecodable("uint256" + "[]".repeat(levels), words(words), "parts overlap");
    // 2,000 strings, which are the same one of 32,000 bytes.
    long[] text = new long[3_100];
    text[0] = 32;
    text[1] = 2_000;
    Arrays.fill(text, 2, 2_002, 32 * 2_000);
    text[2_002] = 32 * 1_000;
    undecodable("string[]", words(text), "parts overlap");
  }

  @Test
  void whatFollowsTheValuesIsNotLookedAt() {
    AbiFunction one = AbiFunction.of("f() returns (uint8)");
    assertEquals(BigInteger.TWO, one.decodeResult(words(2, 3)).integer(0));
    AbiFunction text = AbiFunction.of("f() returns (bytes)");
    Bytes dirty = Bytes.concat(words(32, 1), Bytes.of("0x61" + "ff".repeat(31)));
    assertEquals(Bytes.of("0x61"), text.decodeResult(dirty).bytes(0));
  }
}
