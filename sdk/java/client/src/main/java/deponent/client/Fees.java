package deponent.client;

import deponent.eth.Wei;

/**
 * Says what transactions pay for gas.
 *
 * <pre>{@code
 * Account me = eth.account(key).fees(Fees.bounded(Fees.market(), Wei.gwei("50")));
 * }</pre>
 */
@FunctionalInterface
public interface Fees {
  /**
   * The fee of a transaction that is sent now. Accounts call it on the thread that sends, which may
   * be one of many.
   *
   * @throws deponent.eth.EthException if the server has to be asked, and does not say it
   */
  Fee fee(Client client);

  /**
   * The most that is paid for a unit of blob gas: twice what the next block's costs, at least 1.
   */
  default Wei blobFee(Client client) {
    Wei twice;
    try {
      twice = client.blobBaseFee().times(2);
    } catch (ArithmeticException high) {
      throw MarketFees.tooHigh(high);
    }
    return twice.equals(Wei.ZERO) ? Wei.of(1) : twice;
  }

  /**
   * What others pay: the tip is the median of the tips in the middle of the last 10 blocks, and the
   * bound is twice the next block's base fee, with the tip on top. So the transaction stays good
   * for 6 full blocks. Empty blocks do not count; where all were empty, or their tips nothing, it
   * is the tip that the server proposes. On a chain without base fees it is the server's gas price.
   */
  static Fees market() {
    return new MarketFees();
  }

  /** The gas price that the server proposes, in transactions of types 0 and 1. */
  static Fees legacy() {
    return client -> new Fee.Legacy(client.gasPrice());
  }

  /**
   * Always the same bound and tip.
   *
   * @throws IllegalArgumentException if the tip is more than the bound
   */
  static Fees fixed(Wei maxFeePerGas, Wei maxPriorityFeePerGas) {
    Fee fee = new Fee.Market(maxFeePerGas, maxPriorityFeePerGas);
    return client -> fee;
  }

  /** Always the same gas price, in transactions of types 0 and 1. */
  static Fees fixed(Wei gasPrice) {
    Fee fee = new Fee.Legacy(gasPrice);
    return client -> fee;
  }

  /**
   * What {@code fees} says, and not more than {@code most}. While gas costs more, transactions
   * wait. Blob gas is not bounded.
   */
  static Fees bounded(Fees fees, Wei most) {
    return new BoundedFees(fees, most);
  }
}
