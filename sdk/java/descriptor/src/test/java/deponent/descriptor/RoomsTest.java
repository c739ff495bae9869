package deponent.descriptor;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import deponent.rpc.internal.Descriptors.Mapping;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import org.junit.jupiter.api.Test;

/** Memory is used again, and never while a view of it is left. */
class RoomsTest {
  private static final int BYTES = 3 << 20;

  private final Rooms rooms = new Rooms();

  private static long address(ByteBuffer buffer) {
    return MemorySegment.ofBuffer(buffer).address();
  }

  @Test
  void closedMemoryIsUsedAgainAndReadNoMore() {
    Mapping first = rooms.room(BYTES);
    ByteBuffer view = first.buffers().get(0).put(0, (byte) 7);
    long address = address(view);
    assertEquals(BYTES, view.limit());
    first.close();
    assertThrows(IllegalStateException.class, () -> view.get(0));
    assertThrows(IllegalStateException.class, first::close);
    Mapping second = rooms.room(BYTES - 100);
    assertEquals(address, address(second.buffers().get(0)));
    Mapping third = rooms.room(BYTES);
    assertNotEquals(address, address(third.buffers().get(0)));
    assertThrows(IllegalStateException.class, () -> view.get(0));
    second.close();
    third.close();
  }

  @Test
  void moreThanIsKeptIsFreed() {
    Mapping[] many = new Mapping[6];
    for (int index = 0; index < many.length; index++) {
      many[index] = rooms.room(1 << 26);
    }
    for (Mapping one : many) {
      one.close();
    }
    assertEquals(256L << 20, rooms.idleBytes());
  }

  /** A view of the end of memory that nobody closes. */
  private ByteBuffer view() {
    ByteBuffer whole = rooms.room(BYTES).buffers().get(0);
    for (int at = 0; at < BYTES; at++) {
      whole.put(at, (byte) 0x5a);
    }
    return whole.slice(BYTES - 100, 100).asReadOnlyBuffer().duplicate();
  }

  @Test
  void memoryThatNobodyClosesComesBackWhenNoViewIsLeft() throws Exception {
    ByteBuffer view = view();
    long end = address(view) + 100;
    for (int round = 0; round < 5; round++) {
      System.gc();
      Thread.sleep(20);
      Mapping other = rooms.room(BYTES);
      assertNotEquals(end, address(other.buffers().get(0)) + BYTES);
      other.buffers().get(0).put(BYTES - 1, (byte) 1);
      other.close();
      assertEquals(0x5a, view.get(99));
    }
    view = null;
    long before = rooms.idleBytes();
    for (int round = 0; rooms.idleBytes() == before; round++) {
      assertTrue(round < 10_000, "the memory does not come back");
      System.gc();
      Thread.sleep(10);
    }
  }
}
