package deponent.engine;

import deponent.eth.Bytes;
import java.util.List;
import java.util.Optional;

/**
 * The cells of a blob that were asked for, by ascending index; those that the server lacks are
 * empty.
 *
 * @param cells of 2,048 bytes
 * @param proofs of 48 bytes, one a cell
 */
public record BlobCells(List<Optional<Bytes>> cells, List<Optional<Bytes>> proofs) {
  static final int CELL_BYTES = 2_048;

  /** Copies the lists. */
  public BlobCells {
    cells = List.copyOf(cells);
    proofs = List.copyOf(proofs);
  }
}
