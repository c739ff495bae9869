package deponent.eth;

import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.List;

/**
 * The blobs that go beside a transaction to the pool, and what proves them (EIP-7594).
 *
 * @param blobs 131,072 bytes each
 * @param commitments 48 bytes each, one a blob
 * @param cellProofs 48 bytes each, 128 a blob
 */
public record BlobSidecar(List<Bytes> blobs, List<Bytes> commitments, List<Bytes> cellProofs) {
  /** Bytes of a blob. */
  public static final int BLOB_SIZE = 131_072;

  /** Cell proofs of a blob. */
  public static final int CELLS = 128;

  private static final int POINT_SIZE = 48;

  /** Copies the lists, and checks their numbers and sizes; proofs are not checked. */
  public BlobSidecar {
    blobs = List.copyOf(blobs);
    commitments = List.copyOf(commitments);
    cellProofs = List.copyOf(cellProofs);
    if (commitments.size() != blobs.size() || cellProofs.size() != CELLS * blobs.size()) {
      throw new IllegalArgumentException(
          blobs.size()
              + " blobs with "
              + commitments.size()
              + " commitments and "
              + cellProofs.size()
              + " cell proofs: there are 1 and 128 a blob");
    }
    check(blobs, BLOB_SIZE, "a blob");
    check(commitments, POINT_SIZE, "a commitment");
    check(cellProofs, POINT_SIZE, "a cell proof");
  }

  private static void check(List<Bytes> all, int size, String what) {
    for (Bytes one : all) {
      if (one.size() != size) {
        throw new IllegalArgumentException(what + " has " + size + " bytes, not " + one.size());
      }
    }
  }

  /** The hashes of the commitments, as a transaction names its blobs. */
  public List<Hash> versionedHashes() {
    List<Hash> hashes = new ArrayList<>();
    for (Bytes commitment : commitments) {
      byte[] hash = sha256().digest(commitment.array);
      hash[0] = 1;
      hashes.add(Hash.of(hash, 0));
    }
    return hashes;
  }

  private static MessageDigest sha256() {
    try {
      return MessageDigest.getInstance("SHA-256");
    } catch (NoSuchAlgorithmException no) {
      throw new IllegalStateException("each Java has SHA-256", no);
    }
  }

  /**
   * The bytes that {@code eth_sendRawTransaction} takes: the transaction, and these blobs.
   *
   * @throws IllegalArgumentException if it is no transaction with these blobs
   */
  public Bytes encode(SignedTransaction signed) {
    boolean same =
        signed.transaction() instanceof BlobTransaction blob
            && blob.blobVersionedHashes().equals(versionedHashes());
    if (!same) {
      throw new IllegalArgumentException("the transaction is not one with these blobs");
    }
    return TransactionRlp.withBlobs(signed, this);
  }

  /**
   * Reads what {@link #encode} writes: the transaction.
   *
   * @throws MalformedException if it is something else
   */
  public static SignedTransaction transactionOf(Bytes encoded) {
    return TransactionRlp.readWithBlobs(encoded).transaction();
  }

  /**
   * Reads what {@link #encode} writes: the blobs.
   *
   * @throws MalformedException if it is something else
   */
  public static BlobSidecar of(Bytes encoded) {
    return TransactionRlp.readWithBlobs(encoded).sidecar();
  }
}
