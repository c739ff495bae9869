import org.jspecify.annotations.NullMarked;

/** libsecp256k1 for {@code deponent.wallet}, on Java 22 and newer. */
@NullMarked
@SuppressWarnings({"requires-automatic", "module"})
module deponent.secp256k1 {
  requires deponent.wallet;
  requires static org.jspecify;
  requires secp256k1.kmp.jni.jvm.linux;
  requires secp256k1.kmp.jni.jvm.darwin;

  provides deponent.wallet.internal.Curve with
      deponent.secp256k1.Libsecp256k1;
}
