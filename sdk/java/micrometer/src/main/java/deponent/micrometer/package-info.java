/** Requests and connections as meters of Micrometer. */
@NullMarked
package deponent.micrometer;

import org.jspecify.annotations.NullMarked;
