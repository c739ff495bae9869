/**
 * The annotation processor of contracts: it writes a class for each interface with {@code
 * deponent.client.Contract}'s annotations.
 */
@NullMarked
package deponent.processor;

import org.jspecify.annotations.NullMarked;
