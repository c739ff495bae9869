/** For the modules of this SDK alone. */
package deponent.rpc.internal;
