import org.jspecify.annotations.NullMarked;

/** Private keys, what they sign, and who signed; mnemonics, keystores and blobs. */
@NullMarked
@SuppressWarnings("module") // secp256k1 is built later
module deponent.wallet {
  requires transitive deponent.eth;
  requires static org.jspecify;
  requires org.bouncycastle.provider;

  exports deponent.wallet;
  exports deponent.wallet.internal to
      deponent.secp256k1;

  uses deponent.wallet.internal.Curve;
}
