/** A chain for tests: {@code deponent dev} or anvil, started, steered and stopped. */
@NullMarked
package deponent.testing;

import org.jspecify.annotations.NullMarked;
