package deponent.client;

import deponent.eth.ProtocolException;
import deponent.eth.RpcException;
import deponent.eth.Wei;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/** Fees by what the last blocks paid. */
final class MarketFees implements Fees {
  /** Blocks that are looked at. */
  private static final int BLOCKS = 10;

  /** The tip in the middle of a block, by gas. */
  private static final double MIDDLE = 50;

  @Override
  public Fee fee(Client client) {
    FeeHistory history;
    try {
      history = client.feeHistory(BLOCKS, BlockId.LATEST, MIDDLE);
    } catch (RpcException error) {
      if (Refusals.isNoMethod(error)) {
        return new Fee.Legacy(client.gasPrice());
      }
      throw error;
    }
    Wei base = next(history);
    if (base.equals(Wei.ZERO) && !hasBaseFees(client)) {
      return new Fee.Legacy(client.gasPrice());
    }
    if (history.baseFeePerGas().isEmpty()) {
      throw new ProtocolException("eth_feeHistory: no base fee of the next block");
    }
    Wei tip = tip(history).orElseGet(() -> proposed(client, base));
    try {
      return new Fee.Market(base.times(2).plus(tip), tip);
    } catch (ArithmeticException high) {
      throw tooHigh(high);
    }
  }

  /** The exception for a server's fees that do not add up to an amount. */
  static ProtocolException tooHigh(ArithmeticException why) {
    return new ProtocolException("the server's fees are too high: " + why.getMessage(), why);
  }

  private static Wei proposed(Client client, Wei base) {
    try {
      return client.maxPriorityFeePerGas();
    } catch (RpcException error) {
      if (!Refusals.isNoMethod(error)) {
        throw error;
      }
      Wei price = client.gasPrice();
      return price.compareTo(base) > 0 ? price.minus(base) : Wei.ZERO;
    }
  }

  /** The base fee of the next block, or zero on a chain that has none. */
  static Wei next(FeeHistory history) {
    List<Wei> all = history.baseFeePerGas();
    return all.isEmpty() ? Wei.ZERO : all.get(all.size() - 1);
  }

  private static boolean hasBaseFees(Client client) {
    return client
        .block(BlockId.LATEST)
        .map(block -> block.header().baseFeePerGas().isPresent())
        .orElse(true);
  }

  /** The median of the tips of blocks with transactions; none where it is nothing. */
  static Optional<Wei> tip(FeeHistory history) {
    List<Wei> tips = new ArrayList<>();
    int blocks = Math.min(history.reward().size(), history.gasUsedRatio().size());
    for (int i = 0; i < blocks; i++) {
      List<Wei> reward = history.reward().get(i);
      if (history.gasUsedRatio().get(i) > 0 && !reward.isEmpty()) {
        tips.add(reward.get(0));
      }
    }
    tips.sort(null);
    return tips.isEmpty()
        ? Optional.empty()
        : Optional.of(tips.get(tips.size() / 2)).filter(tip -> !tip.equals(Wei.ZERO));
  }
}
