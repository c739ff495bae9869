package deponent.client;

import deponent.eth.Hash;

/** JSON of blocks, for scripts. */
final class Blocks {
  private Blocks() {}

  private static String zeros(int bytes) {
    return "\"0x" + "00".repeat(bytes) + "\"";
  }

  /** A block without transactions. */
  static String block(long number, long time, String baseFee) {
    return block(number, time, baseFee, "");
  }

  /** A block with transactions, given as JSON. */
  static String block(long number, long time, String baseFee, String transactions) {
    String hash = "\"" + hash(number) + "\"";
    return "{\"number\":\"0x"
        + Long.toHexString(number)
        + "\",\"timestamp\":\"0x"
        + Long.toHexString(time)
        + "\",\"hash\":"
        + hash
        + ",\"parentHash\":"
        + zeros(32)
        + ",\"sha3Uncles\":"
        + zeros(32)
        + ",\"stateRoot\":"
        + zeros(32)
        + ",\"transactionsRoot\":"
        + zeros(32)
        + ",\"receiptsRoot\":"
        + zeros(32)
        + ",\"mixHash\":"
        + zeros(32)
        + ",\"miner\":"
        + zeros(20)
        + ",\"nonce\":"
        + zeros(8)
        + ",\"logsBloom\":"
        + zeros(256)
        + ",\"difficulty\":\"0x0\",\"gasLimit\":\"0x1\",\"gasUsed\":\"0x0\",\"size\":\"0x1\""
        + ",\"extraData\":\"0x\",\"uncles\":[],\"transactions\":["
        + transactions
        + "]"
        + (baseFee == null ? "" : ",\"baseFeePerGas\":\"" + baseFee + "\"")
        + "}";
  }

  /** The hash of the block of a number. */
  static Hash hash(long number) {
    byte[] bytes = new byte[32];
    bytes[31] = (byte) number;
    bytes[0] = 1;
    return Hash.of(bytes);
  }
}
