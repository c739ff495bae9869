package deponent.client;

import deponent.eth.AccessListTransaction;
import deponent.eth.Address;
import deponent.eth.BlobTransaction;
import deponent.eth.Bytes;
import deponent.eth.FeeMarketTransaction;
import deponent.eth.JsonReader;
import deponent.eth.JsonReader.Kind;
import deponent.eth.JsonWriter;
import deponent.eth.LegacyTransaction;
import deponent.eth.MalformedException;
import deponent.eth.ProtocolException;
import deponent.eth.RpcException;
import deponent.eth.SetCodeTransaction;
import deponent.eth.Signature;
import deponent.eth.SignedTransaction;
import deponent.eth.Signer;
import deponent.eth.SigningRequest;
import deponent.eth.Transaction;
import deponent.eth.TypedData;
import deponent.rpc.Provider;
import deponent.rpc.Request;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;

/**
 * Has a server sign: Web3Signer over JSON-RPC, or a node with keys, such as a chain for tests. It
 * is asked by {@code eth_signTransaction}, {@code eth_sign} and {@code eth_signTypedData}; for
 * authorizations (EIP-7702) there is no method.
 *
 * <pre>{@code
 * Provider web3signer = Provider.at("http://signer:9000").connect();
 * Account me = eth.account(RpcSigner.of(web3signer, address));
 * }</pre>
 *
 * <p>A signed transaction is compared with the one that was to be signed. By whom it is signed, the
 * node that gets it checks.
 */
public final class RpcSigner implements Signer {
  private final Provider provider;
  private final Address address;

  private RpcSigner(Provider provider, Address address) {
    this.provider = Objects.requireNonNull(provider);
    this.address = Objects.requireNonNull(address);
  }

  /** Signs with the key of {@code address} that the server has. The provider stays its owner's. */
  public static RpcSigner of(Provider provider, Address address) {
    return new RpcSigner(provider, address);
  }

  @Override
  public Address address() {
    return address;
  }

  /**
   * Asks for a signature. The future fails with a {@link deponent.eth.RpcException} if the server
   * refuses, a {@link deponent.eth.TransportException} without an answer, a {@link
   * ProtocolException} if it signed something else, and an {@link UnsupportedOperationException}
   * for an authorization.
   */
  @Override
  public CompletableFuture<Signature> signAsync(SigningRequest request) {
    return switch (request) {
      case SigningRequest.OfTransaction(Transaction transaction) ->
          provider.requestAsync(signTransaction(transaction));
      case SigningRequest.OfMessage(Bytes message) -> provider.requestAsync(sign(message));
      case SigningRequest.OfTypedData(TypedData data) -> signTyped(data);
      case SigningRequest.OfAuthorization authorization ->
          CompletableFuture.failedFuture(
              new UnsupportedOperationException(
                  "JSON-RPC has no method that signs an authorization"));
    };
  }

  // Signing changes nothing, so it may be asked for again.

  private Request<Signature> sign(Bytes message) {
    return Eth.read("eth_sign", json -> json.value(address).value(message), RpcSigner::signature);
  }

  private CompletableFuture<Signature> signTyped(TypedData data) {
    // Web3Signer takes it as a text, and has the first name alone; anvil has the second alone.
    String text = data.toJson();
    return provider
        .requestAsync(signTyped("eth_signTypedData", text))
        .exceptionallyCompose(
            failure ->
                failure instanceof RpcException error && Refusals.isNoMethod(error)
                    ? provider.requestAsync(signTyped("eth_signTypedData_v4", text))
                    : CompletableFuture.failedFuture(failure));
  }

  private Request<Signature> signTyped(String method, String text) {
    return Eth.read(method, json -> json.value(address).value(text), RpcSigner::signature);
  }

  private static Signature signature(JsonReader json) {
    try {
      return Signature.of(json.nextBytes());
    } catch (IllegalArgumentException no) {
      throw new MalformedException(no.getMessage(), no);
    }
  }

  private Request<Signature> signTransaction(Transaction transaction) {
    return Eth.read(
        "eth_signTransaction",
        json -> write(transaction, json),
        json -> {
          SignedTransaction signed = SignedTransaction.decode(raw(json));
          if (!signed.transaction().equals(transaction)) {
            throw new ProtocolException(
                "eth_signTransaction: the server signed another transaction: "
                    + signed.transaction()
                    + ", and this was to be signed: "
                    + transaction);
          }
          return signed.signature();
        });
  }

  /** The bytes of a transaction: alone, or as geth gives them beside its members. */
  private static Bytes raw(JsonReader json) {
    if (json.peek() != Kind.OBJECT) {
      return json.nextBytes();
    }
    Bytes raw = Bytes.EMPTY;
    json.beginObject();
    while (json.hasNext()) {
      if (json.nextName().equals("raw")) {
        raw = json.nextBytes();
      } else {
        json.skipValue();
      }
    }
    json.endObject();
    return raw;
  }

  private void write(Transaction transaction, JsonWriter json) {
    json.beginObject().name("from").value(address);
    Address to = transaction.to();
    if (to != null) {
      json.name("to").value(to);
    }
    json.name("gas").quantity(transaction.gasLimit());
    json.name("value").quantity(transaction.value());
    json.name("nonce").quantity(transaction.nonce());
    if (!transaction.data().isEmpty()) {
      // Web3Signer does not know its newer name, input.
      json.name("data").value(transaction.data());
    }
    transaction.chain().ifPresent(chain -> json.name("chainId").quantity(chain));
    if (transaction.type() < 2) {
      json.name("gasPrice").quantity(transaction.maxFeePerGas());
    } else {
      json.name("maxFeePerGas").quantity(transaction.maxFeePerGas());
      json.name("maxPriorityFeePerGas").quantity(transaction.maxPriorityFeePerGas());
    }
    switch (transaction) {
      case LegacyTransaction legacy -> {}
      case AccessListTransaction listed -> {
        // Its members alone may be taken for those of type 2.
        json.name("type").quantity(1);
        list(listed, json);
      }
      case FeeMarketTransaction market -> {
        if (!market.accessList().isEmpty()) {
          list(market, json);
        }
      }
      case BlobTransaction blobs -> {
        list(blobs, json);
        json.name("maxFeePerBlobGas").quantity(blobs.maxFeePerBlobGas());
        json.name("blobVersionedHashes").beginArray();
        blobs.blobVersionedHashes().forEach(json::value);
        json.endArray();
      }
      case SetCodeTransaction setCode -> {
        list(setCode, json);
        Authorizations.write(setCode.authorizations(), json.name("authorizationList"));
      }
    }
    json.endObject();
  }

  private static void list(Transaction transaction, JsonWriter json) {
    AccessLists.write(transaction.accessList(), json.name("accessList"));
  }

  /** The account, and nothing of the server. */
  @Override
  public String toString() {
    return "RpcSigner[" + address + "]";
  }
}
