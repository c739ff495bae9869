/** For the modules of this SDK alone. */
@NullMarked
package deponent.wallet.internal;

import org.jspecify.annotations.NullMarked;
