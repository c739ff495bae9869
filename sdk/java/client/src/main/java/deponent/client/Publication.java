package deponent.client;

import deponent.eth.Bytes;
import deponent.eth.EthException;
import deponent.eth.Hash;
import deponent.eth.JsonReader;
import deponent.eth.ProtocolException;
import deponent.eth.RpcException;
import deponent.eth.TransportException;
import deponent.eth.TransportException.Kind;
import deponent.rpc.Request;

/**
 * Gives a signed transaction to the server. The first try is one request that is not repeated, so a
 * refusal is certain: the transaction never ran, and its nonce may be used for another. After a
 * connection broke the same bytes are sent again, and then a refusal may mean that they had arrived
 * before.
 */
final class Publication {
  private final Client client;
  private final Hash hash;
  private final Request<Hash> request;

  Publication(Client client, Hash hash, Bytes encoded) {
    this.client = client;
    this.hash = hash;
    // Not Eth's, which may be sent again.
    request =
        Request.of("eth_sendRawTransaction", json -> json.value(encoded), JsonReader::nextHash);
  }

  /**
   * Returns when the server has it.
   *
   * @throws RpcException if the server refuses it
   * @throws TransportException without an answer
   * @throws ProtocolException if the server names another hash
   */
  void send() {
    try {
      check(client.request(request));
    } catch (TransportException lost) {
      if (!isWorthRepeating(lost)) {
        throw named(lost);
      }
      again(lost.mayHaveRun());
    } catch (RpcException refused) {
      if (!Refusals.isThrottled(refused)) {
        throw refused;
      }
      again(false);
    }
  }

  /** Sends what was sent before; the server may have it. */
  void resend() {
    try {
      check(client.request(request.repeatable()));
    } catch (TransportException lost) {
      throw named(lost);
    } catch (RpcException refused) {
      if (!arrived(refused)) {
        throw refused;
      }
    }
  }

  private static boolean isWorthRepeating(TransportException lost) {
    return switch (lost.kind()) {
      case CONNECT, CLOSED, BUSY -> true;
      case TLS, REFUSED, TIMEOUT -> false;
    };
  }

  /** Sends it again, after a try that may have run, or one that the server put off. */
  private void again(boolean mayHaveRun) {
    try {
      check(client.request(request.repeatable()));
    } catch (TransportException lost) {
      throw named(
          new TransportException(
              lost.kind(), mayHaveRun || lost.mayHaveRun(), lost.getMessage(), lost));
    } catch (RpcException refused) {
      if (arrived(refused)) {
        return;
      }
      // The nonce may be used by this very transaction, and nobody knows it here.
      if (mayHaveRun || Refusals.isNonceTaken(refused)) {
        throw named(new TransportException(Kind.CLOSED, true, refused.getMessage(), refused));
      }
      throw refused;
    }
  }

  /** Whether a refusal means that the transaction had arrived before. */
  private boolean arrived(RpcException refused) {
    try {
      return Refusals.isKnown(refused) || client.transaction(hash).isPresent();
    } catch (EthException nobodySays) {
      return false;
    }
  }

  private void check(Hash answered) {
    if (!answered.equals(hash)) {
      throw new ProtocolException(
          "eth_sendRawTransaction: the server names " + answered + ", and " + hash + " was sent");
    }
  }

  private TransportException named(TransportException lost) {
    String what = lost.mayHaveRun() ? " may have been sent" : " was not sent";
    return new TransportException(
        lost.kind(), lost.mayHaveRun(), lost.getMessage() + ": " + hash + what, lost);
  }
}
