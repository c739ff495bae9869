package deponent.eth;

import java.math.BigInteger;

/**
 * What an account signs to run the code of a contract as its own (EIP-7702).
 *
 * @param chainId the chain where it counts, or 0 for all
 * @param address the contract, or zero to take the code away
 * @param nonce the account's nonce, as 64 bits without a sign
 */
public record Authorization(BigInteger chainId, Address address, long nonce) {
  private static final int MAGIC = 5;

  /** On one chain. */
  public static Authorization of(long chainId, Address address, long nonce) {
    return new Authorization(BigInteger.valueOf(chainId), address, nonce);
  }

  /** The hash that is signed. */
  public Hash signingHash() {
    RlpWriter rlp = new RlpWriter(64).list().add(chainId).add(address).addUnsigned(nonce).end();
    return new Keccak256().update(new byte[] {MAGIC}).update(rlp.toBytes()).digest();
  }

  /** With its signature. */
  public Signed signed(Signature signature) {
    return new Signed(this, signature);
  }

  /**
   * An authorization with its signature.
   *
   * @param authorization what is signed
   * @param signature the account's; one that is not canonical has no effect
   */
  public record Signed(Authorization authorization, Signature signature) {}
}
