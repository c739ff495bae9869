package deponent.engine;

import deponent.eth.Hash;
import java.util.List;
import java.util.Optional;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/** The calls of the Engine API over one wire. Those about a block are made for a fork. */
interface Calls extends AutoCloseable {
  Function<Fork, PayloadWithWitness> newPayload(NewPayload payload, boolean withWitness);

  Function<Fork, ForkchoiceUpdated> forkchoiceUpdated(
      ForkchoiceState state, @Nullable PayloadAttributes attributes);

  Function<Fork, BuiltPayload> getPayload(PayloadId id);

  Witness witness(Hash block);

  StatelessInput statelessInput(Hash block, boolean withPublicKeys);

  List<Optional<PayloadBody>> payloadBodies(Fork fork, List<Hash> blocks);

  List<Optional<PayloadBody>> payloadBodies(Fork fork, long from, long count);

  Optional<List<Optional<BlobAndProofs>>> blobs(int version, List<Hash> versionedHashes);

  Optional<List<Optional<BlobCells>>> cells(List<Hash> versionedHashes, byte[] indices);

  Capabilities exchangeCapabilities(List<String> ours);

  List<ClientVersion> clientVersions(ClientVersion ours);

  @Override
  void close();
}
