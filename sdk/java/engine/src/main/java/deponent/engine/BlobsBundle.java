package deponent.engine;

import deponent.eth.Bytes;
import deponent.eth.Hash;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.List;

/**
 * The blobs of a payload: {@code BlobsBundleV1} and {@code V2}.
 *
 * @param commitments of 48 bytes, one a blob
 * @param proofs of 48 bytes: one a blob, from Osaka on one a cell
 * @param blobs of 131,072 bytes
 */
public record BlobsBundle(List<Bytes> commitments, List<Bytes> proofs, List<Bytes> blobs) {
  static final int POINT_BYTES = 48;
  static final int BLOB_BYTES = 1 << 17;

  /** Cells of a blob. */
  static final int CELLS = 128;

  /** Copies the lists. */
  public BlobsBundle {
    commitments = List.copyOf(commitments);
    proofs = List.copyOf(proofs);
    blobs = List.copyOf(blobs);
  }

  /** The hashes of the commitments as transactions have them (EIP-4844). */
  public List<Hash> versionedHashes() {
    return commitments.stream().map(BlobsBundle::versionedHash).toList();
  }

  private static Hash versionedHash(Bytes commitment) {
    try {
      byte[] hash = MessageDigest.getInstance("SHA-256").digest(commitment.toBytes());
      hash[0] = 1;
      return Hash.of(hash);
    } catch (NoSuchAlgorithmException impossible) {
      throw new IllegalStateException("every Java has SHA-256", impossible);
    }
  }
}
