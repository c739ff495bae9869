package deponent.engine;

import java.util.Locale;

/** The forks whose blocks the Engine API has. */
public enum Fork {
  /** The merge; {@code ExecutionPayloadV1}. */
  PARIS(1, 0x0e),
  /** Withdrawals; {@code ExecutionPayloadV2}. */
  SHANGHAI(2, 0x0f),
  /** Blobs; {@code ExecutionPayloadV3}. */
  CANCUN(3, 0x10),
  /** Requests beside the payload. */
  PRAGUE(3, 0x11),
  /** Cell proofs. */
  OSAKA(3, 0x12),
  /** Osaka, with more blobs. */
  BPO1(3, 0x13),
  /** Osaka, with still more blobs. */
  BPO2(3, 0x14),
  /** Block access lists; {@code ExecutionPayloadV4}. */
  AMSTERDAM(4, 0x15);

  private final int payloadVersion;
  private final int schema;

  Fork(int payloadVersion, int schema) {
    this.payloadVersion = payloadVersion;
    this.schema = schema;
  }

  /** The number of the structure that its payloads have, 1 to 4. */
  public int payloadVersion() {
    return payloadVersion;
  }

  /** The first byte of its stateless inputs. */
  int schema() {
    return schema;
  }

  /** The name in the header of REST; forks of blob parameters count to the one they follow. */
  String header() {
    Fork of = this == BPO1 || this == BPO2 ? OSAKA : this;
    return of.name().toLowerCase(Locale.ROOT);
  }

  /** Whether requests (EIP-7685) are beside its payloads. */
  boolean hasRequests() {
    return compareTo(PRAGUE) >= 0;
  }
}
