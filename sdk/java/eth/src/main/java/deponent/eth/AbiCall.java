package deponent.eth;

import java.nio.BufferOverflowException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Objects;

/** A selector with the values behind it: of functions and errors. */
final class AbiCall {
  private static final int SELECTOR = 4;

  final String name;
  final AbiTuple inputs;
  final String signature;
  final int selector;

  /**
   * Bytes that {@link AbiWriter} needed for the last call, beyond those of a static one. Threads
   * may overwrite each other's: it is a guess.
   */
  int guess = 224;

  AbiCall(String name, List<AbiParameter> inputs) {
    this.name = name;
    this.inputs = AbiTuple.of(inputs);
    this.signature = name + this.inputs;
    this.selector = Words.getInt(topic(signature).toBytes(), 0);
  }

  static Hash topic(String signature) {
    return Keccak256.hash(signature.getBytes(StandardCharsets.UTF_8));
  }

  byte[] encode(Object[] values) {
    try {
      byte[] out = new byte[Math.addExact(SELECTOR, inputs.measured(values))];
      Words.putInt(out, 0, selector);
      inputs.put(values, out, SELECTOR);
      return out;
    } catch (Misfit misfit) {
      throw misfit.in(signature + " ");
    }
  }

  int encodeTo(byte[] into, int at, Object[] values) {
    return encodeTo(into, at, into.length, values);
  }

  private int encodeTo(byte[] into, int at, int limit, Object[] values) {
    try {
      int length = Math.addExact(SELECTOR, inputs.measured(values));
      Objects.checkFromIndexSize(at, length, limit);
      Words.putInt(into, at, selector);
      inputs.put(values, into, at + SELECTOR);
      return length;
    } catch (Misfit misfit) {
      throw misfit.in(signature + " ");
    }
  }

  int encodeTo(ByteBuffer into, Object[] values) {
    if (!into.hasArray()) {
      byte[] encoded = encode(values);
      into.put(encoded);
      return encoded.length;
    }
    int from = into.arrayOffset() + into.position();
    int limit = into.arrayOffset() + into.limit();
    try {
      int length = encodeTo(into.array(), from, limit, values);
      into.position(into.position() + length);
      return length;
    } catch (IndexOutOfBoundsException full) {
      BufferOverflowException overflow = new BufferOverflowException();
      overflow.initCause(full);
      throw overflow;
    }
  }

  boolean begins(byte[] data) {
    return data.length >= SELECTOR && Words.getInt(data, 0) == selector;
  }

  AbiValues decode(byte[] data) {
    return values(data).values(inputs);
  }

  /** What stands behind the selector. */
  AbiDecoder values(byte[] data) {
    if (!begins(data)) {
      String found = Hex.encode(data, 0, Math.min(SELECTOR, data.length));
      throw new MalformedException(
          found + " is not the selector of " + signature + ", " + selectorBytes());
    }
    return new AbiDecoder(data, SELECTOR, data.length - SELECTOR);
  }

  Bytes selectorBytes() {
    byte[] bytes = new byte[SELECTOR];
    Words.putInt(bytes, 0, selector);
    return Bytes.own(bytes);
  }
}
