/** libsecp256k1 for {@code deponent.wallet}. Nothing here is called by applications. */
package deponent.secp256k1;
