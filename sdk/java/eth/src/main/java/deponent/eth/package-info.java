/**
 * Ethereum's values and their encodings.
 *
 * <p>What a caller gives wrongly is an {@link IllegalArgumentException}, what came from outside and
 * does not decode a {@link deponent.eth.MalformedException}. Values cannot be changed; readers and
 * writers belong to one thread.
 */
@NullMarked
package deponent.eth;

import org.jspecify.annotations.NullMarked;
