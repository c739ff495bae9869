package deponent.eth;

import java.io.ByteArrayOutputStream;
import java.util.List;

/** {@code T[]} and {@code T[k]}. */
final class AbiArray extends AbiType {
  private static final int WORD = 32;

  private final AbiType element;

  /** The number of elements, or -1 for any. */
  private final int length;

  private AbiArray(String name, boolean dynamic, int headBytes, AbiType element, int length) {
    super(Kind.ARRAY, name, dynamic, headBytes);
    this.element = element;
    this.length = length;
  }

  static AbiArray any(AbiType element) {
    return new AbiArray(element + "[]", true, WORD, element, -1);
  }

  static AbiArray fixed(AbiType element, int length) {
    String name = element + "[" + length + "]";
    long bytes = (long) element.headBytes() * length;
    if (bytes > Integer.MAX_VALUE) {
      throw new IllegalArgumentException(name + " has more than 2^31 bytes");
    }
    boolean dynamic = element.isDynamic();
    return new AbiArray(name, dynamic, dynamic ? WORD : (int) bytes, element, length);
  }

  @Override
  public int length() {
    return length;
  }

  @Override
  public AbiType element() {
    return element;
  }

  private int countOf(Object value) {
    int count;
    if (value instanceof List<?> list) {
      count = list.size();
    } else if (value instanceof Object[] array) {
      count = array.length;
    } else {
      throw Misfit.of(value, this);
    }
    if (length >= 0 && count != length) {
      throw new Misfit(count + " elements do not fit " + this);
    }
    return count;
  }

  private static Object elementOf(Object value, int index) {
    Object element = value instanceof List<?> list ? list.get(index) : ((Object[]) value)[index];
    if (element == null) {
      throw new Misfit("null is no value");
    }
    return element;
  }

  @Override
  int measure(Object value) {
    int count = countOf(value);
    int prefix = length < 0 ? WORD : 0;
    int bytes = Math.addExact(prefix, Math.multiplyExact(count, element.headBytes()));
    if (element.isDynamic()) {
      for (int i = 0; i < count; i++) {
        try {
          bytes = Math.addExact(bytes, element.measure(elementOf(value, i)));
        } catch (Misfit misfit) {
          throw misfit.in("[" + i + "]");
        }
      }
    }
    return bytes;
  }

  @Override
  int put(Object value, byte[] out, int at) {
    int count = countOf(value);
    int base = at;
    if (length < 0) {
      Words.putWord(out, at, count);
      base += WORD;
    }
    int tail = base + count * element.headBytes();
    int head = base;
    for (int i = 0; i < count; i++) {
      try {
        if (element.isDynamic()) {
          Words.putWord(out, head, tail - base);
          tail = element.put(elementOf(value, i), out, tail);
          head += WORD;
        } else {
          head = element.put(elementOf(value, i), out, head);
        }
      } catch (Misfit misfit) {
        throw misfit.in("[" + i + "]");
      }
    }
    return tail;
  }

  @Override
  Object get(AbiDecoder in, int at) {
    int count = length;
    int base = at;
    if (length < 0) {
      count = in.length(at, "an array");
      base += WORD;
    }
    if (isDynamic() || headBytes() == 0) {
      in.heads(base, count, element.headBytes(), this);
    }
    Object[] values = new Object[count];
    for (int i = 0; i < count; i++) {
      int head = base + i * element.headBytes();
      values[i] = element.get(in, element.isDynamic() ? in.offset(head, base) : head);
    }
    return List.of(values);
  }

  @Override
  void pack(Object value, ByteArrayOutputStream out, boolean padded) {
    int count = countOf(value);
    for (int i = 0; i < count; i++) {
      try {
        element.pack(elementOf(value, i), out, true);
      } catch (Misfit misfit) {
        throw misfit.in("[" + i + "]");
      }
    }
  }

  @Override
  boolean hasPackedForm() {
    return element.hasPackedForm() && !element.isDynamic();
  }

  @Override
  String taken() {
    return "a List and Object[] are taken";
  }
}
