package deponent.client;

import deponent.eth.RevertException;
import deponent.eth.RpcException;
import java.util.List;
import java.util.Locale;

/** Why servers do not take transactions, by their words: all have one code for all reasons. */
final class Refusals {
  /**
   * The nonce was used, or a transaction that waits has it: geth, reth, Erigon, Besu, anvil and
   * Deponent; OpenEthereum; Nethermind; hardhat; zkSync and Cosmos.
   */
  private static final List<String> NONCE_TAKEN =
      List.of(
          "nonce too low",
          "nonce is too low",
          "oldnonce",
          "nonce has already been used",
          "invalid nonce; got",
          "replacement transaction underpriced",
          "replacementnotallowed",
          "replacement fee too low");

  /** The server has the very same transaction. */
  private static final List<String> KNOWN =
      List.of("already known", "alreadyknown", "already imported", "known transaction");

  private Refusals() {}

  /** Whether the nonce is another transaction's. */
  static boolean isNonceTaken(RpcException refused) {
    // A contract may revert with any words.
    return !(refused instanceof RevertException) && has(refused, NONCE_TAKEN);
  }

  /** Whether the server has the transaction. */
  static boolean isKnown(RpcException refused) {
    return has(refused, KNOWN);
  }

  /** Whether the server asks to be left alone for a while: codes of providers. */
  static boolean isThrottled(RpcException refused) {
    return refused.code() == -32005 || refused.code() == -32097;
  }

  /** Whether the server does not know the method, or does not do it. */
  static boolean isNoMethod(RpcException refused) {
    return refused.code() == -32601 || has(refused, List.of("not implemented", "not supported"));
  }

  private static boolean has(RpcException refused, List<String> words) {
    String message = String.valueOf(refused.getMessage()).toLowerCase(Locale.ROOT);
    return words.stream().anyMatch(message::contains);
  }
}
