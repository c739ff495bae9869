package deponent.engine;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import deponent.eth.Bytes;
import deponent.eth.MalformedException;
import deponent.sets.Sets;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.ReadOnlyBufferException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.function.Function;
import org.junit.jupiter.api.Test;

class WitnessTest {
  private record Format(
      String name, Function<byte[], Witness> read, Function<Witness, byte[]> write) {}

  private static final List<Format> FORMATS =
      List.of(
          new Format("ssz", Witness::ofSsz, Witness::toSsz),
          new Format("rlp", Witness::ofRlp, Witness::toRlp),
          new Format("json", Witness::ofJson, Witness::toJson));

  private static byte[] encoded(Map<String, Object> vector, Format format) {
    String text = (String) vector.get(format.name);
    return format.name.equals("json")
        ? text.getBytes(StandardCharsets.US_ASCII)
        : Bytes.of(text).toBytes();
  }

  private static void refused(String expected, Format format, byte[] input) {
    MalformedException refused =
        assertThrows(MalformedException.class, () -> format.read.apply(input));
    assertTrue(refused.getMessage().contains(expected), refused.getMessage());
  }

  private static void refusedSsz(String expected, String hex) {
    refused(expected, FORMATS.get(0), Bytes.of(hex).toBytes());
  }

  private static void refusedRlp(String expected, String hex) {
    refused(expected, FORMATS.get(1), Bytes.of(hex).toBytes());
  }

  private static void refusedJson(String expected, String json) {
    refused(expected, FORMATS.get(2), json.getBytes(StandardCharsets.UTF_8));
  }

  @Test
  void theVectorsOfAnotherEncoderAgreeBothWays() {
    List<Map<String, Object>> vectors = Samples.vectors();
    assertEquals(3, vectors.size());
    for (Map<String, Object> vector : vectors) {
      Witness expected = Samples.witness(vector);
      for (Format format : FORMATS) {
        byte[] encoded = encoded(vector, format);
        Witness read = format.read.apply(encoded);
        assertEquals(expected, read, format.name);
        assertEquals(expected.hashCode(), read.hashCode());
        assertArrayEquals(encoded, format.write.apply(read), format.name);
        assertArrayEquals(encoded, format.write.apply(expected), format.name);
      }
    }
  }

  @Test
  void anyWitnessComesBackFromAnyFormat() {
    Random random = Sets.random();
    for (int round = 0; round < 500; round++) {
      Witness witness = Samples.witness(random);
      for (Format format : FORMATS) {
        Witness read = format.read.apply(format.write.apply(witness));
        assertEquals(witness, read);
        assertEquals(witness.contentBytes(), read.contentBytes());
        assertEquals(witness.toString(), read.toString());
      }
    }
  }

  @Test
  void changedBytesAreRefusedOrMeanWhatTheyAreWrittenAs() {
    Random random = Sets.random();
    for (int round = 0; round < 20_000; round++) {
      Witness witness = Samples.witness(random);
      Format format = FORMATS.get(random.nextInt(FORMATS.size()));
      byte[] changed = Samples.changed(random, format.write.apply(witness));
      Witness read;
      try {
        read = format.read.apply(changed);
      } catch (MalformedException refused) {
        continue;
      }
      byte[] written = format.write.apply(read);
      if (format.name.equals("ssz")) {
        assertArrayEquals(changed, written, "one encoding a witness");
      }
      assertEquals(read, format.read.apply(written));
      assertThrows(MalformedException.class, () -> read.verify(TrieAccount.NO_CODE));
    }
  }

  @Test
  void eachCutIsRefused() {
    Map<String, Object> small = Samples.vectors().get(2);
    for (Format format : FORMATS) {
      byte[] whole = encoded(small, format);
      // SSZ has no end of its own: a cut makes the last item shorter, or is before its list.
      boolean isSsz = format.name.equals("ssz");
      int last = whole.length - Samples.witness(small).headers().bytes(0);
      for (int length = 0; length < (isSsz ? last : whole.length); length++) {
        byte[] cut = Arrays.copyOf(whole, length);
        if (!isSsz || length != last - 4) {
          assertThrows(MalformedException.class, () -> format.read.apply(cut), format.name);
        }
      }
    }
  }

  @Test
  void sszHasNoGapsAndNoWayBack() {
    refusedSsz("11 bytes where 12 are due", "0c0000000c0000000c0000");
    refusedSsz("the first offset is 13, not 12", "0d0000000d0000000d00000000");
    refusedSsz("state: from 12 to 11", "0c0000000b0000000c000000");
    refusedSsz("codes: from 12 to 13", "0c0000000c0000000d000000");
    refusedSsz("codes: from 12 to 4294967295", "0c0000000c000000ffffffff");
    refusedSsz("headers: 0 bytes of offsets", "0c0000000c0000000c00000000000000");
    refusedSsz("headers: 0 bytes of offsets", "0c0000000c0000000c000000040000");
    refusedSsz("headers: 5 bytes of offsets", "0c0000000c0000000c0000000500000000");
    refusedSsz("headers: 4294967292 bytes of offsets", "0c0000000c0000000c000000fcffffff");
    refusedSsz("headers: from 8 to 7", "0c0000000c0000000c0000000800000007000000");
    refusedSsz("headers: from 8 to 9", "0c0000000c0000000c0000000800000009000000");
  }

  @Test
  void rlpIsWrittenInOneWayAlone() {
    Witness empty = Witness.of(List.of(), List.of(), List.of());
    assertEquals(empty, Witness.ofRlp(Bytes.of("c3c0c0c0").toBytes()));
    assertEquals(empty, Witness.ofRlp(Bytes.of("c6c0c0c0c20102").toBytes()));
    assertEquals("0xc4c0c0c0c0", Bytes.of(empty.toRlp()).toString());
    refusedRlp("an item is missing", "");
    refusedRlp("an item is missing", "c2c0c0");
    refusedRlp("1 bytes after the end", "c3c0c0c000");
    refusedRlp("more than four items", "c5c0c0c0c0c0");
    refusedRlp("witness: a string", "80");
    refusedRlp("headers: a string", "c4c180c0c0");
    refusedRlp("codes: a list", "c4c0c1c0c0");
    refusedRlp("a byte below 128 with a head", "c5c0c28105c0");
    refusedRlp("in more bytes than it needs", "c6c0c3b80100c0");
    refusedRlp("in more bytes than it needs", "f80100");
    refusedRlp("in more bytes than it needs", "f90038" + "c0".repeat(56));
    refusedRlp("of 9223372036854775807 bytes, of which 0", "ff7fffffffffffffff");
    refusedRlp("2^63 bytes or more", "ffffffffffffffffff");
    refusedRlp("is cut off", "ffffffff");
  }

  @Test
  void aHeaderThatIsNoListHasNoRlp() {
    for (String header : List.of("0x", "0x80", "0xc1", "0xc0c0")) {
      Witness witness = Witness.of(List.of(), List.of(), List.of(Bytes.of(header)));
      assertEquals(witness, Witness.ofSsz(witness.toSsz()));
      assertThrows(IllegalStateException.class, witness::toRlp, header);
    }
  }

  @Test
  void jsonHasEachListOnce() {
    Witness empty = Witness.of(List.of(), List.of(), List.of());
    String more = "{\"keys\":null,\"headers\":[],\"x\":{\"a\":[1]},\"codes\":[],\"state\":[]} ";
    assertEquals(empty, Witness.ofJson(more.getBytes(StandardCharsets.US_ASCII)));
    refusedJson("state: missing", "{}");
    refusedJson("codes: missing", "{\"state\":[],\"headers\":[]}");
    refusedJson("state: twice", "{\"state\":[],\"state\":[]}");
    for (String other : List.of("null", "1", "\"0x\"", "[]", "true")) {
      refusedJson("", other);
      refusedJson("", "{\"state\":[],\"headers\":[],\"codes\":[" + other.replace("\"0x\"", "{}"));
    }
    for (String item : List.of("", "00", "0x0", "0x012", "0xgg", "0X00", "0x0x00", " 0x00")) {
      refusedJson("", "{\"state\":[\"" + item + "\"],\"codes\":[],\"headers\":[]}");
    }
    refusedJson("", "{\"state\":[],\"codes\":[],\"headers\":[]}{}");
    refusedJson("", "{\"state\":" + "[".repeat(100_000));
    refusedJson("", "{\"x\":" + "[".repeat(100_000));
  }

  @Test
  void listsAndItemsHaveBounds() {
    Bytes list = Bytes.of("c0");
    List<Bytes> most = Collections.nCopies(256, list);
    Witness full = Witness.of(List.of(), List.of(), most);
    List<Bytes> over = Collections.nCopies(257, list);
    assertThrows(IllegalArgumentException.class, () -> Witness.of(List.of(), List.of(), over));
    for (Format format : FORMATS) {
      assertEquals(full, format.read.apply(format.write.apply(full)));
    }
    refusedRlp("headers: 257 items, over the limit of 256", "f90106f90101" + "c0".repeat(259));
    refusedJson(
        "headers: 257 items, over the limit of 256",
        "{\"headers\":[" + "\"0xc0\",".repeat(256) + "\"0xc0\"]}");
    byte[] item = new byte[(1 << 20) + 1];
    assertThrows(
        IllegalArgumentException.class,
        () -> Witness.of(List.of(Bytes.of(item)), List.of(), List.of()));
    ByteBuffer ssz = ByteBuffer.allocate(16 + item.length).order(ByteOrder.LITTLE_ENDIAN);
    ssz.putInt(12).putInt(ssz.capacity()).putInt(ssz.capacity()).putInt(4);
    refused("state: an item of 1048577 bytes", FORMATS.get(0), ssz.array());
    ByteBuffer many = ByteBuffer.allocate(12 + 4 * item.length).order(ByteOrder.LITTLE_ENDIAN);
    many.putInt(12).putInt(many.capacity()).putInt(many.capacity()).putInt(4 * item.length);
    refused("state: 1048577 items", FORMATS.get(0), many.array());
  }

  @Test
  void itemsAreViewsOfTheInput() {
    byte[] ssz =
        Bytes.of("0c00000012000000170000000400000" + "0aabb040000000004000000c0").toBytes();
    Witness witness = Witness.ofSsz(ssz);
    ByteBuffer node = witness.nodes().get(0);
    assertEquals((byte) 0xaa, node.get(0));
    ssz[16] = 5;
    assertEquals(5, node.get(0));
    assertThrows(ReadOnlyBufferException.class, () -> node.put(0, (byte) 1));
    assertThrows(IndexOutOfBoundsException.class, () -> witness.nodes().get(1));
    assertThrows(UnsupportedOperationException.class, () -> witness.nodes().remove(0));

    ByteBuffer direct = ByteBuffer.allocateDirect(ssz.length + 2).put(1, ssz).position(1);
    direct.limit(ssz.length + 1);
    assertEquals(witness, Witness.ofSsz(direct));
    assertEquals(1, direct.position());
    assertTrue(Witness.ofSsz(direct).codes().get(0).isDirect());
    assertNotEquals(witness, Witness.ofSsz(Samples.witness(new Random(1)).toSsz()));
  }

  @Test
  void aClosedWitnessIsNotRead() {
    Witness witness = Samples.witness(Samples.vectors().get(2));
    ByteBuffer node = witness.nodes().get(0);
    witness.close();
    witness.close();
    assertThrows(IllegalStateException.class, () -> witness.nodes().get(0));
    assertThrows(IllegalStateException.class, witness::toSsz);
    assertThrows(IllegalStateException.class, () -> witness.verify(TrieAccount.NO_CODE));
    assertEquals(2, witness.nodes().size());
    assertTrue(node.hasRemaining());
    assertFalse(witness.toString().isEmpty());
  }

  /** Two copies have no room in the heap, whose size is in the module's POM. */
  @Test
  void aWitnessOf100MegabytesIsReadWhereTwoHaveNoRoom() {
    int items = 200_000;
    int itemBytes = 500;
    int bytes = 12 + items * (4 + itemBytes);
    assertTrue(Runtime.getRuntime().maxMemory() < 2L * bytes, "the heap is larger than said");
    ByteBuffer ssz = ByteBuffer.allocate(bytes).order(ByteOrder.LITTLE_ENDIAN);
    ssz.putInt(12).putInt(bytes).putInt(bytes);
    for (int index = 0; index < items; index++) {
      ssz.putInt(4 * items + index * itemBytes);
    }
    for (int index = 0; index < items; index++) {
      ssz.putInt(12 + 4 * items + index * itemBytes, index);
    }
    Witness witness = Witness.ofSsz(ssz.array());
    long sum = 0;
    for (ByteBuffer node : witness.nodes()) {
      sum += node.order(ByteOrder.LITTLE_ENDIAN).getInt(0) + node.remaining();
    }
    assertEquals(items * (items - 1L) / 2 + (long) items * itemBytes, sum);
    assertEquals((long) items * itemBytes, witness.contentBytes());
  }
}
