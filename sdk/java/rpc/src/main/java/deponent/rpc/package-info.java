/**
 * JSON-RPC over WebSocket, HTTP and Unix sockets.
 *
 * <p>A {@link deponent.rpc.Provider} is made for many threads, virtual ones among them. What goes
 * wrong is a {@link deponent.eth.EthException}.
 */
@NullMarked
package deponent.rpc;

import org.jspecify.annotations.NullMarked;
