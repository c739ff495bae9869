package deponent.engine;

import deponent.eth.Bytes;
import deponent.eth.Hash;
import deponent.eth.Wei;
import java.util.List;
import java.util.Optional;

/**
 * A payload that was built, with what is beside it.
 *
 * @param payload the block
 * @param blockValue what it earns the recipient of fees
 * @param blobs the blobs of its transactions; from Cancun on
 * @param shouldOverrideBuilder whether to prefer it to a builder's; from Cancun on
 * @param executionRequests by EIP-7685, each a type and its items; from Prague on
 */
public record BuiltPayload(
    ExecutionPayload payload,
    Wei blockValue,
    Optional<BlobsBundle> blobs,
    boolean shouldOverrideBuilder,
    Optional<List<Bytes>> executionRequests) {
  /** Copies the list. */
  public BuiltPayload {
    executionRequests = executionRequests.map(List::copyOf);
  }

  /**
   * The call that validates it.
   *
   * @param parentBeaconBlockRoot that of the attributes; not used before Cancun
   * @throws IllegalArgumentException if what was built has not the fields of one fork
   */
  public NewPayload toNewPayload(Hash parentBeaconBlockRoot) {
    return payload.version() < 3
        ? NewPayload.of(payload)
        : new NewPayload(
            payload,
            blobs.map(BlobsBundle::versionedHashes).orElse(List.of()),
            Optional.of(parentBeaconBlockRoot),
            executionRequests);
  }
}
