package deponent.engine;

import deponent.eth.Bytes;

/**
 * The name of a payload that is being built.
 *
 * @param bytes eight of them
 */
public record PayloadId(Bytes bytes) {
  static final int SIZE = 8;

  /**
   * Checks the length.
   *
   * @throws IllegalArgumentException if there are not eight bytes
   */
  public PayloadId {
    if (bytes.size() != SIZE) {
      throw new IllegalArgumentException("a payload's id has 8 bytes, not " + bytes.size());
    }
  }

  /** Of 16 hex digits behind {@code 0x}. */
  public static PayloadId of(String hex) {
    return new PayloadId(Bytes.of(hex));
  }

  /** 16 hex digits behind {@code 0x}. */
  @Override
  public String toString() {
    return bytes.toString();
  }
}
