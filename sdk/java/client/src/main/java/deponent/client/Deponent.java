package deponent.client;

import deponent.eth.JsonReader;
import deponent.rpc.Params;
import deponent.rpc.Request;

/** The requests of {@code deponent_*}, which Deponent alone has. */
public final class Deponent {
  private Deponent() {}

  /** {@code deponent_subscribePersistedBlock}: each head of the chain that is on disk. */
  public static SubscriptionRequest<BlockRef> persistedBlocks() {
    return new SubscriptionRequest<>(
        Request.of("deponent_subscribePersistedBlock", Params.NONE, JsonReader::nextString),
        BlockRef::read);
  }
}
