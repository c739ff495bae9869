package deponent.client;

import deponent.eth.AccessListEntry;
import deponent.eth.AccessListTransaction;
import deponent.eth.Address;
import deponent.eth.Authorization;
import deponent.eth.BlobTransaction;
import deponent.eth.Bytes;
import deponent.eth.FeeMarketTransaction;
import deponent.eth.Hash;
import deponent.eth.JsonReader;
import deponent.eth.LegacyTransaction;
import deponent.eth.SetCodeTransaction;
import deponent.eth.Signature;
import deponent.eth.SignedTransaction;
import deponent.eth.Transaction;
import deponent.eth.Wei;
import java.math.BigInteger;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;
import org.jspecify.annotations.Nullable;

/**
 * A transaction that is in the chain or in a server's pool, of Ethereum's types or of another
 * chain's own.
 *
 * @param hash the hash
 * @param type 0 for legacy ones, 1 to 4, or another chain's own
 * @param inclusion where it is in the chain, if it is
 * @param from the sender
 * @param to the receiver; none where it creates a contract
 * @param nonce the sender's transactions before this one
 * @param gasLimit the most gas that it may use
 * @param value what it sends
 * @param input the data of the call, or the init code
 * @param gasPrice what it pays for a unit of gas; while it is in no block, the most
 * @param maxFeePerGas the most that it pays for a unit of gas, from type 2 on
 * @param maxPriorityFeePerGas the most of it for the block's builder, from type 2 on
 * @param maxFeePerBlobGas the most that it pays for a unit of blob gas, of type 3
 * @param blobVersionedHashes the hashes of its blobs, of type 3
 * @param accessList accounts and slots that are warm from the beginning, from type 1 on
 * @param authorizations accounts that take the code of contracts, of type 4
 * @param chainId the chain; none of a transaction that counts on all chains
 * @param signature the signature, where there is one
 */
public record ChainTransaction(
    Hash hash,
    int type,
    Optional<Inclusion> inclusion,
    Address from,
    Optional<Address> to,
    long nonce,
    long gasLimit,
    Wei value,
    Bytes input,
    Wei gasPrice,
    Optional<Wei> maxFeePerGas,
    Optional<Wei> maxPriorityFeePerGas,
    Optional<Wei> maxFeePerBlobGas,
    List<Hash> blobVersionedHashes,
    List<AccessListEntry> accessList,
    List<Authorization.Signed> authorizations,
    OptionalLong chainId,
    Optional<Signature> signature) {
  private static final Members MEMBERS =
      Members.of(
          "hash",
          "type",
          "blockHash",
          "blockNumber",
          "blockTimestamp",
          "transactionIndex",
          "from",
          "to",
          "nonce",
          "gas",
          "value",
          "input",
          "gasPrice",
          "maxFeePerGas",
          "maxPriorityFeePerGas",
          "maxFeePerBlobGas",
          "blobVersionedHashes",
          "accessList",
          "authorizationList",
          "chainId",
          "v",
          "r",
          "s",
          "yParity");

  /** With copies of the lists. */
  public ChainTransaction {
    blobVersionedHashes = List.copyOf(blobVersionedHashes);
    accessList = List.copyOf(accessList);
    authorizations = List.copyOf(authorizations);
  }

  /**
   * The transaction as its sender signed it; none of other types than 0 to 4. Its hash is {@link
   * #hash} where the server is honest.
   */
  public Optional<SignedTransaction> signed() {
    return signature.flatMap(by -> transaction().map(one -> one.signed(by)));
  }

  /** The transaction without its signature; none of other types than 0 to 4. */
  public Optional<Transaction> transaction() {
    Address receiver = to.orElse(null);
    if (chainId.orElse(1) < 1) {
      return Optional.empty();
    }
    if (type == 0) {
      return Optional.of(
          new LegacyTransaction(chainId, nonce, gasPrice, gasLimit, receiver, value, input));
    }
    if (type > 4 || chainId.isEmpty() || type > 2 && receiver == null) {
      return Optional.empty();
    }
    long chain = chainId.getAsLong();
    Wei most = maxFeePerGas.orElse(gasPrice);
    Wei tip = maxPriorityFeePerGas.orElse(most);
    return Optional.of(
        switch (type) {
          case 1 ->
              new AccessListTransaction(
                  chain, nonce, gasPrice, gasLimit, receiver, value, input, accessList);
          case 2 ->
              new FeeMarketTransaction(
                  chain, nonce, tip, most, gasLimit, receiver, value, input, accessList);
          case 3 -> blob(chain, tip, most);
          default -> setCode(chain, tip, most);
        });
  }

  private Transaction blob(long chain, Wei tip, Wei most) {
    return new BlobTransaction(
        chain,
        nonce,
        tip,
        most,
        gasLimit,
        to.orElseThrow(),
        value,
        input,
        accessList,
        maxFeePerBlobGas.orElse(Wei.ZERO),
        blobVersionedHashes);
  }

  private Transaction setCode(long chain, Wei tip, Wei most) {
    return new SetCodeTransaction(
        chain,
        nonce,
        tip,
        most,
        gasLimit,
        to.orElseThrow(),
        value,
        input,
        accessList,
        authorizations);
  }

  static ChainTransaction read(JsonReader json) {
    Parts parts = new Parts();
    MEMBERS.read(json, parts);
    return parts.transaction();
  }

  private static final class Parts implements Members.Taker {
    private @Nullable Hash hash;
    private int type;
    private @Nullable Hash blockHash;
    private long blockNumber = -1;
    private long blockTimestamp = -1;
    private long transactionIndex = -1;
    private @Nullable Address from;
    private @Nullable Address to;
    private long nonce = -1;
    private long gas = -1;
    private @Nullable Wei value;
    private @Nullable Bytes input;
    private @Nullable Wei gasPrice;
    private @Nullable Wei maxFeePerGas;
    private @Nullable Wei maxPriorityFeePerGas;
    private @Nullable Wei maxFeePerBlobGas;
    private List<Hash> blobVersionedHashes = List.of();
    private List<AccessListEntry> accessList = List.of();
    private List<Authorization.Signed> authorizationList = List.of();
    private long chainId = -1;
    private @Nullable BigInteger v;
    private @Nullable BigInteger r;
    private @Nullable BigInteger s;
    private int yParity = -1;

    @Override
    public void take(String name, JsonReader json) {
      switch (name) {
        case "hash" -> hash = json.nextHash();
        case "type" -> type = Members.octet(json);
        case "blockHash" -> blockHash = json.nextHash();
        case "blockNumber" -> blockNumber = json.nextQuantity();
        case "blockTimestamp" -> blockTimestamp = json.nextQuantity();
        case "transactionIndex" -> transactionIndex = json.nextQuantity();
        case "from" -> from = json.nextAddress();
        case "to" -> to = json.nextAddress();
        case "nonce" -> nonce = json.nextQuantity();
        case "gas" -> gas = json.nextQuantity();
        case "value" -> value = json.nextWei();
        case "input" -> input = json.nextBytes();
        case "gasPrice" -> gasPrice = json.nextWei();
        case "maxFeePerGas" -> maxFeePerGas = json.nextWei();
        case "maxPriorityFeePerGas" -> maxPriorityFeePerGas = json.nextWei();
        case "maxFeePerBlobGas" -> maxFeePerBlobGas = json.nextWei();
        case "blobVersionedHashes" ->
            blobVersionedHashes = Members.list(json, JsonReader::nextHash);
        case "accessList" -> accessList = Members.list(json, AccessLists::entry);
        case "authorizationList" -> authorizationList = Members.list(json, Authorizations::read);
        case "chainId" -> chainId = json.nextQuantity();
        case "v" -> v = json.nextBigQuantity();
        case "r" -> r = json.nextBigQuantity();
        case "s" -> s = json.nextBigQuantity();
        case "yParity" -> yParity = Members.octet(json);
        default -> throw new AssertionError(name);
      }
    }

    private Optional<Inclusion> inclusion() {
      if (blockHash == null) {
        return Optional.empty();
      }
      return Optional.of(
          new Inclusion(
              blockHash,
              Members.the("blockNumber", blockNumber),
              Members.the("transactionIndex", transactionIndex),
              Members.optional(blockTimestamp)));
    }

    /** The parity; a legacy transaction's is in v, and its chain as well (EIP-155). */
    private int parity() {
      if (yParity >= 0 || v == null) {
        return Math.max(0, yParity);
      }
      BigInteger offset = v.subtract(BigInteger.valueOf(35));
      if (type == 0 && offset.signum() >= 0) {
        BigInteger chain = offset.shiftRight(1);
        if (chainId < 0 && chain.bitLength() < 64) {
          chainId = chain.longValue();
        }
        return offset.testBit(0) ? 1 : 0;
      }
      boolean old = v.equals(BigInteger.valueOf(27)) || v.equals(BigInteger.valueOf(28));
      return old ? v.intValue() - 27 : v.bitLength() < 8 ? v.intValue() : 0;
    }

    ChainTransaction transaction() {
      int parity = parity();
      boolean signed = r != null && s != null && (v != null || yParity >= 0);
      boolean anyChain = type == 0 && v != null && v.bitLength() < 6 && v.intValue() < 35;
      return new ChainTransaction(
          Members.the("hash", hash),
          type,
          inclusion(),
          Members.the("from", from),
          Optional.ofNullable(to),
          Members.the("nonce", nonce),
          Members.the("gas", gas),
          Members.the("value", value),
          Members.the("input", input),
          Members.the("gasPrice", gasPrice == null ? maxFeePerGas : gasPrice),
          Optional.ofNullable(maxFeePerGas),
          Optional.ofNullable(maxPriorityFeePerGas),
          Optional.ofNullable(maxFeePerBlobGas),
          blobVersionedHashes,
          accessList,
          authorizationList,
          anyChain ? OptionalLong.empty() : Members.optional(chainId),
          signed ? Optional.of(new Signature(r, s, parity)) : Optional.empty());
    }
  }
}
