package deponent.eth;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.management.ThreadMXBean;
import deponent.sets.Sets;
import java.lang.management.ManagementFactory;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.function.Supplier;
import org.junit.jupiter.api.Test;

/** {@link AbiWriter} and {@link AbiReader}, called as generated code calls them. */
class AbiCodeTest {
  private static final Address FRIEND = Address.of("0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed");
  private static final AbiFunction TRANSFER =
      AbiFunction.of("transfer(address to, uint256 value) returns (bool)");

  /** Calls what code for {@code type} would call. */
  private static void write(AbiWriter out, AbiType type, Object value) {
    switch (type.kind()) {
      case INTEGER -> writeInteger(out, type, value);
      case DECIMAL ->
          out.decimal((BigDecimal) value, type.isSigned(), type.bits(), type.decimals());
      case BOOLEAN -> out.bool((boolean) value);
      case ADDRESS -> out.address((Address) value);
      case FIXED_BYTES -> {
        if (value instanceof Bytes bytes && bytes.size() == 32 && bytes.at(0) > 0) {
          out.hash(Hash.of(bytes.toBytes()));
        } else {
          out.fixedBytes((Bytes) value, type.length());
        }
      }
      case BYTES -> out.bytes((Bytes) value);
      case STRING -> out.text((String) value);
      case ARRAY -> writeArray(out, type, asList(value));
      case TUPLE -> {
        if (type.isDynamic()) {
          out.tuple(asList(value), heads(type), (at, all) -> writeMembers(at, type, all));
        } else {
          int bytes = type.headBytes();
          out.staticTuple(asList(value), bytes, (at, all) -> writeMembers(at, type, all));
        }
      }
    }
  }

  private static void writeInteger(AbiWriter out, AbiType type, Object value) {
    BigInteger number = (BigInteger) value;
    boolean small = number != null && number.bitLength() < 64;
    if (small && number.testBit(0)) {
      if (type.isSigned()) {
        out.signed(number.longValue(), type.bits());
      } else {
        out.unsigned(number.longValue(), type.bits());
      }
    } else if (type.isSigned()) {
      out.signed(number, type.bits());
    } else if (number != null && number.signum() >= 0 && number.bitLength() % 2 == 0) {
      out.unsigned(Wei.of(number), type.bits());
    } else {
      out.unsigned(number, type.bits());
    }
  }

  private static void writeArray(AbiWriter out, AbiType type, List<Object> values) {
    AbiType element = type.element();
    if (type.length() < 0) {
      out.array(values, element.headBytes(), (at, each) -> write(at, element, each));
    } else if (element.isDynamic()) {
      out.fixedArray(values, type.length(), (at, each) -> write(at, element, each));
    } else {
      int bytes = element.headBytes();
      out.staticArray(values, type.length(), bytes, (at, each) -> write(at, element, each));
    }
  }

  private static void writeMembers(AbiWriter out, AbiType type, List<Object> values) {
    for (int i = 0; i < values.size(); i++) {
      write(out, type.members().get(i).type(), values.get(i));
    }
  }

  @SuppressWarnings("unchecked")
  private static List<Object> asList(Object value) {
    return (List<Object>) value;
  }

  private static int heads(AbiType tuple) {
    return tuple.members().stream().mapToInt(member -> member.type().headBytes()).sum();
  }

  /** Calls what code for {@code type} would call; tuples are lists. */
  private static Object read(AbiReader in, AbiType type) {
    return switch (type.kind()) {
      case INTEGER -> type.isSigned() ? in.signed(type.bits()) : in.unsigned(type.bits());
      case DECIMAL -> in.decimal(type.isSigned(), type.bits(), type.decimals());
      case BOOLEAN -> in.bool();
      case ADDRESS -> in.address();
      case FIXED_BYTES ->
          type.length() == 32 ? Bytes.of(in.hash().toBytes()) : in.fixedBytes(type.length());
      case BYTES -> in.bytes();
      case STRING -> in.text();
      case ARRAY -> {
        AbiType element = type.element();
        if (type.length() < 0) {
          yield in.array(element.headBytes(), at -> read(at, element));
        }
        yield element.isDynamic()
            ? in.fixedArray(type.length(), at -> read(at, element))
            : in.staticArray(type.length(), element.headBytes(), at -> read(at, element));
      }
      case TUPLE ->
          type.isDynamic()
              ? in.tuple(heads(type), at -> readMembers(at, type.members()))
              : in.staticTuple(type.headBytes(), at -> readMembers(at, type.members()));
    };
  }

  private static List<Object> readMembers(AbiReader in, List<AbiParameter> members) {
    List<Object> values = new ArrayList<>();
    members.forEach(member -> values.add(read(in, member.type())));
    return values;
  }

  private static AbiFunction randomFunction(Random random) {
    StringBuilder list = new StringBuilder();
    for (int i = random.nextInt(4); i >= 0; i--) {
      list.append(AbiValuesOf.randomType(random, 3)).append(" p").append(i);
      list.append(i > 0 ? ", " : "");
    }
    return AbiFunction.of("f(" + list + ") returns (" + list + ")");
  }

  private static List<Object> randomValues(AbiFunction function, Random random) {
    List<Object> values = new ArrayList<>();
    function.inputs().forEach(input -> values.add(AbiValuesOf.random(input.type(), random)));
    return values;
  }

  private static Bytes written(AbiFunction function, List<Object> values) {
    AbiWriter out = AbiWriter.of(function);
    writeMembers(out, function.call.inputs, values);
    return out.toBytes();
  }

  @Test
  void whatIsWrittenAndReadIsWhatTheCodecOfObjectsSays() {
    Random random = Sets.random();
    for (int i = 0; i < 10_000; i++) {
      AbiFunction function = randomFunction(random);
      List<Object> values = randomValues(function, random);
      Bytes expected = function.encode(values.toArray());
      assertEquals(expected, written(function, values), function.toString());
      Bytes result = expected.slice(4, expected.size());
      if (!result.isEmpty()) {
        AbiReader in = AbiReader.ofResult(function, result);
        assertEquals(values, readMembers(in, function.outputs()), function.toString());
      }
    }
  }

  private static Object outcome(Supplier<Object> made) {
    try {
      return made.get();
    } catch (MalformedException | IllegalArgumentException refused) {
      return refused.getClass().getSimpleName();
    }
  }

  @Test
  void changedBytesAreRefusedByBothOrRead() {
    Random random = Sets.random();
    for (int i = 0; i < 20_000; i++) {
      AbiFunction function = randomFunction(random);
      byte[] data = function.encodeResult(randomValues(function, random).toArray()).toBytes();
      for (int changes = random.nextInt(3); changes >= 0 && data.length > 0; changes--) {
        data[random.nextInt(data.length)] = (byte) (1 << random.nextInt(8));
      }
      Bytes changed = Bytes.of(data, 0, data.length - random.nextInt(Math.min(data.length, 2) + 1));
      assertEquals(
          outcome(() -> function.decodeResult(changed)),
          outcome(() -> readMembers(AbiReader.ofResult(function, changed), function.outputs())),
          () -> function + " " + changed);
    }
  }

  /** The value with one part of it made wrong; itself where it has none. */
  private static Object spoiled(AbiType type, Object value, Random random) {
    boolean holds = value instanceof List<?> list && !list.isEmpty();
    if (holds && random.nextInt(4) > 0) {
      List<Object> values = new ArrayList<>((List<?>) value);
      int at = random.nextInt(values.size());
      boolean tuple = type.kind() == AbiType.Kind.TUPLE;
      AbiType part = tuple ? type.members().get(at).type() : type.element();
      values.set(at, spoiled(part, values.get(at), random));
      return values;
    }
    return switch (type.kind()) {
      case BOOLEAN -> value;
      case INTEGER ->
          random.nextBoolean() ? null : BigInteger.ONE.shiftLeft(type.bits()).add(BigInteger.ONE);
      case FIXED_BYTES -> random.nextBoolean() ? null : Bytes.of(new byte[type.length() + 1]);
      case STRING -> random.nextBoolean() ? null : "\ud800";
      case ARRAY -> {
        if (type.length() < 0 || random.nextBoolean()) {
          yield null;
        }
        List<Object> longer = new ArrayList<>(asList(value));
        longer.add(AbiValuesOf.random(type.element(), random));
        yield longer;
      }
      default -> null;
    };
  }

  private static String refusal(Runnable encode) {
    try {
      encode.run();
      return "";
    } catch (IllegalArgumentException refused) {
      // A function is written as its bytes.
      return refused.getMessage().replace("fit function", "fit bytes24");
    }
  }

  @Test
  void valuesThatDoNotFitAreRefusedWithTheSameWords() {
    Random random = Sets.random();
    int refused = 0;
    for (int i = 0; i < 20_000; i++) {
      AbiFunction function = randomFunction(random);
      List<Object> values = randomValues(function, random);
      int at = random.nextInt(values.size());
      AbiType type = function.inputs().get(at).type();
      values.set(at, spoiled(type, values.get(at), random));
      if (function.toString().contains("()") || function.toString().contains("[0]")) {
        continue;
      }
      String expected = refusal(() -> function.encode(values.toArray()));
      assertEquals(expected, refusal(() -> written(function, values)), function.toString());
      refused += expected.isEmpty() ? 0 : 1;
    }
    assertTrue(refused > 5_000, "refused: " + refused);
  }

  private static void malformed(String reason, Runnable made) {
    Throwable thrown = assertThrows(MalformedException.class, made::run);
    assertTrue(thrown.getMessage().contains(reason), thrown.getMessage());
  }

  private static AbiReader word(String type, Bytes word) {
    return AbiReader.ofResult(AbiFunction.of("f() returns (" + type + ")"), word);
  }

  @Test
  void integersOfJavaAreReadWhereTheyFit() {
    for (long value : new long[] {0, 1, -1, 127, -128, Integer.MAX_VALUE, Long.MIN_VALUE}) {
      Bytes word = AbiValuesOf.word(value);
      assertEquals(value, word("int64", word).signedLong(64));
      assertEquals(BigInteger.valueOf(value), word("int256", word).signed(256));
      if (value >= 0) {
        assertEquals(value, word("uint64", word).unsignedLong(64));
        assertEquals(value, word("uint32", word).unsignedInt(32));
        assertEquals(Wei.of(value), word("uint256", word).wei(256));
      } else {
        malformed("does not fit uint64", () -> word("uint64", word).unsignedLong(64));
        malformed("does not fit uint96", () -> word("uint96", word).wei(96));
      }
    }
    Bytes high = AbiValuesOf.word(BigInteger.ONE.shiftLeft(63));
    malformed("9223372036854775808 does not fit 64", () -> word("uint64", high).unsignedLong(64));
    malformed("does not fit 64 bits", () -> word("int72", high).signedLong(72));
    Bytes middle = AbiValuesOf.word(1L << 31);
    malformed("2147483648 does not fit 32 bits", () -> word("uint32", middle).unsignedInt(32));
    malformed("2147483648 does not fit int32", () -> word("int32", middle).signedInt(32));
    malformed("256 does not fit uint8", () -> word("uint8", AbiValuesOf.word(256)).unsignedInt(8));
    assertEquals(-5, word("int24", AbiValuesOf.word(-5)).signedInt(24));
  }

  @Test
  void fieldsOfLogsAndErrorsAreRead() {
    AbiEvent event =
        AbiEvent.of("event E(uint256 a, address indexed b, uint8 c, string indexed d)");
    List<Hash> topics = event.topics(FRIEND, "text");
    AbiReader indexed = AbiReader.ofTopics(event, topics);
    assertEquals(FRIEND, indexed.address());
    assertEquals(Keccak256.hash("text".getBytes()), indexed.hash());
    AbiReader data =
        AbiReader.ofData(event, Bytes.concat(AbiValuesOf.word(5), AbiValuesOf.word(6)));
    assertEquals(BigInteger.valueOf(5), data.unsigned(256));
    assertEquals(6, data.unsignedInt(8));
    malformed("is not of event E", () -> AbiReader.ofTopics(event, topics.subList(0, 2)));
    malformed("the data ends in", () -> AbiReader.ofData(event, AbiValuesOf.word(5)));
    AbiError error = AbiError.of("Low(uint256 have, string why)");
    AbiReader values = AbiReader.of(error, error.encode(7, "poor"));
    assertEquals(BigInteger.valueOf(7), values.unsigned(256));
    assertEquals("poor", values.text());
    malformed("is not the selector", () -> AbiReader.of(error, Bytes.of("0x01020304")));
    malformed("there may be no contract", () -> AbiReader.ofResult(TRANSFER, Bytes.EMPTY));
  }

  @Test
  void codeOfAContractIsFollowedByArguments() {
    AbiConstructor constructor = AbiConstructor.of("constructor(string name, uint8[2] more)");
    Bytes code = Bytes.of("0x600060");
    Bytes expected = constructor.encode(code, "Coin", List.of(1, 2));
    AbiWriter out = AbiWriter.of(constructor, code).text("Coin");
    out.staticArray(List.of(1L, 2L), 2, 32, (each, value) -> each.unsigned(value, 8));
    byte[] into = new byte[expected.size() + 2];
    assertEquals(expected.size(), out.copyTo(into, 1));
    assertEquals(expected, Bytes.of(into, 1, expected.size()));
    assertEquals(expected, out.toBytes());
  }

  @Test
  void callsThatAreNotThoseOfTheSignatureAreFaults() {
    AbiWriter out = AbiWriter.of(TRANSFER).address(FRIEND);
    assertThrows(IllegalStateException.class, out::toBytes);
    out.unsigned(1, 256);
    assertThrows(IllegalStateException.class, () -> out.bool(true));
    Bytes taken = out.toBytes();
    assertEquals(TRANSFER.encode(FRIEND, 1), taken);
    assertThrows(IllegalStateException.class, out::toBytes);
    assertThrows(IllegalStateException.class, out::again);
    AbiWriter array = AbiWriter.of(AbiFunction.of("f(uint8[] a)"));
    assertThrows(
        IllegalStateException.class, () -> array.array(List.of(1), 32, (each, value) -> {}));
    assertThrows(IllegalArgumentException.class, () -> AbiWriter.of(TRANSFER).unsigned(1, 7));
    assertThrows(
        IllegalArgumentException.class, () -> AbiWriter.of(TRANSFER).fixedBytes(Bytes.EMPTY, 33));
  }

  @Test
  void nothingIsAllocatedWhereAWriterIsUsedAgain() {
    ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
    AbiFunction swap =
        AbiFunction.of("swap((address from, uint64 amount)[] hops, string memo, uint256 least)");
    AbiWriter out = AbiWriter.of(swap);
    List<Hop> hops = List.of(new Hop(FRIEND, 1), new Hop(Address.ZERO, 2));
    byte[] into = new byte[1_000];
    Wei least = Wei.ether("1000000000");
    int length = 0;
    long allocated = Long.MAX_VALUE;
    for (int round = 0; round < 20; round++) {
      long before = threads.getCurrentThreadAllocatedBytes();
      for (int i = 0; i < 10_000; i++) {
        out.again().array(hops, 64, AbiCodeTest::hop).text("a memo").unsigned(least, 256);
        length = out.copyTo(into, 0);
      }
      allocated = threads.getCurrentThreadAllocatedBytes() - before;
    }
    Object hopsAsLists = List.of(List.of(FRIEND, 1), List.of(Address.ZERO, 2));
    byte[] expected = swap.encode(hopsAsLists, "a memo", least).toBytes();
    assertArrayEquals(expected, Arrays.copyOf(into, length));
    assertTrue(allocated < 10_000, allocated + " bytes for 10,000 calls");
  }

  @Test
  void aCallAllocatesItsDataAndLittleMore() {
    ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
    AbiFunction list = AbiFunction.of("list(address[] all, string memo)");
    List<Address> all = Collections.nCopies(50, FRIEND);
    int length = 0;
    long allocated = Long.MAX_VALUE;
    for (int round = 0; round < 20; round++) {
      long before = threads.getCurrentThreadAllocatedBytes();
      for (int i = 0; i < 10_000; i++) {
        AbiWriter out = AbiWriter.of(list).array(all, 32, AbiWriter::address).text("a memo");
        length = out.toBytes().size();
      }
      allocated = threads.getCurrentThreadAllocatedBytes() - before;
    }
    assertTrue(allocated < 10_000L * (length + 300), allocated + " bytes for 10,000 calls");
  }

  private record Hop(Address from, long amount) {}

  private static void hop(AbiWriter out, Hop hop) {
    out.staticTuple(hop, 64, AbiCodeTest::hopMembers);
  }

  private static void hopMembers(AbiWriter out, Hop hop) {
    out.address(hop.from()).unsigned(hop.amount(), 64);
  }
}
