package deponent.engine;

import deponent.eth.Hash;
import deponent.eth.JsonReader;
import deponent.eth.JsonReader.Names;
import deponent.eth.MalformedException;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * That a block has its witness, or what becomes of the block: a value of {@code
 * deponent_subscribeWitnesses}.
 *
 * @param hash the block's
 * @param number the block's
 * @param parentHash the parent's
 * @param status what is told
 * @param counts the items of the witness; genesis has none
 * @param sizes bytes of the witness; empty where to know them takes reading it
 */
public record WitnessNotice(
    Hash hash,
    long number,
    Hash parentHash,
    Status status,
    Optional<Counts> counts,
    Optional<Sizes> sizes) {
  private static final Names NOTICE =
      Names.of("hash", "number", "parentHash", "status", "items", "sizes");
  private static final Names COUNTS = Names.of("nodes", "codes", "headers");
  private static final Names SIZES = Names.of("exact", "ssz", "rlp", "json");

  /** What is told of a block. Ancestors of a safe or finalized one are so too. */
  public enum Status {
    /** It was run and is valid; its witness can be fetched. */
    VALID,
    /** It is on the chain of the head. */
    CANONICAL,
    /** A fork choice names it safe. */
    SAFE,
    /** A fork choice names it final. */
    FINALIZED,
    /** It has left the chain of the head. */
    REORGED
  }

  /**
   * Items of a witness.
   *
   * @param nodes at most
   * @param codes all of them
   * @param headers all of them
   */
  public record Counts(long nodes, long codes, long headers) {}

  /**
   * Bytes of a witness in each encoding.
   *
   * @param exact whether they are, or upper bounds
   * @param ssz in SSZ
   * @param rlp in RLP
   * @param json in JSON
   */
  public record Sizes(boolean exact, long ssz, long rlp, long json) {}

  static WitnessNotice read(JsonReader json) {
    @Nullable Object[] found = new Object[6];
    json.beginObject();
    while (json.hasNext()) {
      int member = json.nextName(NOTICE);
      if (member < 0) {
        json.skipValue();
      } else if (!json.nextNull()) {
        found[member] =
            switch (member) {
              case 0, 2 -> json.nextHash();
              case 1 -> json.nextQuantity();
              case 3 -> status(json.nextString());
              case 4 -> counts(json);
              default -> sizes(json);
            };
      }
    }
    json.endObject();
    if (!(found[0] instanceof Hash hash)
        || !(found[1] instanceof Long number)
        || !(found[2] instanceof Hash parent)
        || !(found[3] instanceof Status status)) {
      throw new MalformedException("a notice without hash, number, parentHash or status");
    }
    return new WitnessNotice(
        hash,
        number,
        parent,
        status,
        Optional.ofNullable((Counts) found[4]),
        Optional.ofNullable((Sizes) found[5]));
  }

  private static Status status(String text) {
    return switch (text) {
      case "valid" -> Status.VALID;
      case "canonical" -> Status.CANONICAL;
      case "safe" -> Status.SAFE;
      case "finalized" -> Status.FINALIZED;
      case "reorged" -> Status.REORGED;
      default -> throw new MalformedException("a status that there is not: " + text);
    };
  }

  private static Counts counts(JsonReader json) {
    long[] counts = new long[3];
    json.beginObject();
    while (json.hasNext()) {
      int member = json.nextName(COUNTS);
      if (member < 0) {
        json.skipValue();
      } else {
        counts[member] = json.nextLong();
      }
    }
    json.endObject();
    return new Counts(counts[0], counts[1], counts[2]);
  }

  private static Sizes sizes(JsonReader json) {
    boolean exact = false;
    long[] sizes = new long[4];
    json.beginObject();
    while (json.hasNext()) {
      int member = json.nextName(SIZES);
      if (member < 0) {
        json.skipValue();
      } else if (member == 0) {
        exact = json.nextBoolean();
      } else {
        sizes[member] = json.nextLong();
      }
    }
    json.endObject();
    return new Sizes(exact, sizes[1], sizes[2], sizes[3]);
  }
}
