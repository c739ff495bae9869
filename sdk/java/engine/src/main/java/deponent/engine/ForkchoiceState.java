package deponent.engine;

import deponent.eth.Hash;

/**
 * The chain that is to be followed: {@code ForkchoiceStateV1}. Blocks that are not known yet are
 * {@link Hash#ZERO}.
 *
 * @param head the newest block
 * @param safe the newest block that is justified
 * @param finalized the newest block that is final
 */
public record ForkchoiceState(Hash head, Hash safe, Hash finalized) {
  /** A head alone. */
  public static ForkchoiceState of(Hash head) {
    return new ForkchoiceState(head, Hash.ZERO, Hash.ZERO);
  }
}
