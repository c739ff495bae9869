package deponent.engine;

import deponent.engine.Items.Limits;
import deponent.eth.Bytes;
import deponent.eth.Wei;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;

/** Payloads in SSZ, as execution-apis #793 and EIP-8025 have them. */
final class PayloadSsz {
  /** Bytes of a block's extra data, {@code MAX_EXTRA_DATA_BYTES}. */
  private static final int EXTRA_DATA_BYTES = 32;

  /** The bounds of a schema: transactions, withdrawals, bytes of an access list. */
  record Bounds(Limits transactions, int withdrawals, int accessListBytes) {}

  /** {@code MAX_TXS_PER_PAYLOAD} and the others of execution-apis #793. */
  static final Bounds REST = new Bounds(new Limits(1 << 20, 1 << 30), 16, 1 << 30);

  /** Progressive lists, which have none. */
  static final Bounds PROGRESSIVE =
      new Bounds(
          new Limits(Integer.MAX_VALUE, Integer.MAX_VALUE), Integer.MAX_VALUE, Integer.MAX_VALUE);

  private static final Ssz.Field EXTRA_DATA = new Ssz.Field("extra_data", 436);
  private static final Ssz.Field TRANSACTIONS = new Ssz.Field("transactions", 504);
  private static final Ssz.Field WITHDRAWALS = new Ssz.Field("withdrawals", 508);
  private static final Ssz.Field ACCESS_LIST = new Ssz.Field("block_access_list", 528);

  private static final List<Ssz.Layout> LAYOUTS =
      List.of(
          Ssz.Layout.of("payload", 508, EXTRA_DATA, TRANSACTIONS),
          Ssz.Layout.of("payload", 512, EXTRA_DATA, TRANSACTIONS, WITHDRAWALS),
          Ssz.Layout.of("payload", 528, EXTRA_DATA, TRANSACTIONS, WITHDRAWALS),
          Ssz.Layout.of("payload", 540, EXTRA_DATA, TRANSACTIONS, WITHDRAWALS, ACCESS_LIST));

  private PayloadSsz() {}

  static ExecutionPayload read(int version, Memory input, Bounds bounds) {
    Ssz ssz = new Ssz(LAYOUTS.get(version - 1), input);
    Ssz.checkBytes("extra_data", ssz.part(0).bytes(), EXTRA_DATA_BYTES);
    Ssz.checkBytes("block_access_list", ssz.part(3).bytes(), bounds.accessListBytes);
    ExecutionPayloadBuilder payload = ExecutionPayload.builder();
    payload.parentHash(ssz.hash()).feeRecipient(ssz.address()).stateRoot(ssz.hash());
    payload.receiptsRoot(ssz.hash()).logsBloom(Bytes.of(ssz.bytes(256))).prevRandao(ssz.hash());
    payload.blockNumber(ssz.uint64()).gasLimit(ssz.uint64()).gasUsed(ssz.uint64());
    payload.timestamp(ssz.uint64()).extraData(Ssz.copied(ssz.part(0)));
    ssz.offset();
    payload.baseFeePerGas(Wei.of(ssz.uint256())).blockHash(ssz.hash());
    payload.transactions(Ssz.copiedByteLists("transactions", ssz.part(1), bounds.transactions));
    ssz.offset();
    if (version >= 2) {
      payload.withdrawals(withdrawals(ssz.part(2), bounds.withdrawals));
      ssz.offset();
    }
    if (version >= 3) {
      payload.blobGasUsed(ssz.uint64()).excessBlobGas(ssz.uint64());
    }
    if (version >= 4) {
      payload.blockAccessList(Ssz.copied(ssz.part(3)));
      ssz.offset();
      payload.slotNumber(ssz.uint64());
    }
    return payload.build();
  }

  static List<Withdrawal> withdrawals(Memory list, int most) {
    int count = Ssz.count("withdrawals", list, Withdrawal.BYTES, most);
    List<Withdrawal> withdrawals = new ArrayList<>(count);
    Ssz.Layout one = Ssz.Layout.of("withdrawals", Withdrawal.BYTES);
    for (int index = 0; index < count; index++) {
      long start = (long) index * Withdrawal.BYTES;
      Ssz ssz = new Ssz(one, list.part(start, start + Withdrawal.BYTES));
      withdrawals.add(new Withdrawal(ssz.uint64(), ssz.uint64(), ssz.address(), ssz.uint64()));
    }
    return withdrawals;
  }

  /**
   * The bytes of the encoding.
   *
   * @throws IllegalStateException if its extra data has none
   */
  static long bytes(ExecutionPayload payload) {
    if (payload.extraData().size() > EXTRA_DATA_BYTES) {
      throw new IllegalStateException(
          "extraData of " + payload.extraData().size() + " bytes has no SSZ, 32 are the most");
    }
    return LAYOUTS.get(payload.version() - 1).fixedBytes()
        + payload.extraData().size()
        + listBytes(payload.transactions())
        + (long) Withdrawal.BYTES * payload.withdrawals().size()
        + payload.blockAccessList().size();
  }

  /** Adds the encoding to what {@code out}, which is little-endian, has; it fits. */
  static void write(ExecutionPayload payload, ByteBuffer out) {
    int version = payload.version();
    int offset = LAYOUTS.get(version - 1).fixedBytes();
    out.put(payload.parentHash().toBytes()).put(payload.feeRecipient().toBytes());
    out.put(payload.stateRoot().toBytes()).put(payload.receiptsRoot().toBytes());
    out.put(payload.logsBloom().toBytes()).put(payload.prevRandao().toBytes());
    out.putLong(payload.blockNumber()).putLong(payload.gasLimit()).putLong(payload.gasUsed());
    out.putLong(payload.timestamp()).putInt(offset);
    offset += payload.extraData().size();
    putUint256(payload.baseFeePerGas().toBigInteger(), out);
    out.put(payload.blockHash().toBytes()).putInt(offset);
    offset += (int) listBytes(payload.transactions());
    if (version >= 2) {
      out.putInt(offset);
      offset += Withdrawal.BYTES * payload.withdrawals().size();
    }
    if (version >= 3) {
      out.putLong(payload.blobGasUsed()).putLong(payload.excessBlobGas());
    }
    if (version >= 4) {
      out.putInt(offset).putLong(payload.slotNumber());
    }
    out.put(payload.extraData().asBuffer());
    putList(payload.transactions(), out);
    payload.withdrawals().forEach(one -> write(one, out));
    out.put(payload.blockAccessList().asBuffer());
  }

  static void write(Withdrawal one, ByteBuffer out) {
    out.putLong(one.index()).putLong(one.validatorIndex());
    out.put(one.address().toBytes()).putLong(one.amount());
  }

  static long listBytes(List<Bytes> items) {
    long bytes = (long) Ssz.OFFSET_BYTES * items.size();
    for (Bytes item : items) {
      bytes += item.size();
    }
    return bytes;
  }

  static void putList(List<Bytes> items, ByteBuffer out) {
    int offset = Ssz.OFFSET_BYTES * items.size();
    for (Bytes item : items) {
      out.putInt(offset);
      offset += item.size();
    }
    for (Bytes item : items) {
      out.put(item.asBuffer());
    }
  }

  private static void putUint256(BigInteger number, ByteBuffer out) {
    byte[] big = number.toByteArray();
    for (int i = 0; i < 32; i++) {
      out.put(i < big.length ? big[big.length - 1 - i] : 0);
    }
  }
}
