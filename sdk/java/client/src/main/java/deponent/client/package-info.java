/**
 * Ethereum's JSON-RPC for applications: {@link deponent.client.Client} asks and waits, {@link
 * deponent.client.Eth} has the requests for all other ways.
 *
 * <p>Values cannot be changed. Gas, nonces and numbers of blocks are from 0 to 2^63-1; an answer
 * beyond that, or one that lacks a member, is a {@link deponent.eth.ProtocolException}.
 */
@NullMarked
package deponent.client;

import org.jspecify.annotations.NullMarked;
