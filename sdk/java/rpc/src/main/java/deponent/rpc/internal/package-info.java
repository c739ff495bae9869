/** For the modules of this SDK alone. */
@NullMarked
package deponent.rpc.internal;

import org.jspecify.annotations.NullMarked;
