package deponent.eth;

import java.io.ByteArrayOutputStream;
import java.util.List;
import java.util.Map;

/** {@code (T1,T2,..)}, and the parameters of functions, events and errors. */
final class AbiTuple extends AbiType {
  private static final int WORD = 32;

  private final List<AbiParameter> members;

  /** The same types, without a bound check and a cast for each. */
  private final AbiType[] types;

  /** Bytes of all members' heads. */
  private final int headsBytes;

  private AbiTuple(String name, boolean dynamic, int headsBytes, List<AbiParameter> members) {
    super(Kind.TUPLE, name, dynamic, dynamic ? WORD : headsBytes);
    this.members = members;
    this.headsBytes = headsBytes;
    types = members.stream().map(AbiParameter::type).toArray(AbiType[]::new);
  }

  static AbiTuple of(List<AbiParameter> members) {
    StringBuilder name = new StringBuilder("(");
    boolean dynamic = false;
    long bytes = 0;
    for (AbiParameter member : members) {
      name.append(name.length() > 1 ? "," : "").append(member.type());
      dynamic |= member.type().isDynamic();
      bytes += member.type().headBytes();
    }
    if (bytes > Integer.MAX_VALUE) {
      throw new IllegalArgumentException("a tuple has more than 2^31 bytes");
    }
    return new AbiTuple(name.append(')').toString(), dynamic, (int) bytes, List.copyOf(members));
  }

  @Override
  public List<AbiParameter> members() {
    return members;
  }

  private void check(Object value) {
    int count;
    if (value instanceof Object[] array) {
      count = array.length;
    } else if (value instanceof List<?> list) {
      count = list.size();
    } else if (value instanceof Map<?, ?> map) {
      count = map.size();
    } else {
      throw Misfit.of(value, this);
    }
    if (count != types.length) {
      throw new Misfit(count + " values, where " + this + " has " + types.length);
    }
  }

  private Object memberOf(Object value, int index) {
    Object member;
    if (value instanceof Object[] array) {
      member = array[index];
    } else if (value instanceof List<?> list) {
      member = list.get(index);
    } else {
      member = ((Map<?, ?>) value).get(members.get(index).name());
    }
    if (member == null) {
      throw new Misfit("null is no value");
    }
    return member;
  }

  /** Bytes of all members' heads. */
  int headsBytes() {
    return headsBytes;
  }

  /** The member whose head has the byte {@code at}. */
  int memberAt(int at) {
    int index = 0;
    for (int left = at - types[0].headBytes(); left >= 0 && index + 1 < types.length; ) {
      left -= types[++index].headBytes();
    }
    return index;
  }

  String place(int index) {
    String name = members.get(index).name();
    return name.isEmpty() ? "." + (index + 1) : "." + name;
  }

  @Override
  int measure(Object value) {
    check(value);
    int bytes = headsBytes;
    if (isDynamic()) {
      for (int i = 0; i < types.length; i++) {
        if (types[i].isDynamic()) {
          try {
            bytes = Math.addExact(bytes, types[i].measure(memberOf(value, i)));
          } catch (Misfit misfit) {
            throw misfit.in(place(i));
          }
        }
      }
    }
    return bytes;
  }

  @Override
  int put(Object value, byte[] out, int at) {
    check(value);
    int tail = at + headsBytes;
    int head = at;
    for (int i = 0; i < types.length; i++) {
      AbiType type = types[i];
      try {
        if (type.isDynamic()) {
          Words.putWord(out, head, tail - at);
          tail = type.put(memberOf(value, i), out, tail);
          head += WORD;
        } else {
          head = type.put(memberOf(value, i), out, head);
        }
      } catch (Misfit misfit) {
        throw misfit.in(place(i));
      }
    }
    return tail;
  }

  @Override
  AbiValues get(AbiDecoder in, int at) {
    if (isDynamic()) {
      in.heads(at, 1, headsBytes, this);
    }
    Object[] values = new Object[types.length];
    int head = at;
    for (int i = 0; i < types.length; i++) {
      AbiType type = types[i];
      values[i] = type.get(in, type.isDynamic() ? in.offset(head, at) : head);
      head += type.headBytes();
    }
    return new AbiValues(members, values);
  }

  @Override
  void pack(Object value, ByteArrayOutputStream out, boolean padded) {
    check(value);
    for (int i = 0; i < types.length; i++) {
      try {
        types[i].pack(memberOf(value, i), out, true);
      } catch (Misfit misfit) {
        throw misfit.in(place(i));
      }
    }
  }

  @Override
  boolean hasPackedForm() {
    return false;
  }

  @Override
  String taken() {
    return "a List, Object[], AbiValues and a Map of names are taken";
  }
}
