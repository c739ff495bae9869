package deponent.engine;

import deponent.engine.Items.Limits;
import java.nio.ByteBuffer;

/** {@code ExecutionWitness} of execution-apis #885 and EIP-8025: state, codes, headers. */
final class WitnessSsz {
  private static final Ssz.Layout LAYOUT =
      Ssz.Layout.of(
          "witness",
          12,
          new Ssz.Field("state", 0),
          new Ssz.Field("codes", 4),
          new Ssz.Field("headers", 8));

  private WitnessSsz() {}

  static Witness read(Memory input, Limits state, Limits codes, Limits headers) {
    Ssz ssz = new Ssz(LAYOUT, input);
    return new Witness(
        Ssz.byteLists("state", ssz.part(0), state),
        Ssz.byteLists("codes", ssz.part(1), codes),
        Ssz.byteLists("headers", ssz.part(2), headers));
  }

  static long bytes(Witness witness) {
    return LAYOUT.fixedBytes()
        + listBytes(witness.nodes())
        + listBytes(witness.codes())
        + listBytes(witness.headers());
  }

  /** Adds the encoding to what {@code out}, which is little-endian, has; it fits. */
  static void write(Witness witness, ByteBuffer out) {
    int codes = LAYOUT.fixedBytes() + (int) listBytes(witness.nodes());
    out.putInt(LAYOUT.fixedBytes());
    out.putInt(codes);
    out.putInt(codes + (int) listBytes(witness.codes()));
    writeList(witness.nodes(), out);
    writeList(witness.codes(), out);
    writeList(witness.headers(), out);
  }

  private static long listBytes(Items items) {
    return (long) Ssz.OFFSET_BYTES * items.size() + items.contentBytes();
  }

  private static void writeList(Items items, ByteBuffer out) {
    int offset = Ssz.OFFSET_BYTES * items.size();
    for (int index = 0; index < items.size(); index++) {
      out.putInt(offset);
      offset += items.bytes(index);
    }
    for (int index = 0; index < items.size(); index++) {
      items.putInto(index, out);
    }
  }
}
