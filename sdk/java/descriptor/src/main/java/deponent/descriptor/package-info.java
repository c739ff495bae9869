/** Files that come over Unix sockets, mapped. Nothing here is called by applications. */
package deponent.descriptor;
