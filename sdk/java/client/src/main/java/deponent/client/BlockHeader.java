package deponent.client;

import deponent.eth.Address;
import deponent.eth.Bytes;
import deponent.eth.Hash;
import deponent.eth.JsonReader;
import deponent.eth.Keccak256;
import deponent.eth.RlpWriter;
import deponent.eth.Wei;
import java.math.BigInteger;
import java.util.Optional;
import java.util.OptionalLong;
import org.jspecify.annotations.Nullable;

/**
 * A block's header.
 *
 * @param hash the hash; zero of a pending block
 * @param parentHash the parent's hash
 * @param sha3Uncles the hash of the list of uncles
 * @param miner who is paid the fees; zero of a pending block
 * @param stateRoot the root of the state after the block
 * @param transactionsRoot the root of the transactions
 * @param receiptsRoot the root of the receipts
 * @param logsBloom the filter of the logs: 256 bytes
 * @param difficulty the difficulty; 0 since the merge
 * @param number the number
 * @param gasLimit the gas that the block may use
 * @param gasUsed the gas that the block used
 * @param timestamp seconds since 1970
 * @param extraData any bytes, at most 32
 * @param mixHash the beacon chain's randomness, {@code prevRandao}
 * @param nonce 8 bytes; zero since the merge
 * @param baseFeePerGas the base fee, since London
 * @param withdrawalsRoot the root of the withdrawals, since Shanghai
 * @param blobGasUsed the gas of blobs that the block used, since Cancun
 * @param excessBlobGas the gas of blobs above the target so far, since Cancun
 * @param parentBeaconBlockRoot the root of the parent's beacon block, since Cancun
 * @param requestsHash the hash of the requests (EIP-7685), since Prague
 * @param blockAccessListHash the hash of the access list (EIP-7928), since Amsterdam
 * @param slotNumber the slot's number (EIP-7843), since Amsterdam
 */
public record BlockHeader(
    Hash hash,
    Hash parentHash,
    Hash sha3Uncles,
    Address miner,
    Hash stateRoot,
    Hash transactionsRoot,
    Hash receiptsRoot,
    Bytes logsBloom,
    BigInteger difficulty,
    long number,
    long gasLimit,
    long gasUsed,
    long timestamp,
    Bytes extraData,
    Hash mixHash,
    Bytes nonce,
    Optional<Wei> baseFeePerGas,
    Optional<Hash> withdrawalsRoot,
    OptionalLong blobGasUsed,
    OptionalLong excessBlobGas,
    Optional<Hash> parentBeaconBlockRoot,
    Optional<Hash> requestsHash,
    Optional<Hash> blockAccessListHash,
    OptionalLong slotNumber) {
  static final Members MEMBERS =
      Members.of(
          "hash",
          "parentHash",
          "sha3Uncles",
          "miner",
          "stateRoot",
          "transactionsRoot",
          "receiptsRoot",
          "logsBloom",
          "difficulty",
          "number",
          "gasLimit",
          "gasUsed",
          "timestamp",
          "extraData",
          "mixHash",
          "nonce",
          "baseFeePerGas",
          "withdrawalsRoot",
          "blobGasUsed",
          "excessBlobGas",
          "parentBeaconBlockRoot",
          "requestsHash",
          "blockAccessListHash",
          "slotNumber");

  private static final Bytes NO_BLOOM = Bytes.of(new byte[256]);
  private static final Bytes NO_NONCE = Bytes.of(new byte[8]);

  /** Whether it is of the block that would come next, which has no hash yet. */
  public boolean isPending() {
    return hash.equals(Hash.ZERO);
  }

  /**
   * The hash of the members, which is {@link #hash} where the server is honest and the chain has
   * Ethereum's headers.
   */
  public Hash computeHash() {
    return Keccak256.hash(encode());
  }

  /** The header in RLP, as Ethereum has it. */
  public Bytes encode() {
    RlpWriter rlp = new RlpWriter(640).list();
    rlp.add(parentHash).add(sha3Uncles).add(miner).add(stateRoot).add(transactionsRoot);
    rlp.add(receiptsRoot).add(logsBloom).add(difficulty).add(number).add(gasLimit).add(gasUsed);
    rlp.add(timestamp).add(extraData).add(mixHash).add(nonce);
    baseFeePerGas.ifPresent(rlp::add);
    withdrawalsRoot.ifPresent(rlp::add);
    blobGasUsed.ifPresent(rlp::add);
    excessBlobGas.ifPresent(rlp::add);
    parentBeaconBlockRoot.ifPresent(rlp::add);
    requestsHash.ifPresent(rlp::add);
    blockAccessListHash.ifPresent(rlp::add);
    slotNumber.ifPresent(rlp::add);
    return Bytes.of(rlp.end().toBytes());
  }

  static BlockHeader read(JsonReader json) {
    Parts parts = new Parts();
    MEMBERS.read(json, parts);
    return parts.header();
  }

  static final class Parts implements Members.Taker {
    private @Nullable Hash hash;
    private @Nullable Hash parentHash;
    private @Nullable Hash sha3Uncles;
    private @Nullable Address miner;
    private @Nullable Hash stateRoot;
    private @Nullable Hash transactionsRoot;
    private @Nullable Hash receiptsRoot;
    private @Nullable Bytes logsBloom;
    private @Nullable BigInteger difficulty;
    private long number = -1;
    private long gasLimit = -1;
    private long gasUsed = -1;
    private long timestamp = -1;
    private @Nullable Bytes extraData;
    private @Nullable Hash mixHash;
    private @Nullable Bytes nonce;
    private @Nullable Wei baseFeePerGas;
    private @Nullable Hash withdrawalsRoot;
    private long blobGasUsed = -1;
    private long excessBlobGas = -1;
    private @Nullable Hash parentBeaconBlockRoot;
    private @Nullable Hash requestsHash;
    private @Nullable Hash blockAccessListHash;
    private long slotNumber = -1;

    @Override
    public void take(String name, JsonReader json) {
      switch (name) {
        case "hash" -> hash = json.nextHash();
        case "parentHash" -> parentHash = json.nextHash();
        case "sha3Uncles" -> sha3Uncles = json.nextHash();
        case "miner" -> miner = json.nextAddress();
        case "stateRoot" -> stateRoot = json.nextHash();
        case "transactionsRoot" -> transactionsRoot = json.nextHash();
        case "receiptsRoot" -> receiptsRoot = json.nextHash();
        case "logsBloom" -> logsBloom = json.nextBytes();
        case "difficulty" -> difficulty = json.nextBigQuantity();
        case "number" -> number = json.nextQuantity();
        case "gasLimit" -> gasLimit = json.nextQuantity();
        case "gasUsed" -> gasUsed = json.nextQuantity();
        case "timestamp" -> timestamp = json.nextQuantity();
        case "extraData" -> extraData = json.nextBytes();
        case "mixHash" -> mixHash = json.nextHash();
        case "nonce" -> nonce = json.nextBytes();
        case "baseFeePerGas" -> baseFeePerGas = json.nextWei();
        case "withdrawalsRoot" -> withdrawalsRoot = json.nextHash();
        case "blobGasUsed" -> blobGasUsed = json.nextQuantity();
        case "excessBlobGas" -> excessBlobGas = json.nextQuantity();
        case "parentBeaconBlockRoot" -> parentBeaconBlockRoot = json.nextHash();
        case "requestsHash" -> requestsHash = json.nextHash();
        case "blockAccessListHash" -> blockAccessListHash = json.nextHash();
        case "slotNumber" -> slotNumber = json.nextQuantity();
        default -> throw new AssertionError(name);
      }
    }

    BlockHeader header() {
      boolean pending = hash == null;
      return new BlockHeader(
          pending ? Hash.ZERO : hash,
          Members.the("parentHash", parentHash),
          Members.the("sha3Uncles", sha3Uncles),
          pending && miner == null ? Address.ZERO : Members.the("miner", miner),
          Members.the("stateRoot", stateRoot),
          Members.the("transactionsRoot", transactionsRoot),
          Members.the("receiptsRoot", receiptsRoot),
          pending && logsBloom == null ? NO_BLOOM : Members.the("logsBloom", logsBloom),
          difficulty == null ? BigInteger.ZERO : difficulty,
          Members.the("number", number),
          Members.the("gasLimit", gasLimit),
          Members.the("gasUsed", gasUsed),
          Members.the("timestamp", timestamp),
          Members.the("extraData", extraData),
          Members.the("mixHash", mixHash),
          pending && nonce == null ? NO_NONCE : Members.the("nonce", nonce),
          Optional.ofNullable(baseFeePerGas),
          Optional.ofNullable(withdrawalsRoot),
          Members.optional(blobGasUsed),
          Members.optional(excessBlobGas),
          Optional.ofNullable(parentBeaconBlockRoot),
          Optional.ofNullable(requestsHash),
          Optional.ofNullable(blockAccessListHash),
          Members.optional(slotNumber));
    }
  }
}
