/** For the modules of this SDK alone. */
package deponent.wallet.internal;
