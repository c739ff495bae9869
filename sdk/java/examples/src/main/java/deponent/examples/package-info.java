/** Ten tasks, each a file, and an application. */
@NullMarked
package deponent.examples;

import org.jspecify.annotations.NullMarked;
