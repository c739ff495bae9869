package deponent.eth;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;

/** Whole words at any place of an array of bytes. */
final class Words {
  private static final VarHandle LONG =
      MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.BIG_ENDIAN);
  private static final VarHandle LITTLE_LONG =
      MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);
  private static final VarHandle INT =
      MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.BIG_ENDIAN);

  private Words() {}

  static long getLong(byte[] from, int at) {
    return (long) LONG.get(from, at);
  }

  static void putLong(byte[] into, int at, long value) {
    LONG.set(into, at, value);
  }

  static long getLittleLong(byte[] from, int at) {
    return (long) LITTLE_LONG.get(from, at);
  }

  static void putLittleLong(byte[] into, int at, long value) {
    LITTLE_LONG.set(into, at, value);
  }

  static int getInt(byte[] from, int at) {
    return (int) INT.get(from, at);
  }

  static void putInt(byte[] into, int at, int value) {
    INT.set(into, at, value);
  }

  /** The 32 bytes of a number whose highest 24 bytes are all zero or all one. */
  static void putWord(byte[] into, int at, long value) {
    long sign = value >> 63;
    LONG.set(into, at, sign);
    LONG.set(into, at + 8, sign);
    LONG.set(into, at + 16, sign);
    LONG.set(into, at + 24, value);
  }
}
