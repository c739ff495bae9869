package deponent.engine;

import deponent.eth.Bytes;
import java.util.List;
import java.util.Optional;

/**
 * The verdict on a payload, with the witness of a valid one.
 *
 * @param status the verdict
 * @param witness of a valid block; genesis has none
 * @param publicKeys the signers' keys of 65 bytes, one a transaction; none over JSON-RPC, and from
 *     servers that send none
 * @param timings of the last block that the server ran; never over JSON-RPC
 */
public record PayloadWithWitness(
    PayloadStatus status,
    Optional<Witness> witness,
    List<Bytes> publicKeys,
    Optional<Timings> timings)
    implements AutoCloseable {
  /** Copies the list. */
  public PayloadWithWitness {
    publicKeys = List.copyOf(publicKeys);
  }

  /** Closes the witness. */
  @Override
  public void close() {
    witness.ifPresent(Witness::close);
  }
}
