/** How long this SDK, web3j and Brane take for the same results, side by side. */
@NullMarked
package deponent.bench;

import org.jspecify.annotations.NullMarked;
