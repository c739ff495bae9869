/** libsecp256k1 for {@code deponent.wallet}. Nothing here is called by applications. */
@NullMarked
package deponent.secp256k1;

import org.jspecify.annotations.NullMarked;
