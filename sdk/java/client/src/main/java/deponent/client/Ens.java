package deponent.client;

import deponent.eth.Abi;
import deponent.eth.AbiFunction;
import deponent.eth.AbiValues;
import deponent.eth.Address;
import deponent.eth.Bytes;
import deponent.eth.MalformedException;
import deponent.eth.ProtocolException;
import deponent.eth.RevertException;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;

/**
 * Names of ENS, by the universal resolver (ENSIP-23), also where a name's records are off the chain
 * (EIP-3668). Names are normalised (ENSIP-15) before they are asked for. Each setting gives a new
 * one.
 *
 * <pre>{@code
 * Address nick = eth.ens().address("nick.eth").orElseThrow();
 * Optional<EnsName> name = eth.ens().name(nick);            // verified
 * Optional<String> avatar = eth.ens().text("nick.eth", "avatar");
 * }</pre>
 *
 * <p>A name without a resolver, and a resolver without the record, are empty results. Methods throw
 * {@link IllegalArgumentException} for what is no name, and an {@link deponent.eth.EthException}
 * without an answer: a {@link RevertException} where the resolver reverted, a {@link
 * ProtocolException} where a server off the chain or a resolver answered something else.
 */
public final class Ens {
  /** Where Ethereum's main network, Sepolia and Holesky have the universal resolver. */
  public static final Address UNIVERSAL_RESOLVER =
      Address.of("0xeEeEEEeE14D718C2B47D9923Deab1335E144EeEe");

  private static final AbiFunction RESOLVE =
      AbiFunction.of(
          "resolveWithGateways(bytes name, bytes data, string[] gateways) view"
              + " returns (bytes result, address resolver)");

  private static final AbiFunction REVERSE =
      AbiFunction.of(
          "reverseWithGateways(bytes lookupAddress, uint256 coinType, string[] gateways) view"
              + " returns (string primary, address resolver, address reverseResolver)");

  private static final AbiFunction ADDR = AbiFunction.of("addr(bytes32) view returns (address)");

  private static final AbiFunction ADDR_OF_COIN =
      AbiFunction.of("addr(bytes32, uint256 coinType) view returns (bytes)");

  private static final AbiFunction TEXT =
      AbiFunction.of("text(bytes32, string key) view returns (string)");

  private static final AbiFunction CONTENTHASH =
      AbiFunction.of("contenthash(bytes32) view returns (bytes)");

  private static final Abi ERRORS =
      Abi.of(
          "error ResolverNotFound(bytes name)",
          "error ResolverNotContract(bytes name, address resolver)",
          "error UnsupportedResolverProfile(bytes4 selector)",
          "error ResolverError(bytes errorData)",
          "error ReverseAddressMismatch(string primary, bytes primaryAddress)",
          "error HttpError(uint16 status, string message)",
          "error DNSDecodingFailed(bytes dns)",
          "error DNSEncodingFailed(string ens)",
          "error EmptyAddress()",
          "error InvalidBatchGatewayResponse()");

  /** Errors that say that there is no such record. */
  private static final Set<String> NOTHING =
      Set.of(
          "ResolverNotFound",
          "ResolverNotContract",
          "UnsupportedResolverProfile",
          "ReverseAddressMismatch");

  private final Client client;
  private final Address resolver;
  private final BlockId block;
  private final Gateway gateway;

  Ens(Client client) {
    this(client, UNIVERSAL_RESOLVER, BlockId.LATEST, Gateway.https());
  }

  private Ens(Client client, Address resolver, BlockId block, Gateway gateway) {
    this.client = client;
    this.resolver = Objects.requireNonNull(resolver);
    this.block = Objects.requireNonNull(block);
    this.gateway = Objects.requireNonNull(gateway);
  }

  /** By another universal resolver. */
  public Ens universalResolver(Address contract) {
    return new Ens(client, contract, block, gateway);
  }

  /** As names were after a block. */
  public Ens at(BlockId block) {
    return new Ens(client, resolver, block, gateway);
  }

  /** Has {@code gateway} ask the servers off the chain. */
  public Ens gateway(Gateway gateway) {
    return new Ens(client, resolver, block, gateway);
  }

  /** A name's address on Ethereum. */
  public Optional<Address> address(String name) {
    return address(EnsName.of(name));
  }

  private Optional<Address> address(EnsName name) {
    return record(name, ADDR)
        .map(values -> values.address(0))
        .filter(address -> !address.equals(Address.ZERO));
  }

  /**
   * A name's address on a chain.
   *
   * @param coinType the chain: one of {@link CoinType}, or of SLIP-44
   * @return the address in bytes (ENSIP-9)
   */
  public Optional<Bytes> address(String name, long coinType) {
    return address(EnsName.of(name), coinType);
  }

  private Optional<Bytes> address(EnsName name, long coinType) {
    if (coinType == CoinType.ETHER) {
      // Old resolvers have this record alone.
      return address(name).map(address -> Bytes.of(address.toBytes()));
    }
    return record(name, ADDR_OF_COIN, coinType)
        .map(values -> values.bytes(0))
        .filter(bytes -> !bytes.isEmpty());
  }

  /** A text record (ENSIP-5), such as {@code avatar} or {@code url}. */
  public Optional<String> text(String name, String key) {
    return record(EnsName.of(name), TEXT, key)
        .map(values -> values.text(0))
        .filter(text -> !text.isEmpty());
  }

  /** Where the content of a name is, as a multicodec (ENSIP-7). */
  public Optional<Bytes> contenthash(String name) {
    return record(EnsName.of(name), CONTENTHASH)
        .map(values -> values.bytes(0))
        .filter(bytes -> !bytes.isEmpty());
  }

  /**
   * Any record of a name.
   *
   * @param profile the resolver's function, whose first argument is the name's node
   * @param others its other arguments
   * @throws IllegalArgumentException if they do not fit
   */
  public Optional<AbiValues> record(EnsName name, AbiFunction profile, Object... others) {
    Object[] arguments = new Object[others.length + 1];
    arguments[0] = name.node();
    System.arraycopy(others, 0, arguments, 1, others.length);
    Bytes call = profile.encode(arguments);
    return asked(RESOLVE, name.dns(), call)
        .map(values -> values.bytes(0))
        .filter(result -> !result.isEmpty())
        .map(result -> decoded(profile, result));
  }

  /** The name that an address of Ethereum has, if the name has this address. */
  public Optional<EnsName> name(Address address) {
    return name(Bytes.of(address.toBytes()), CoinType.ETHER);
  }

  /**
   * The name that an address has on a chain (ENSIP-19), if the name has this address there. A name
   * that is not in its normal form is none.
   *
   * @param address the address in bytes (ENSIP-9)
   * @param coinType the chain: one of {@link CoinType}, or of SLIP-44
   * @throws IllegalArgumentException if the address has no bytes, or the type is negative
   */
  public Optional<EnsName> name(Bytes address, long coinType) {
    EnsName.reverse(address, coinType);
    return asked(REVERSE, address, coinType)
        .flatMap(values -> normal(values.text(0)))
        .filter(name -> address(name, coinType).filter(address::equals).isPresent());
  }

  private static Optional<EnsName> normal(String name) {
    if (name.isEmpty()) {
      return Optional.empty();
    }
    try {
      return Optional.of(EnsName.of(name)).filter(normal -> normal.toString().equals(name));
    } catch (IllegalArgumentException none) {
      return Optional.empty();
    }
  }

  /** Asks the universal resolver; empty where it says that there is nothing. */
  private Optional<AbiValues> asked(AbiFunction function, Object first, Object second) {
    Bytes data = function.encode(first, second, List.of(CcipRead.LOCAL_BATCH));
    try {
      Bytes result = new CcipRead(client, gateway, block).call(resolver, data);
      if (result.isEmpty()) {
        throw new ProtocolException(
            "there is no universal resolver at " + resolver + ": another chain has it elsewhere");
      }
      return Optional.of(decoded(function, result));
    } catch (RevertException reverted) {
      RevertException revert = reverted.with(ERRORS);
      String error = revert.error().map(known -> known.name()).orElse("");
      if (NOTHING.contains(error)) {
        return Optional.empty();
      }
      if (error.equals("HttpError")) {
        throw new ProtocolException("CCIP-read: " + revert.reason(), revert);
      }
      if (error.equals("ResolverError")) {
        Bytes inner = revert.values().orElseThrow().bytes(0);
        throw RevertException.of(revert.code(), "the resolver reverted", inner, ERRORS);
      }
      throw revert;
    }
  }

  private static AbiValues decoded(AbiFunction function, Bytes result) {
    try {
      return function.decodeResult(result);
    } catch (MalformedException other) {
      throw new ProtocolException(function.name() + ": " + other.getMessage(), other);
    }
  }
}
