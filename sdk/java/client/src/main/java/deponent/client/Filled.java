package deponent.client;

import deponent.eth.Abi;
import deponent.eth.BlobSidecar;
import deponent.eth.Bytes;
import deponent.eth.RpcException;
import deponent.eth.SignedTransaction;
import deponent.eth.Transaction;
import deponent.eth.TransactionBuilder;
import deponent.eth.Wei;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;

/**
 * A transaction of which the nonce alone is missing.
 *
 * @param call what is sent
 * @param fee what is paid for gas
 * @param gasLimit the most gas
 * @param chainId the chain
 * @param sidecar the blobs beside it
 */
record Filled(Call call, Fee fee, long gasLimit, long chainId, @Nullable BlobSidecar sidecar) {
  /** The gas of a payment to an account without code. */
  private static final long PAYMENT = 21_000;

  /** The most gas of a transaction since Osaka (EIP-7825). */
  private static final long MOST_GAS = 1 << 24;

  /** Finds out what a call leaves out. */
  static Filled of(Call given, @Nullable BlobSidecar sidecar, Account account) {
    Client client = account.client();
    Call call = given.from(account.address());
    if (sidecar != null) {
      Wei most = given.maxFeePerBlobGas().orElseGet(account::blobFee);
      call = call.blobs(sidecar.versionedHashes(), most);
    } else if (!given.blobVersionedHashes().isEmpty()) {
      throw new IllegalArgumentException("a transaction with blobs is sent with their sidecar");
    }
    CompletableFuture<Long> gas = gas(call, client);
    try {
      Fee fee = feeOf(call, account);
      long chainId = call.chainId().orElseGet(client::chain);
      return new Filled(call, fee, Joined.of(gas), chainId, sidecar);
    } catch (RpcException error) {
      throw Reverts.decoded(error, given.errors());
    } finally {
      gas.cancel(false);
    }
  }

  /** The gas limit that the call says, or else what the server estimates, and something more. */
  static CompletableFuture<Long> gas(Call call, Client client) {
    return call.gasLimit().isPresent()
        ? CompletableFuture.completedFuture(call.gasLimit().getAsLong())
        : client.async(Eth.estimateGas(call)).thenApply(Filled::withMargin);
  }

  /** Of a call with a gas limit. */
  static Filled with(Call call, Fee fee, Account account) {
    long chainId = call.chainId().orElseGet(account.client()::chain);
    return new Filled(call, fee, call.gasLimit().orElseThrow(), chainId, null);
  }

  /** What the call says that is paid for gas, or the account. */
  static Fee feeOf(Call call, Account account) {
    if (call.gasPrice().isPresent()) {
      return new Fee.Legacy(call.gasPrice().get());
    }
    if (call.maxFeePerGas().isPresent()) {
      Wei most = call.maxFeePerGas().get();
      return new Fee.Market(most, call.maxPriorityFeePerGas().orElse(most));
    }
    Fee fee = account.fee();
    // Blobs and authorizations have types with tips alone.
    boolean tips = !call.authorizations().isEmpty() || !call.blobVersionedHashes().isEmpty();
    return tips && fee instanceof Fee.Legacy(Wei price) ? new Fee.Market(price, price) : fee;
  }

  private static long withMargin(long estimate) {
    return estimate == PAYMENT || estimate > MOST_GAS
        ? estimate
        : Math.min(MOST_GAS, estimate + estimate / 5);
  }

  /** The transaction with its nonce. */
  Transaction at(long nonce) {
    TransactionBuilder builder =
        call.to().isPresent()
            ? Transaction.to(call.to().get()).data(call.data())
            : Transaction.create(call.data());
    builder.chainId(chainId).nonce(nonce).gasLimit(gasLimit).value(call.value().orElse(Wei.ZERO));
    call.accessList().ifPresent(builder::accessList);
    if (sidecar != null) {
      builder.blobs(call.blobVersionedHashes(), call.maxFeePerBlobGas().orElseThrow());
    }
    if (!call.authorizations().isEmpty()) {
      builder.authorizations(call.authorizations());
    }
    switch (fee) {
      case Fee.Legacy(Wei price) -> builder.gasPrice(price);
      case Fee.Market(Wei most, Wei tip) -> builder.fees(most, tip);
    }
    try {
      return builder.build();
    } catch (IllegalStateException parts) {
      throw new IllegalArgumentException("no transaction: " + parts.getMessage(), parts);
    }
  }

  /** The bytes that the server takes. */
  Bytes encoded(SignedTransaction signed) {
    BlobSidecar blobs = sidecar;
    return blobs == null ? signed.encode() : blobs.encode(signed);
  }

  /** The errors that the called contract has. */
  Abi errors() {
    return call.errors();
  }
}
