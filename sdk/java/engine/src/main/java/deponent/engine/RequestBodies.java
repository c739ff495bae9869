package deponent.engine;

import deponent.eth.Hash;
import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/** Bodies of requests of the REST Engine API, in SSZ (execution-apis #793). */
final class RequestBodies {
  private static final int ATTRIBUTES_BYTES = 8 + Hash.SIZE + 20;

  private RequestBodies() {}

  private static ByteBuffer little(int bytes) {
    return ByteBuffer.allocate(bytes).order(ByteOrder.LITTLE_ENDIAN);
  }

  /** {@code ForkchoiceUpdate} of a fork; custody columns are never named. */
  static byte[] forkchoice(
      Fork fork, ForkchoiceState state, @Nullable PayloadAttributes attributes) {
    byte[] given = attributes == null ? new byte[0] : attributes(fork, attributes);
    boolean isAmsterdam = fork.payloadVersion() >= 4;
    int fixed = 3 * Hash.SIZE + (isAmsterdam ? 8 : 4);
    ByteBuffer out = little(fixed + given.length);
    out.put(state.head().toBytes()).put(state.safe().toBytes()).put(state.finalized().toBytes());
    out.putInt(fixed);
    if (isAmsterdam) {
      out.putInt(fixed + given.length);
    }
    return out.put(given).array();
  }

  /** An optional value: of a fixed length in Paris, behind an offset later. */
  private static byte[] attributes(Fork fork, PayloadAttributes attributes) {
    int version = fork.payloadVersion();
    List<Withdrawal> withdrawals = attributes.withdrawals().orElse(List.of());
    int fixed =
        switch (version) {
          case 1 -> ATTRIBUTES_BYTES;
          case 2 -> ATTRIBUTES_BYTES + 4;
          case 3 -> ATTRIBUTES_BYTES + 4 + Hash.SIZE;
          default -> ATTRIBUTES_BYTES + 4 + Hash.SIZE + 16;
        };
    int list = version >= 2 ? Withdrawal.BYTES * withdrawals.size() : 0;
    ByteBuffer out = little((version >= 2 ? 4 : 0) + fixed + list);
    if (version >= 2) {
      out.putInt(4);
    }
    out.putLong(attributes.timestamp()).put(attributes.prevRandao().toBytes());
    out.put(attributes.suggestedFeeRecipient().toBytes());
    if (version >= 2) {
      out.putInt(fixed);
    }
    if (version >= 3) {
      out.put(attributes.parentBeaconBlockRoot().orElse(Hash.ZERO).toBytes());
    }
    if (version >= 4) {
      out.putLong(attributes.slotNumber().orElse(0)).putLong(attributes.targetGasLimit().orElse(0));
    }
    if (version >= 2) {
      withdrawals.forEach(one -> PayloadSsz.write(one, out));
    }
    return out.array();
  }

  /** A list of hashes, behind it the cells that are wanted in the fourth version of blobs. */
  static byte[] hashes(List<Hash> hashes, Optional<byte[]> indices) {
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    out.writeBytes(little(4).putInt(indices.isPresent() ? 20 : 4).array());
    indices.ifPresent(out::writeBytes);
    hashes.forEach(hash -> out.writeBytes(hash.toBytes()));
    return out.toByteArray();
  }
}
