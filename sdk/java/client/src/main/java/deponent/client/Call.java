package deponent.client;

import deponent.eth.Abi;
import deponent.eth.AbiFunction;
import deponent.eth.AccessListEntry;
import deponent.eth.Address;
import deponent.eth.Authorization;
import deponent.eth.Bytes;
import deponent.eth.Hash;
import deponent.eth.JsonWriter;
import deponent.eth.Wei;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * A call to run, or a transaction to send. Fields that are not set are filled in by the server, or
 * by the account that sends it. It does not change: each setter returns a copy.
 *
 * <pre>{@code
 * Call payment = Call.to(friend).value(Wei.ether("0.5"));
 * Call transfer = Call.to(token).data(TRANSFER, friend, Wei.ether("1")).from(me);
 * }</pre>
 */
public final class Call {
  private final Parts parts;

  private Call(Parts parts) {
    this.parts = parts;
  }

  /** It is not changed once a call has it. */
  private static final class Parts implements Cloneable {
    @Nullable Address to;
    @Nullable Address from;
    @Nullable Wei value;
    Bytes data = Bytes.EMPTY;
    long gasLimit = -1;
    @Nullable Wei gasPrice;
    @Nullable Wei maxFeePerGas;
    @Nullable Wei maxPriorityFeePerGas;
    long nonce = -1;
    @Nullable List<AccessListEntry> accessList;
    @Nullable Wei maxFeePerBlobGas;
    List<Hash> blobVersionedHashes = List.of();
    List<Authorization.Signed> authorizations = List.of();
    long chainId = -1;
    Abi errors = Reverts.NONE;

    @Override
    protected Parts clone() {
      try {
        return (Parts) super.clone();
      } catch (CloneNotSupportedException impossible) {
        throw new AssertionError(impossible);
      }
    }
  }

  private Call with(Consumer<Parts> change) {
    Parts copy = parts.clone();
    change.accept(copy);
    return new Call(copy);
  }

  /** Begins a call of the account {@code to}. */
  public static Call to(Address to) {
    Parts parts = new Parts();
    parts.to = Objects.requireNonNull(to);
    return new Call(parts);
  }

  /** Begins the creation of a contract by {@code initCode}. */
  public static Call create(Bytes initCode) {
    Parts parts = new Parts();
    parts.data = Objects.requireNonNull(initCode);
    return new Call(parts);
  }

  /** Sets the sender. */
  public Call from(Address from) {
    return with(copy -> copy.from = from);
  }

  /** Sets the amount of ether that is transferred. */
  public Call value(Wei value) {
    return with(copy -> copy.value = value);
  }

  /** Sets the call data. */
  public Call data(Bytes data) {
    return with(copy -> copy.data = Objects.requireNonNull(data));
  }

  /**
   * Sets the call data of {@code function} with its arguments.
   *
   * @throws IllegalArgumentException if the arguments do not fit, with the place of the one
   */
  public Call data(AbiFunction function, Object... arguments) {
    return data(function.encode(arguments));
  }

  /**
   * Sets the gas limit.
   *
   * @throws IllegalArgumentException if it is negative
   */
  public Call gasLimit(long gasLimit) {
    return with(copy -> copy.gasLimit = notNegative("gas limit", gasLimit));
  }

  /** Sets the gas price, which transactions of types 0 and 1 have. */
  public Call gasPrice(Wei gasPrice) {
    return with(copy -> copy.gasPrice = gasPrice);
  }

  /** Sets the max fee and the max priority fee of a unit of gas (EIP-1559). */
  public Call fees(Wei maxFeePerGas, Wei maxPriorityFeePerGas) {
    return with(
        copy -> {
          copy.maxFeePerGas = maxFeePerGas;
          copy.maxPriorityFeePerGas = maxPriorityFeePerGas;
        });
  }

  /**
   * Sets the nonce.
   *
   * @throws IllegalArgumentException if it is negative
   */
  public Call nonce(long nonce) {
    return with(copy -> copy.nonce = notNegative("nonce", nonce));
  }

  /** Sets the access list (EIP-2930). */
  public Call accessList(List<AccessListEntry> accessList) {
    List<AccessListEntry> list = List.copyOf(accessList);
    return with(copy -> copy.accessList = list);
  }

  /** Sets the versioned hashes of blobs, and the max fee of a unit of blob gas (EIP-4844). */
  public Call blobs(List<Hash> versionedHashes, Wei maxFeePerBlobGas) {
    List<Hash> hashes = List.copyOf(versionedHashes);
    return with(
        copy -> {
          copy.blobVersionedHashes = hashes;
          copy.maxFeePerBlobGas = maxFeePerBlobGas;
        });
  }

  /** Sets the authorizations by which accounts delegate to contracts (EIP-7702). */
  public Call authorizations(List<Authorization.Signed> authorizations) {
    List<Authorization.Signed> list = List.copyOf(authorizations);
    return with(copy -> copy.authorizations = list);
  }

  /**
   * Sets the chain id. The call is good on that chain alone.
   *
   * @throws IllegalArgumentException if it is negative
   */
  public Call chainId(long chainId) {
    return with(copy -> copy.chainId = notNegative("chain id", chainId));
  }

  /** Sets the ABI by whose errors reverts are decoded. */
  public Call errors(Abi abi) {
    return with(copy -> copy.errors = Objects.requireNonNull(abi));
  }

  private static long notNegative(String what, long number) {
    if (number < 0) {
      throw new IllegalArgumentException("a " + what + " is not negative: " + number);
    }
    return number;
  }

  /** The receiver; none where it creates a contract. */
  public Optional<Address> to() {
    return Optional.ofNullable(parts.to);
  }

  /** The sender. */
  public Optional<Address> from() {
    return Optional.ofNullable(parts.from);
  }

  /** The amount of ether that is transferred. */
  public Optional<Wei> value() {
    return Optional.ofNullable(parts.value);
  }

  /** The call data, or the init code. */
  public Bytes data() {
    return parts.data;
  }

  /** The gas limit. */
  public OptionalLong gasLimit() {
    return Members.optional(parts.gasLimit);
  }

  /** The gas price. */
  public Optional<Wei> gasPrice() {
    return Optional.ofNullable(parts.gasPrice);
  }

  /** The max fee of a unit of gas. */
  public Optional<Wei> maxFeePerGas() {
    return Optional.ofNullable(parts.maxFeePerGas);
  }

  /** The max priority fee of a unit of gas. */
  public Optional<Wei> maxPriorityFeePerGas() {
    return Optional.ofNullable(parts.maxPriorityFeePerGas);
  }

  /** The nonce. */
  public OptionalLong nonce() {
    return Members.optional(parts.nonce);
  }

  /** The access list. */
  public Optional<List<AccessListEntry>> accessList() {
    return Optional.ofNullable(parts.accessList);
  }

  /** The max fee of a unit of blob gas. */
  public Optional<Wei> maxFeePerBlobGas() {
    return Optional.ofNullable(parts.maxFeePerBlobGas);
  }

  /** The versioned hashes of the blobs. */
  public List<Hash> blobVersionedHashes() {
    return parts.blobVersionedHashes;
  }

  /** The authorizations (EIP-7702). */
  public List<Authorization.Signed> authorizations() {
    return parts.authorizations;
  }

  /** The chain id. */
  public OptionalLong chainId() {
    return Members.optional(parts.chainId);
  }

  /** The ABI by which reverts are decoded; it is not sent. */
  public Abi errors() {
    return parts.errors;
  }

  /** Writes it as a parameter. */
  public void write(JsonWriter json) {
    json.beginObject();
    from().ifPresent(from -> json.name("from").value(from));
    to().ifPresent(to -> json.name("to").value(to));
    gasLimit().ifPresent(gas -> json.name("gas").quantity(gas));
    gasPrice().ifPresent(price -> json.name("gasPrice").quantity(price));
    maxFeePerGas().ifPresent(fee -> json.name("maxFeePerGas").quantity(fee));
    maxPriorityFeePerGas().ifPresent(fee -> json.name("maxPriorityFeePerGas").quantity(fee));
    value().ifPresent(value -> json.name("value").quantity(value));
    nonce().ifPresent(nonce -> json.name("nonce").quantity(nonce));
    if (!parts.data.isEmpty()) {
      json.name("input").value(parts.data);
    }
    chainId().ifPresent(chain -> json.name("chainId").quantity(chain));
    accessList().ifPresent(list -> AccessLists.write(list, json.name("accessList")));
    maxFeePerBlobGas().ifPresent(fee -> json.name("maxFeePerBlobGas").quantity(fee));
    if (!parts.blobVersionedHashes.isEmpty()) {
      json.name("blobVersionedHashes").beginArray();
      parts.blobVersionedHashes.forEach(json::value);
      json.endArray();
    }
    if (!parts.authorizations.isEmpty()) {
      Authorizations.write(parts.authorizations, json.name("authorizationList"));
    }
    json.endObject();
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof Call call && toString().equals(call.toString());
  }

  @Override
  public int hashCode() {
    return toString().hashCode();
  }

  /** Its JSON. */
  @Override
  public String toString() {
    JsonWriter json = new JsonWriter();
    write(json);
    return new String(json.array(), 0, json.size(), java.nio.charset.StandardCharsets.US_ASCII);
  }
}
