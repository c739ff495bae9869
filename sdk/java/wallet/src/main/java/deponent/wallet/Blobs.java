package deponent.wallet;

import deponent.eth.BlobSidecar;
import deponent.eth.Bytes;
import deponent.eth.MalformedException;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * Makes blobs, with their commitments and cell proofs (EIP-4844, EIP-7594).
 *
 * <pre>{@code
 * BlobSidecar sidecar = Blobs.sidecar(data);
 * Transaction transaction =
 *     Transaction.to(inbox).chainId(1).fees(most, tip)
 *         .blobs(sidecar.versionedHashes(), Wei.gwei("1")).build();
 * Bytes encoded = sidecar.encode(key.sign(transaction));
 * }</pre>
 *
 * <p>It needs {@code io.consensys.protocols:jc-kzg-4844} (2.1.8) on the class path, also where this
 * module is on the module path, and the JVM's {@code --enable-native-access=ALL-UNNAMED}.
 */
public final class Blobs {
  private static final int WORD = 32;
  private static final int WORDS = BlobSidecar.BLOB_SIZE / WORD;

  /** Bytes of data of a word, whose first byte is zero: so it is below the field's modulus. */
  private static final int USED = WORD - 1;

  private static final int POINT = 48;
  private static final int CELL = 2_048;

  private static final BigInteger MODULUS =
      new BigInteger("73eda753299d7d483339d80809a1d80553bda402fffe5bfeffffffff00000001", 16);

  private Blobs() {}

  /**
   * Puts data into as many blobs as it needs, as Foundry does: its length in the first word, and 31
   * bytes in each of the others. How many blobs a transaction may have, the fork says.
   *
   * @throws IllegalArgumentException if there is no data
   * @throws IllegalStateException if the library is missing
   */
  public static BlobSidecar sidecar(byte[] data) {
    if (data.length == 0) {
      throw new IllegalArgumentException("no data makes no blob");
    }
    int words = 1 + Math.ceilDiv(data.length, USED);
    List<Bytes> blobs = new ArrayList<>();
    for (int first = 0; first < words; first += WORDS) {
      byte[] blob = new byte[BlobSidecar.BLOB_SIZE];
      for (int word = first; word < Math.min(words, first + WORDS); word++) {
        int at = (word - first) * WORD + 1;
        if (word == 0) {
          ByteBuffer.wrap(blob).putLong(at, data.length);
        } else {
          int from = (word - 1) * USED;
          System.arraycopy(data, from, blob, at, Math.min(USED, data.length - from));
        }
      }
      blobs.add(Bytes.of(blob));
    }
    return sidecar(blobs);
  }

  /**
   * The data that {@link #sidecar(byte[])} put into blobs; what follows it is not looked at.
   *
   * @throws MalformedException if the blobs hold other things
   */
  public static byte[] data(List<Bytes> blobs) {
    long room = (long) blobs.size() * WORDS;
    long length = blobs.isEmpty() ? 0 : ByteBuffer.wrap(blobs.get(0).toBytes()).getLong(1);
    if (length <= 0 || length > (room - 1) * USED || length > Integer.MAX_VALUE - 8) {
      throw new MalformedException("no data in " + blobs.size() + " blobs: its length is missing");
    }
    byte[] data = new byte[(int) length];
    byte[] blob = new byte[0];
    for (int word = 0; word <= Math.ceilDiv(data.length, USED); word++) {
      if (word % WORDS == 0) {
        blob = blobs.get(word / WORDS).toBytes();
      }
      int at = word % WORDS * WORD;
      if (blob[at] != 0) {
        throw new MalformedException("word " + word + " of the blobs is no part of data");
      }
      if (word > 0) {
        int to = (word - 1) * USED;
        System.arraycopy(blob, at + 1, data, to, Math.min(USED, data.length - to));
      }
    }
    return data;
  }

  /**
   * Commitments and cell proofs of blobs that are there.
   *
   * @throws IllegalArgumentException if one has not 131,072 bytes, or a word of one is not below
   *     the field's modulus
   * @throws IllegalStateException if the library is missing
   */
  public static BlobSidecar sidecar(List<Bytes> blobs) {
    for (int i = 0; i < blobs.size(); i++) {
      check(blobs.get(i), i);
    }
    Kzg kzg = Kzg.loaded();
    List<Bytes> commitments = new ArrayList<>();
    List<Bytes> proofs = new ArrayList<>();
    for (Bytes blob : blobs) {
      byte[] bytes = blob.toBytes();
      commitments.add(Bytes.of(kzg.commitment(bytes)));
      byte[] all = kzg.cellProofs(bytes);
      for (int i = 0; i < BlobSidecar.CELLS; i++) {
        proofs.add(Bytes.of(Arrays.copyOfRange(all, i * POINT, (i + 1) * POINT)));
      }
    }
    return new BlobSidecar(blobs, commitments, proofs);
  }

  private static void check(Bytes blob, int place) {
    if (blob.size() != BlobSidecar.BLOB_SIZE) {
      throw new IllegalArgumentException(
          "a blob has " + BlobSidecar.BLOB_SIZE + " bytes, not " + blob.size());
    }
    byte[] bytes = blob.toBytes();
    for (int at = 0; at < bytes.length; at += WORD) {
      boolean near = (bytes[at] & 0xff) >= 0x73;
      if (near && new BigInteger(1, bytes, at, WORD).compareTo(MODULUS) >= 0) {
        throw new IllegalArgumentException(
            "word " + at / WORD + " of blob " + place + " is not below the field's modulus");
      }
    }
  }

  /**
   * Whether all cell proofs are right, as nodes check them.
   *
   * @throws IllegalStateException if the library is missing
   */
  public static boolean verify(BlobSidecar sidecar) {
    int count = sidecar.blobs().size();
    Kzg kzg = Kzg.loaded();
    ByteBuffer commitments = ByteBuffer.allocate(count * BlobSidecar.CELLS * POINT);
    ByteBuffer cells = ByteBuffer.allocate(count * BlobSidecar.CELLS * CELL);
    ByteBuffer proofs = ByteBuffer.allocate(count * BlobSidecar.CELLS * POINT);
    long[] places = new long[count * BlobSidecar.CELLS];
    try {
      for (int i = 0; i < count; i++) {
        byte[] blob = sidecar.blobs().get(i).toBytes();
        check(sidecar.blobs().get(i), i);
        cells.put(kzg.cells(blob));
        for (int cell = 0; cell < BlobSidecar.CELLS; cell++) {
          int place = i * BlobSidecar.CELLS + cell;
          commitments.put(sidecar.commitments().get(i).toBytes());
          proofs.put(sidecar.cellProofs().get(place).toBytes());
          places[place] = cell;
        }
      }
      return kzg.verifies(commitments.array(), places, cells.array(), proofs.array());
    } catch (IllegalStateException library) {
      throw library;
    } catch (RuntimeException noPoints) {
      // Bytes that are no points of the curve, or words that are none of the field.
      return false;
    }
  }
}
