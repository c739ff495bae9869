package deponent.client;

import deponent.eth.Wei;

/** What a transaction pays for a unit of gas. */
public sealed interface Fee {
  /**
   * A price that is paid in full: of types 0 and 1.
   *
   * @param gasPrice the price
   */
  record Legacy(Wei gasPrice) implements Fee {}

  /**
   * The base fee and a tip, up to a bound (EIP-1559).
   *
   * @param maxFeePerGas the most that is paid in all
   * @param maxPriorityFeePerGas the most that the block's builder gets of it
   */
  record Market(Wei maxFeePerGas, Wei maxPriorityFeePerGas) implements Fee {
    /** Checks that the tip is not more than the whole. */
    public Market {
      if (maxPriorityFeePerGas.compareTo(maxFeePerGas) > 0) {
        throw new IllegalArgumentException(
            "a tip of " + maxPriorityFeePerGas + " wei is more than the whole: " + maxFeePerGas);
      }
    }
  }

  /** The most that is paid. */
  default Wei most() {
    return switch (this) {
      case Legacy(Wei gasPrice) -> gasPrice;
      case Market(Wei maxFeePerGas, Wei tip) -> maxFeePerGas;
    };
  }
}
