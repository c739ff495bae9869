package deponent.client;

import deponent.eth.Address;
import deponent.eth.Hash;
import deponent.eth.JsonReader;
import deponent.eth.MalformedException;
import deponent.eth.Wei;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;
import org.jspecify.annotations.Nullable;

/**
 * A block: its header, and its transactions or their hashes.
 *
 * @param header the header
 * @param hashes the hashes of the transactions
 * @param transactions the transactions; none where the hashes alone were asked for
 * @param uncles the hashes of the uncles
 * @param withdrawals the withdrawals, since Shanghai
 * @param size the size in bytes, where the server says it
 */
public record Block(
    BlockHeader header,
    List<Hash> hashes,
    List<ChainTransaction> transactions,
    List<Hash> uncles,
    Optional<List<Withdrawal>> withdrawals,
    OptionalLong size) {
  static final Members MEMBERS =
      BlockHeader.MEMBERS.with("transactions", "uncles", "withdrawals", "size");

  /** With copies of the lists. */
  public Block {
    hashes = List.copyOf(hashes);
    transactions = List.copyOf(transactions);
    uncles = List.copyOf(uncles);
    withdrawals = withdrawals.map(List::copyOf);
  }

  /** The number. */
  public long number() {
    return header.number();
  }

  /** The hash; zero of a pending block. */
  public Hash hash() {
    return header.hash();
  }

  /** The parent's hash. */
  public Hash parentHash() {
    return header.parentHash();
  }

  /** Who is paid the fees. */
  public Address miner() {
    return header.miner();
  }

  /** Seconds since 1970. */
  public long timestamp() {
    return header.timestamp();
  }

  /** The gas that it may use. */
  public long gasLimit() {
    return header.gasLimit();
  }

  /** The gas that it used. */
  public long gasUsed() {
    return header.gasUsed();
  }

  /** The base fee, since London. */
  public Optional<Wei> baseFeePerGas() {
    return header.baseFeePerGas();
  }

  static Block read(JsonReader json) {
    Parts parts = new Parts();
    MEMBERS.read(json, parts);
    return parts.block();
  }

  /** Takes the members of a block. */
  static final class Parts implements Members.Taker {
    private final BlockHeader.Parts header = new BlockHeader.Parts();
    private @Nullable List<Hash> hashes;
    private List<ChainTransaction> transactions = List.of();
    private @Nullable List<Hash> uncles;
    private @Nullable List<Withdrawal> withdrawals;
    private long size = -1;

    @Override
    public void take(String name, JsonReader json) {
      switch (name) {
        case "transactions" -> transactions(json);
        case "uncles" -> uncles = Members.list(json, JsonReader::nextHash);
        case "withdrawals" -> withdrawals = Members.list(json, Withdrawal::read);
        case "size" -> size = json.nextQuantity();
        default -> header.take(name, json);
      }
    }

    private void transactions(JsonReader json) {
      List<Object> all =
          Members.list(
              json,
              one ->
                  one.peek() == JsonReader.Kind.STRING
                      ? one.nextHash()
                      : ChainTransaction.read(one));
      if (all.stream().allMatch(Hash.class::isInstance)) {
        hashes = all.stream().map(Hash.class::cast).toList();
      } else if (all.stream().allMatch(ChainTransaction.class::isInstance)) {
        transactions = all.stream().map(ChainTransaction.class::cast).toList();
        hashes = transactions.stream().map(ChainTransaction::hash).toList();
      } else {
        throw new MalformedException("both hashes and transactions");
      }
    }

    Block block() {
      return new Block(
          header.header(),
          Members.the("transactions", hashes),
          transactions,
          Members.the("uncles", uncles),
          Optional.ofNullable(withdrawals),
          Members.optional(size));
    }
  }
}
