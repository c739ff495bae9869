package deponent.examples;

import deponent.eth.Address;
import deponent.eth.Signature;
import deponent.eth.SigningRequest;
import deponent.eth.TypedData;
import deponent.wallet.PrivateKey;
import deponent.wallet.Recovery;
import java.util.Map;
import java.util.Optional;

/** 8. Typed data is signed (EIP-712), and who signed is found. */
public final class SignTypedData {
  private SignTypedData() {}

  static TypedData mail(Address verifier, Address to) {
    return TypedData.of(
        TypedData.domain("App", "1", 1, verifier),
        "Mail",
        TypedData.types("Mail(Person to,string text)", "Person(string name,address wallet)"),
        Map.of("to", Map.of("name", "Ann", "wallet", to), "text", "Hello"));
  }

  static Signature sign(PrivateKey key, TypedData data) {
    return key.sign(data);
  }

  static Optional<Address> signer(TypedData data, Signature signature) {
    return Recovery.signer(new SigningRequest.OfTypedData(data), signature);
  }
}
