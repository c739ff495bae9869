package deponent.client;

import deponent.eth.Address;
import deponent.eth.JsonReader;
import deponent.rpc.Params;
import deponent.rpc.Request;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** The requests of {@code txpool_*}: what is in a server's pool of transactions. */
public final class TxPool {
  private static final Members MEMBERS = Members.of("pending", "queued");

  private TxPool() {}

  /**
   * The two parts of a pool.
   *
   * @param pending of transactions that could run now
   * @param queued of those that wait for others before them
   * @param <T> what is said of each part
   */
  public record Content<T>(T pending, T queued) {}

  /** {@code txpool_status}: how many transactions there are. */
  public static Request<Content<Long>> status() {
    return Eth.read("txpool_status", Params.NONE, json -> read(json, Members::number));
  }

  /** {@code txpool_content}: the transactions by sender and nonce. */
  public static Request<Content<Map<Address, Map<Long, ChainTransaction>>>> content() {
    return Eth.read(
        "txpool_content",
        Params.NONE,
        json -> read(json, part -> Members.map(part, Members::address, TxPool::byNonce)));
  }

  /** {@code txpool_contentFrom}: the transactions of a sender by nonce. */
  public static Request<Content<Map<Long, ChainTransaction>>> contentFrom(Address sender) {
    return Eth.read(
        "txpool_contentFrom", json -> json.value(sender), json -> read(json, TxPool::byNonce));
  }

  private static Map<Long, ChainTransaction> byNonce(JsonReader json) {
    return Members.map(json, Long::valueOf, ChainTransaction::read);
  }

  private static <T> Content<T> read(JsonReader json, Members.Element<T> part) {
    Parts<T> parts = new Parts<>(part);
    MEMBERS.read(json, parts);
    return new Content<>(
        Members.the("pending", parts.pending), Members.the("queued", parts.queued));
  }

  private static final class Parts<T> implements Members.Taker {
    private final Members.Element<T> part;
    private @Nullable T pending;
    private @Nullable T queued;

    Parts(Members.Element<T> part) {
      this.part = part;
    }

    @Override
    public void take(String name, JsonReader json) {
      if (name.equals("pending")) {
        pending = part.read(json);
      } else {
        queued = part.read(json);
      }
    }
  }
}
