package deponent.engine;

import deponent.eth.Bytes;
import java.util.List;

/**
 * A blob of the server's pool: {@code BlobAndProofV1} and {@code V2}.
 *
 * @param blob 131,072 bytes
 * @param proofs of 48 bytes: in version 1 that of the blob, later those of its 128 cells
 */
public record BlobAndProofs(Bytes blob, List<Bytes> proofs) {
  /** Copies the list. */
  public BlobAndProofs {
    proofs = List.copyOf(proofs);
  }
}
