package deponent.client;

import deponent.eth.AbiValues;
import deponent.eth.EthException;

/** What became of a call of a {@link Multicall}. */
public sealed interface Outcome {
  /**
   * The function returned.
   *
   * @param values what it returned
   */
  record Value(AbiValues values) implements Outcome {}

  /**
   * The function did not return.
   *
   * @param why a {@link deponent.eth.RevertException} where it reverted, a {@link
   *     deponent.eth.MalformedException} where it returned something else, else a {@link
   *     deponent.eth.RpcException}
   */
  record Failed(EthException why) implements Outcome {}

  /**
   * What the function returned.
   *
   * @throws EthException if it did not
   */
  default AbiValues get() {
    return switch (this) {
      case Value(AbiValues values) -> values;
      case Failed(EthException why) -> {
        why.fillInStackTrace();
        throw why;
      }
    };
  }
}
