package deponent.client;

import deponent.eth.AccessListTransaction;
import deponent.eth.Address;
import deponent.eth.BlobTransaction;
import deponent.eth.Bytes;
import deponent.eth.FeeMarketTransaction;
import deponent.eth.LegacyTransaction;
import deponent.eth.SetCodeTransaction;
import deponent.eth.Transaction;
import deponent.eth.TransactionBuilder;
import deponent.eth.Wei;
import java.util.List;

/** A transaction that takes the place of one in the pools, which ask for higher fees. */
final class Outbid {
  /** The gas of a payment. */
  private static final long PAYMENT = 21_000;

  private final Account account;
  private final Transaction old;

  /** In the place of {@code old}. */
  Outbid(Account account, Transaction old) {
    this.account = account;
    this.old = old;
  }

  /** What {@code content} does, or nothing, for more. */
  Transaction with(Transaction content, boolean nothing) {
    Address self = account.address();
    Bytes data = nothing ? Bytes.EMPTY : content.data();
    Address to = nothing ? self : content.to();
    TransactionBuilder builder =
        to == null ? Transaction.create(data) : Transaction.to(to).data(data);
    content.chain().ifPresent(builder::chainId);
    builder
        .nonce(content.nonce())
        .value(nothing ? Wei.ZERO : content.value())
        .gasLimit(nothing ? PAYMENT : content.gasLimit());
    fees(builder);
    switch (content) {
      case LegacyTransaction legacy -> {}
      case AccessListTransaction typed ->
          builder.accessList(nothing ? List.of() : typed.accessList());
      case FeeMarketTransaction market ->
          builder.accessList(nothing ? List.of() : market.accessList());
      // Pools take nothing else in the place of blobs.
      case BlobTransaction blobs ->
          builder
              .accessList(nothing ? List.of() : blobs.accessList())
              .blobs(blobs.blobVersionedHashes(), blobFee());
      case SetCodeTransaction setCode -> {
        if (!nothing) {
          builder.accessList(setCode.accessList()).authorizations(setCode.authorizations());
        }
      }
    }
    return builder.build();
  }

  private void fees(TransactionBuilder builder) {
    Fee now = account.fee();
    if (old.type() < 2) {
      builder.gasPrice(most(more(old.maxFeePerGas()), now.most()));
      return;
    }
    Wei tip = now instanceof Fee.Market(Wei whole, Wei part) ? part : now.most();
    builder.fees(
        most(more(old.maxFeePerGas()), now.most()), most(more(old.maxPriorityFeePerGas()), tip));
  }

  private Wei blobFee() {
    Wei before = old instanceof BlobTransaction blobs ? blobs.maxFeePerBlobGas() : Wei.ZERO;
    return most(before.times(2), account.blobFee());
  }

  /** What pools ask for: a tenth more, or twice as much where there are blobs. */
  private Wei more(Wei fee) {
    Wei part = old instanceof BlobTransaction ? fee : fee.dividedBy(10);
    return fee.plus(part).plus(Wei.of(1));
  }

  private static Wei most(Wei one, Wei other) {
    return one.compareTo(other) >= 0 ? one : other;
  }
}
