package deponent.client;

import deponent.eth.JsonReader;
import deponent.eth.Wei;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The fees of consecutive blocks, the oldest first.
 *
 * @param oldestBlock the number of the oldest one
 * @param baseFeePerGas the base fee of each block, and of the one that follows
 * @param gasUsedRatio the part of the gas limit that each block used, from 0 to 1
 * @param baseFeePerBlobGas the base fee of blob gas of each block, and of the one that follows;
 *     empty where the server knows no blobs
 * @param blobGasUsedRatio the part of the most blob gas that each block used, from 0 to 1; empty
 *     where the server knows no blobs
 * @param reward what transactions paid the builder of each block for a unit of gas, at each
 *     percentile that was asked for; empty where none was
 */
public record FeeHistory(
    long oldestBlock,
    List<Wei> baseFeePerGas,
    List<Double> gasUsedRatio,
    List<Wei> baseFeePerBlobGas,
    List<Double> blobGasUsedRatio,
    List<List<Wei>> reward) {
  private static final Members MEMBERS =
      Members.of(
          "oldestBlock",
          "baseFeePerGas",
          "gasUsedRatio",
          "baseFeePerBlobGas",
          "blobGasUsedRatio",
          "reward");

  /** With copies of the lists. */
  public FeeHistory {
    baseFeePerGas = List.copyOf(baseFeePerGas);
    gasUsedRatio = List.copyOf(gasUsedRatio);
    baseFeePerBlobGas = List.copyOf(baseFeePerBlobGas);
    blobGasUsedRatio = List.copyOf(blobGasUsedRatio);
    reward = reward.stream().map(List::copyOf).toList();
  }

  static FeeHistory read(JsonReader json) {
    Parts parts = new Parts();
    MEMBERS.read(json, parts);
    return new FeeHistory(
        Members.the("oldestBlock", parts.oldestBlock),
        Members.the("baseFeePerGas", parts.baseFeePerGas),
        Members.the("gasUsedRatio", parts.gasUsedRatio),
        parts.baseFeePerBlobGas,
        parts.blobGasUsedRatio,
        parts.reward);
  }

  private static final class Parts implements Members.Taker {
    private long oldestBlock = -1;
    private @Nullable List<Wei> baseFeePerGas;
    private @Nullable List<Double> gasUsedRatio;
    private List<Wei> baseFeePerBlobGas = List.of();
    private List<Double> blobGasUsedRatio = List.of();
    private List<List<Wei>> reward = List.of();

    @Override
    public void take(String name, JsonReader json) {
      switch (name) {
        case "oldestBlock" -> oldestBlock = json.nextQuantity();
        case "baseFeePerGas" -> baseFeePerGas = Members.list(json, JsonReader::nextWei);
        case "gasUsedRatio" -> gasUsedRatio = Members.list(json, JsonReader::nextDouble);
        case "baseFeePerBlobGas" -> baseFeePerBlobGas = Members.list(json, JsonReader::nextWei);
        case "blobGasUsedRatio" -> blobGasUsedRatio = Members.list(json, JsonReader::nextDouble);
        case "reward" ->
            reward = Members.list(json, block -> Members.list(block, JsonReader::nextWei));
        default -> throw new AssertionError(name);
      }
    }
  }
}
