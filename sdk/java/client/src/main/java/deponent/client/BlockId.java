package deponent.client;

import deponent.eth.Hash;
import deponent.eth.JsonWriter;
import java.util.Locale;

/**
 * Names a block: by its place in the chain, its number, or its hash.
 *
 * <pre>{@code
 * eth.balance(me, BlockId.FINALIZED);
 * eth.balance(me, BlockId.of(23_000_000));
 * }</pre>
 */
public sealed interface BlockId {
  // No default methods: the constants' class would be initialised before them.

  /** The head of the chain. */
  BlockId LATEST = Tag.LATEST;

  /** The block that would come next. */
  BlockId PENDING = Tag.PENDING;

  /** The newest block that is unlikely to leave the chain. */
  BlockId SAFE = Tag.SAFE;

  /** The newest block that cannot leave the chain. */
  BlockId FINALIZED = Tag.FINALIZED;

  /** The genesis block, or the oldest one that the server has. */
  BlockId EARLIEST = Tag.EARLIEST;

  /**
   * The block of a number.
   *
   * @throws IllegalArgumentException if it is negative
   */
  static BlockId of(long number) {
    return new Number(number);
  }

  /** The block of a hash, in the chain or not (EIP-1898). */
  static BlockId of(Hash hash) {
    return new OfHash(hash, false);
  }

  /** A place in the chain. */
  enum Tag implements BlockId {
    /** The head of the chain. */
    LATEST,
    /** The block that would come next. */
    PENDING,
    /** The newest block that is unlikely to leave the chain. */
    SAFE,
    /** The newest block that cannot leave the chain. */
    FINALIZED,
    /** The genesis block, or the oldest one that the server has. */
    EARLIEST;

    private final String word = name().toLowerCase(Locale.ROOT);

    @Override
    public void write(JsonWriter json) {
      json.value(word);
    }

    /** As JSON-RPC has it, such as {@code latest}. */
    @Override
    public String toString() {
      return word;
    }
  }

  /**
   * A block's number.
   *
   * @param number from 0 on
   */
  record Number(long number) implements BlockId {
    /** Checks the number. */
    public Number {
      if (number < 0) {
        throw new IllegalArgumentException("a block's number is not negative: " + number);
      }
    }

    @Override
    public void write(JsonWriter json) {
      json.quantity(number);
    }

    /** The number in decimal digits. */
    @Override
    public String toString() {
      return Long.toString(number);
    }
  }

  /**
   * A block's hash.
   *
   * @param hash the hash
   * @param requireCanonical whether a block that left the chain is an error
   */
  record OfHash(Hash hash, boolean requireCanonical) implements BlockId {
    @Override
    public void write(JsonWriter json) {
      json.beginObject().name("blockHash").value(hash);
      if (requireCanonical) {
        json.name("requireCanonical").value(true);
      }
      json.endObject();
    }

    /** The hash. */
    @Override
    public String toString() {
      return hash.toString();
    }
  }

  /** Writes it as a parameter. */
  void write(JsonWriter json);
}
