package deponent.engine;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import deponent.eth.MalformedException;
import deponent.sets.Sets;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;

/** Bytes in several buffers are read as those in one. */
class MemoryTest {
  private final Random random = Sets.random();

  private static List<ByteBuffer> pieces(byte[] bytes, int each) {
    List<ByteBuffer> pieces = new ArrayList<>();
    for (int at = 0; at < bytes.length; at += each) {
      int length = Math.min(each, bytes.length - at);
      pieces.add(ByteBuffer.allocateDirect(length).put(bytes, at, length).flip());
    }
    return pieces;
  }

  @Test
  void numbersAndPartsAreFoundOverBuffers() {
    for (int round = 0; round < 200; round++) {
      byte[] bytes = Samples.bytes(random, 100).toBytes();
      ByteBuffer whole = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
      Memory memory = Memory.of(pieces(bytes, 1 << random.nextInt(7)));
      assertEquals(bytes.length, memory.bytes());
      int start = random.nextInt(bytes.length + 1);
      int length = random.nextInt(bytes.length - start + 1);
      Memory part = memory.part(start, start + length);
      byte[] expected = Arrays.copyOfRange(bytes, start, start + length);
      assertEquals(ByteBuffer.wrap(expected), part.view(0, length));
      byte[] copy = new byte[length];
      part.copyTo(0, copy, length);
      assertArrayEquals(expected, copy);
      for (int at = 0; at <= length - 8; at++) {
        assertEquals(whole.getInt(start + at), part.getInt(at));
        assertEquals(whole.getLong(start + at), part.getLong(at));
        assertEquals(bytes[start + at], part.get(at));
      }
      assertThrows(IndexOutOfBoundsException.class, () -> part.get(length));
      assertThrows(IndexOutOfBoundsException.class, () -> part.getInt(length - 3));
      assertThrows(IndexOutOfBoundsException.class, () -> part.part(1, length + 1));
    }
  }

  @Test
  void aWitnessInSeveralBuffersIsTheSame() {
    for (int round = 0; round < 300; round++) {
      Witness witness = Samples.witness(random);
      byte[] ssz = witness.toSsz();
      Witness read = Witness.ofSsz(Memory.of(pieces(ssz, 1 << 2 + random.nextInt(9))));
      assertEquals(witness, read);
      assertArrayEquals(ssz, read.toSsz());
      assertArrayEquals(witness.toRlp(), read.toRlp());
      byte[] changed = Samples.changed(random, ssz);
      List<ByteBuffer> pieces = pieces(changed, 1 << random.nextInt(9));
      Witness expected;
      try {
        expected = Witness.ofSsz(changed);
      } catch (MalformedException malformed) {
        assertThrows(MalformedException.class, () -> Witness.ofSsz(Memory.of(pieces)));
        continue;
      }
      assertEquals(expected, Witness.ofSsz(Memory.of(pieces)));
    }
  }

  @Test
  void buffersHaveOneLengthThatIsAPowerOfTwo() {
    for (int[] lengths : new int[][] {{3, 3}, {4, 8}, {4, 2, 4}}) {
      List<ByteBuffer> buffers = Arrays.stream(lengths).mapToObj(ByteBuffer::allocate).toList();
      assertThrows(IllegalArgumentException.class, () -> Memory.of(buffers));
    }
  }
}
