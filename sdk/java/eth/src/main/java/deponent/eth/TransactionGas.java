package deponent.eth;

import java.math.BigInteger;
import java.util.Optional;

/** The gas that a transaction costs before it runs, and the faults that it shows by itself. */
final class TransactionGas {
  private static final long BASE = 21_000;
  private static final long CREATE = 32_000;
  private static final long ZERO_BYTE = 4;
  private static final long OTHER_BYTE = 16;

  /** For 32 bytes of init code (EIP-3860). */
  private static final long INIT_CODE_WORD = 2;

  private static final long LISTED_ADDRESS = 2_400;
  private static final long LISTED_SLOT = 1_900;
  private static final long AUTHORIZATION = 25_000;

  /** For a token of data: a zero is one, another byte four (EIP-7623). */
  private static final long FLOOR_TOKEN = 10;

  /** Longest init code, in bytes (EIP-3860). */
  private static final int LONGEST_INIT_CODE = 2 * 24_576;

  private TransactionGas() {}

  static long intrinsic(Transaction transaction) {
    long zeros = zeros(transaction.data());
    long gas = BASE + ZERO_BYTE * zeros + OTHER_BYTE * (transaction.data().size() - zeros);
    if (transaction.to() == null) {
      gas += CREATE + INIT_CODE_WORD * ((transaction.data().size() + 31L) / 32);
    }
    for (AccessListEntry entry : transaction.accessList()) {
      gas += LISTED_ADDRESS + LISTED_SLOT * entry.storageKeys().size();
    }
    if (transaction instanceof SetCodeTransaction setCode) {
      gas += AUTHORIZATION * setCode.authorizations().size();
    }
    return gas;
  }

  static long floor(Transaction transaction) {
    long zeros = zeros(transaction.data());
    return BASE + FLOOR_TOKEN * (zeros + 4 * (transaction.data().size() - zeros));
  }

  private static long zeros(Bytes data) {
    long zeros = 0;
    for (byte one : data.array) {
      zeros += one == 0 ? 1 : 0;
    }
    return zeros;
  }

  static Optional<String> fault(Transaction transaction) {
    long least = Math.max(intrinsic(transaction), floor(transaction));
    if (Long.compareUnsigned(transaction.gasLimit(), least) < 0) {
      return Optional.of(
          "a gas limit of "
              + Long.toUnsignedString(transaction.gasLimit())
              + ", where "
              + least
              + " is needed before it runs");
    }
    if (transaction.maxPriorityFeePerGas().compareTo(transaction.maxFeePerGas()) > 0) {
      return Optional.of(
          "a tip of "
              + transaction.maxPriorityFeePerGas()
              + " wei, which is more than the whole fee of "
              + transaction.maxFeePerGas());
    }
    BigInteger limit = new BigInteger(Long.toUnsignedString(transaction.gasLimit()));
    BigInteger most = limit.multiply(transaction.maxFeePerGas().toBigInteger());
    if (most.bitLength() > 256) {
      return Optional.of("gas that costs more than 2^256 wei");
    }
    if (transaction.to() == null && transaction.data().size() > LONGEST_INIT_CODE) {
      return Optional.of(
          transaction.data().size() + " bytes of init code, at most " + LONGEST_INIT_CODE);
    }
    if (transaction instanceof BlobTransaction blobs && blobs.blobVersionedHashes().isEmpty()) {
      return Optional.of("no blobs");
    }
    if (transaction instanceof SetCodeTransaction setCode && setCode.authorizations().isEmpty()) {
      return Optional.of("no authorizations");
    }
    return Optional.empty();
  }
}
