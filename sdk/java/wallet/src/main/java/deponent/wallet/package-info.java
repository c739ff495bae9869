/**
 * Private keys, what they sign, and who signed; mnemonics, keystores and blobs.
 *
 * <p>The arithmetic of secp256k1 is BouncyCastle's, or libsecp256k1's where {@code
 * deponent-secp256k1} is there; both give the same bytes.
 */
@NullMarked
package deponent.wallet;

import org.jspecify.annotations.NullMarked;
