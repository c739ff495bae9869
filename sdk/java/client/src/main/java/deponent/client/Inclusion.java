package deponent.client;

import deponent.eth.Hash;
import java.util.OptionalLong;

/**
 * Where a transaction or a log is in the chain.
 *
 * @param blockHash the block's hash
 * @param blockNumber the block's number
 * @param transactionIndex the transaction's place in the block
 * @param blockTimestamp the block's time in seconds since 1970, where the server says it
 */
public record Inclusion(
    Hash blockHash, long blockNumber, long transactionIndex, OptionalLong blockTimestamp) {}
