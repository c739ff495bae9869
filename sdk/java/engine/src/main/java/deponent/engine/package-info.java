/**
 * Payloads of the Engine API, and the witnesses of their blocks.
 *
 * <p>What a caller gives wrongly is an {@link IllegalArgumentException}, what came from outside and
 * does not decode or verify a {@link deponent.eth.MalformedException}. Values cannot be changed.
 */
@NullMarked
package deponent.engine;

import org.jspecify.annotations.NullMarked;
