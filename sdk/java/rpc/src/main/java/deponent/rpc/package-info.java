/** JSON-RPC: requests, their answers, and who sends them. */
package deponent.rpc;
