import org.jspecify.annotations.NullMarked;

/** Ethereum's values and their encodings: hex, JSON, RLP, keccak-256 and the ABI of contracts. */
@NullMarked
module deponent.eth {
  requires static org.jspecify;

  exports deponent.eth;
}
