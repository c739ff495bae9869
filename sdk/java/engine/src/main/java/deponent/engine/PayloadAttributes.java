package deponent.engine;

import deponent.eth.Address;
import deponent.eth.Hash;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;

/**
 * What the consensus layer gives for a payload to build: {@code PayloadAttributesV1} to {@code V4}.
 * Numbers have 64 bits without a sign.
 *
 * @param timestamp seconds since 1970
 * @param prevRandao the beacon chain's randomness
 * @param suggestedFeeRecipient who is paid the fees
 * @param withdrawals from version 2, Shanghai, on
 * @param parentBeaconBlockRoot from version 3, Cancun, on
 * @param slotNumber from version 4, Amsterdam, on
 * @param targetGasLimit the gas limit to go towards; from version 4 on
 */
public record PayloadAttributes(
    long timestamp,
    Hash prevRandao,
    Address suggestedFeeRecipient,
    Optional<List<Withdrawal>> withdrawals,
    Optional<Hash> parentBeaconBlockRoot,
    OptionalLong slotNumber,
    OptionalLong targetGasLimit) {
  /**
   * Copies the list.
   *
   * @throws IllegalArgumentException if a later version's field is there and an earlier one's is
   *     not
   */
  public PayloadAttributes {
    withdrawals = withdrawals.map(List::copyOf);
    if (slotNumber.isPresent() != targetGasLimit.isPresent()
        || slotNumber.isPresent() && parentBeaconBlockRoot.isEmpty()
        || parentBeaconBlockRoot.isPresent() && withdrawals.isEmpty()) {
      throw new IllegalArgumentException("attributes of no version: a field before is missing");
    }
  }

  /** Of Paris. */
  public static PayloadAttributes of(long timestamp, Hash prevRandao, Address feeRecipient) {
    return new PayloadAttributes(
        timestamp,
        prevRandao,
        feeRecipient,
        Optional.empty(),
        Optional.empty(),
        OptionalLong.empty(),
        OptionalLong.empty());
  }

  /** The same of Shanghai. */
  public PayloadAttributes withdrawals(List<Withdrawal> withdrawals) {
    return new PayloadAttributes(
        timestamp,
        prevRandao,
        suggestedFeeRecipient,
        Optional.of(withdrawals),
        parentBeaconBlockRoot,
        slotNumber,
        targetGasLimit);
  }

  /** The same of Cancun, Prague and Osaka, with withdrawals already. */
  public PayloadAttributes parentBeaconBlockRoot(Hash root) {
    return new PayloadAttributes(
        timestamp,
        prevRandao,
        suggestedFeeRecipient,
        withdrawals,
        Optional.of(root),
        slotNumber,
        targetGasLimit);
  }

  /** The same of Amsterdam, with a parent beacon root already. */
  public PayloadAttributes slot(long slotNumber, long targetGasLimit) {
    return new PayloadAttributes(
        timestamp,
        prevRandao,
        suggestedFeeRecipient,
        withdrawals,
        parentBeaconBlockRoot,
        OptionalLong.of(slotNumber),
        OptionalLong.of(targetGasLimit));
  }

  /** The number in the structure's name, 1 to 4. */
  public int version() {
    if (slotNumber.isPresent()) {
      return 4;
    }
    return parentBeaconBlockRoot.isPresent() ? 3 : withdrawals.isPresent() ? 2 : 1;
  }
}
