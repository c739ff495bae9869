/** Files that come over Unix sockets, mapped. Nothing here is called by applications. */
@NullMarked
package deponent.descriptor;

import org.jspecify.annotations.NullMarked;
