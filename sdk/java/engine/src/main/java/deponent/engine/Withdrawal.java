package deponent.engine;

import deponent.eth.Address;

/**
 * A withdrawal from the beacon chain (EIP-4895), {@code WithdrawalV1}. Numbers have 64 bits without
 * a sign.
 *
 * @param index its number among all withdrawals
 * @param validatorIndex whose it is
 * @param address who receives it
 * @param amount in gwei
 */
public record Withdrawal(long index, long validatorIndex, Address address, long amount) {
  /** In SSZ. */
  static final int BYTES = 8 + 8 + Address.SIZE + 8;
}
