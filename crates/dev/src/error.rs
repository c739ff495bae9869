use alloy_primitives::B256;
use execution::GAS_LIMIT_MINIMUM;

/// Why a chain for tests did not do what it was asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The next block cannot have this time, in anvil's words.
    #[error("Timestamp error: {given} is lower than or equal to previous block's timestamp")]
    Time {
        /// The time.
        given: u64,
    },
    /// So many blocks are not mined by one call.
    #[error("{blocks} blocks at once are too many; at most {most}")]
    TooManyBlocks {
        /// Blocks asked for.
        blocks: u64,
        /// Blocks allowed.
        most: u64,
    },
    /// The chain has not so many blocks to go back.
    #[error("the chain has {height} blocks to go back, not {depth}")]
    TooDeep {
        /// Blocks to go back.
        depth: u64,
        /// Blocks that there are.
        height: u64,
    },
    /// A transaction offers less than the next block costs, in anvil's words and with the numbers.
    #[error("max fee per {kind} less than block base fee: it offers {fee} wei, and {least} is due")]
    Fee {
        /// For what it is paid.
        kind: &'static str,
        /// Wei that it offers.
        fee: u64,
        /// Wei that the block costs.
        least: u64,
    },
    /// A transaction is for a block that is none of the new ones, in anvil's words.
    #[error(
        "Block number for reorg tx will exceed the reorged chain height. Block number {index} must \
         not exceed (depth-1): the depth is {depth}"
    )]
    BeyondDepth {
        /// The block's index among the new ones.
        index: u64,
        /// The number of new ones.
        depth: u64,
    },
    /// No block has this gas limit.
    #[error("a gas limit of {given}: that of a block is {GAS_LIMIT_MINIMUM} to 2^63-1")]
    GasLimit {
        /// The gas limit.
        given: u64,
    },
    /// Accounts or slots of the state have no known names.
    #[error(
        "the state cannot be dumped, since some names are not known: accounts and slots of another \
         chain's block with which this one began, or that helpers set before its last start"
    )]
    Unnamed,
    /// The pool does not take the transaction.
    #[error(transparent)]
    Refused(#[from] pool::Refusal),
    /// The pool cannot follow the head.
    #[error("the pool does not follow the head: {0}")]
    Pool(String),
    /// The engine could not say.
    #[error(transparent)]
    Engine(#[from] engine::Error),
    /// The engine refuses a block that it has built itself.
    #[error("block {hash} is refused by the engine that built it: {reason}")]
    Invalid {
        /// The block's hash.
        hash: B256,
        /// The rule that it breaks.
        reason: String,
    },
    /// The configuration of the chain cannot be run.
    #[error("the chain cannot be run: {0}")]
    Genesis(String),
}
