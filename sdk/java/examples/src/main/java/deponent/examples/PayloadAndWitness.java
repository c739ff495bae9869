package deponent.examples;

import deponent.engine.EngineClient;
import deponent.engine.NewPayload;
import deponent.engine.PayloadStatus;
import deponent.engine.Witness;
import deponent.eth.Hash;
import java.nio.ByteBuffer;
import java.util.function.Consumer;

/** 10. A payload's verdict first, its witness afterwards, verified. */
public final class PayloadAndWitness {
  private PayloadAndWitness() {}

  static boolean prove(
      EngineClient engine, NewPayload payload, Hash parentRoot, Consumer<ByteBuffer> prover) {
    if (engine.newPayload(payload) instanceof PayloadStatus.Valid) {
      try (Witness witness = engine.witness(payload.payload().blockHash())) {
        witness.verify(parentRoot);
        witness.nodes().forEach(prover); // views, nothing is copied
        return true;
      }
    }
    return false;
  }
}
