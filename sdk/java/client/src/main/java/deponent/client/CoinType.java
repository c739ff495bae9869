package deponent.client;

/** The numbers by which ENS knows chains (ENSIP-9, ENSIP-11): those of SLIP-44, and EVM chains. */
public final class CoinType {
  /** Bitcoin. */
  public static final long BITCOIN = 0;

  /** Ethereum's main network. */
  public static final long ETHER = 60;

  /** Any chain of the EVM that has no record of its own (ENSIP-19). */
  public static final long ANY_EVM = 0x8000_0000L;

  private CoinType() {}

  /**
   * A chain of the EVM.
   *
   * @throws IllegalArgumentException if the chain's id is not from 1 to 2^31-1
   */
  public static long ofChain(long chainId) {
    if (chainId < 1 || chainId >= ANY_EVM) {
      throw new IllegalArgumentException(
          "ENS knows chains with an id from 1 to 2147483647: " + chainId);
    }
    return chainId == 1 ? ETHER : ANY_EVM | chainId;
  }
}
