package deponent.eth;

import java.util.List;
import java.util.OptionalLong;
import org.jspecify.annotations.Nullable;

/**
 * Puts a transaction together. Its type follows from what it has: blobs, authorizations, fees, or a
 * gas price with or without an access list.
 */
public final class TransactionBuilder {
  private final @Nullable Address to;
  private OptionalLong chainId = OptionalLong.empty();
  private long nonce;
  private long gasLimit;
  private Wei value = Wei.ZERO;
  private Bytes data = Bytes.EMPTY;
  private @Nullable Wei gasPrice;
  private @Nullable Wei maxFee;
  private Wei tip = Wei.ZERO;
  private @Nullable List<AccessListEntry> accessList;
  private @Nullable Wei maxBlobFee;
  private List<Hash> blobs = List.of();
  private @Nullable List<Authorization.Signed> authorizations;

  TransactionBuilder(@Nullable Address to) {
    this.to = to;
  }

  /** The chain's id. */
  public TransactionBuilder chainId(long chainId) {
    this.chainId = OptionalLong.of(chainId);
    return this;
  }

  /** The sender's transactions before this one. */
  public TransactionBuilder nonce(long nonce) {
    this.nonce = nonce;
    return this;
  }

  /** The most gas that it may use. */
  public TransactionBuilder gasLimit(long gasLimit) {
    this.gasLimit = gasLimit;
    return this;
  }

  /** What it sends. */
  public TransactionBuilder value(Wei value) {
    this.value = value;
    return this;
  }

  /** The data of the call. */
  public TransactionBuilder data(Bytes data) {
    this.data = data;
    return this;
  }

  /** What it pays for a unit of gas: of types 0 and 1. */
  public TransactionBuilder gasPrice(Wei gasPrice) {
    this.gasPrice = gasPrice;
    return this;
  }

  /** The most that it pays for a unit of gas, and the most of it for the block's builder. */
  public TransactionBuilder fees(Wei maxFeePerGas, Wei maxPriorityFeePerGas) {
    maxFee = maxFeePerGas;
    tip = maxPriorityFeePerGas;
    return this;
  }

  /** Accounts and slots that are warm from the beginning. */
  public TransactionBuilder accessList(List<AccessListEntry> accessList) {
    this.accessList = accessList;
    return this;
  }

  /** The hashes of its blobs, and the most that it pays for a unit of blob gas: of type 3. */
  public TransactionBuilder blobs(List<Hash> versionedHashes, Wei maxFeePerBlobGas) {
    blobs = versionedHashes;
    maxBlobFee = maxFeePerBlobGas;
    return this;
  }

  /** Accounts that take the code of contracts: of type 4. */
  public TransactionBuilder authorizations(List<Authorization.Signed> authorizations) {
    this.authorizations = authorizations;
    return this;
  }

  /**
   * The transaction.
   *
   * @throws IllegalStateException if parts are there that no type has together, or one is missing
   */
  public Transaction build() {
    if (gasPrice != null) {
      return priced(gasPrice);
    }
    Wei most = there(maxFee, "fees, or a gas price");
    List<AccessListEntry> list = accessList == null ? List.of() : accessList;
    if (maxBlobFee != null && authorizations != null) {
      throw new IllegalStateException("no type has both blobs and authorizations");
    }
    long chain = chain();
    if (maxBlobFee != null) {
      Address receiver = there(to, "a receiver beside blobs");
      return new BlobTransaction(
          chain, nonce, tip, most, gasLimit, receiver, value, data, list, maxBlobFee, blobs);
    }
    if (authorizations != null) {
      Address receiver = there(to, "a receiver beside authorizations");
      return new SetCodeTransaction(
          chain, nonce, tip, most, gasLimit, receiver, value, data, list, authorizations);
    }
    return new FeeMarketTransaction(chain, nonce, tip, most, gasLimit, to, value, data, list);
  }

  private Transaction priced(Wei price) {
    if (maxFee != null || maxBlobFee != null || authorizations != null) {
      throw new IllegalStateException(
          "a gas price does not go with fees, blobs and authorizations");
    }
    if (accessList == null) {
      return new LegacyTransaction(chainId, nonce, price, gasLimit, to, value, data);
    }
    return new AccessListTransaction(chain(), nonce, price, gasLimit, to, value, data, accessList);
  }

  private long chain() {
    return chainId.orElseThrow(() -> new IllegalStateException("a chain id is missing"));
  }

  private static <T> T there(@Nullable T part, String what) {
    if (part == null) {
      throw new IllegalStateException(what + " is missing");
    }
    return part;
  }
}
