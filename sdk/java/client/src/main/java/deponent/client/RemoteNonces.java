package deponent.client;

import deponent.eth.Address;
import deponent.eth.Hash;
import deponent.eth.TransportException;

/** Nonces that the server counts. */
final class RemoteNonces implements Nonces {
  @Override
  public Turn begin(Client client, Address account) {
    return new Turn() {
      @Override
      public long take() {
        return client.transactionCount(account, BlockId.PENDING);
      }

      @Override
      public void sent(Hash transaction, long next) {}

      @Override
      public void lost(TransportException why) {}

      @Override
      public void close() {}
    };
  }
}
