package deponent.bench;

import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/** What all libraries are given. */
public final class Inputs {
  /** The names of operations, in the order of reports. */
  public static final String TRANSFER_HEX = "transfer call, hex";

  public static final String TRANSFER_BYTES = "transfer call, bytes";
  public static final String TRANSFER_BUFFER = "transfer call, into a buffer";
  public static final String NESTED_ENCODE = "nested call, encoded, hex";
  public static final String NESTED_DECODE = "nested values, decoded";
  public static final String KECCAK_32 = "keccak-256, 32 bytes";
  public static final String KECCAK_1024 = "keccak-256, 1 KiB";
  public static final String RLP_ENCODE = "RLP tree of 101, encoded";
  public static final String RLP_DECODE = "RLP tree of 101, decoded";
  public static final String SIGN_HASH = "a hash signed";
  public static final String SIGN_TRANSACTION = "a transaction (type 2) signed";
  public static final String RECOVER = "an address recovered";
  public static final String WITNESS_SSZ = "1 MB witness of SSZ, iterated";
  public static final String WITNESS_RLP = "1 MB witness of RLP, iterated";
  public static final String WITNESS_JSON = "1 MB witness of JSON, iterated";

  /** A key that the documentation of many tools has. */
  public static final String KEY =
      "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80";

  public static final String FRIEND = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8";
  public static final BigInteger AMOUNT = new BigInteger("1000000000000000000");
  public static final long CHAIN = 11_155_111;
  public static final long GAS = 21_000;
  public static final long TIP = 1_000_000_000L;
  public static final long FEE = 2_000_000_000L;

  private Inputs() {}

  /** 32 bytes that are no zeros. */
  public static byte[] id() {
    byte[] id = new byte[32];
    Arrays.fill(id, (byte) 0xab);
    return id;
  }

  /** {@code count} bytes. */
  public static byte[] bytes(int count) {
    byte[] bytes = new byte[count];
    for (int i = 0; i < count; i++) {
      bytes[i] = (byte) (31 * i + 7);
    }
    return bytes;
  }

  /** A hundred short strings of bytes, for RLP. */
  public static byte[][] items() {
    byte[][] items = new byte[100][];
    for (int i = 0; i < items.length; i++) {
      items[i] = ("item" + i).getBytes(StandardCharsets.US_ASCII);
    }
    return items;
  }

  /** The string behind them. */
  public static byte[] suffix() {
    return "suffix".getBytes(StandardCharsets.US_ASCII);
  }
}
