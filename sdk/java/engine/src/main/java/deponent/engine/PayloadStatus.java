package deponent.engine;

import deponent.eth.Hash;
import java.util.Optional;

/** What the engine says of a block or of a head: {@code PayloadStatusV1}. */
public sealed interface PayloadStatus {
  /** The name in the specification, such as {@code VALID}. */
  String name();

  /** The last valid block of the branch, as far as that is known. */
  Optional<Hash> latestValidHash();

  /**
   * It was run, and is valid.
   *
   * @param blockHash its hash
   */
  record Valid(Hash blockHash) implements PayloadStatus {
    @Override
    public String name() {
      return "VALID";
    }

    @Override
    public Optional<Hash> latestValidHash() {
      return Optional.of(blockHash);
    }
  }

  /**
   * It breaks a rule, or another block before it does. {@code INVALID_BLOCK_HASH}, which the first
   * version has for a block that is not what its hash says, is one of them.
   *
   * @param latestValidHash the last valid block before it; zero before the first of proof of stake
   * @param validationError the rule, in the server's words, at most 1,024 characters
   */
  record Invalid(Optional<Hash> latestValidHash, Optional<String> validationError)
      implements PayloadStatus {
    @Override
    public String name() {
      return "INVALID";
    }
  }

  /** It cannot be run yet: a block before it, or its state, is missing. */
  record Syncing() implements PayloadStatus {
    @Override
    public String name() {
      return "SYNCING";
    }

    @Override
    public Optional<Hash> latestValidHash() {
      return Optional.empty();
    }
  }

  /** It is well formed and not run, since it does not follow the head. */
  record Accepted() implements PayloadStatus {
    @Override
    public String name() {
      return "ACCEPTED";
    }

    @Override
    public Optional<Hash> latestValidHash() {
      return Optional.empty();
    }
  }
}
