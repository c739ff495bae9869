//! Floor 0. Why the engine could not answer.

use alloy_primitives::B256;
use execution::{ChainSpecError, InvalidBlock};
use witness::StateError;

/// Why the engine could not answer. A bad block is no error: see [`Verdict`](crate::Verdict).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The fork choice contradicts itself or the chain.
    #[error("forkchoice state: {0}")]
    InvalidForkchoiceState(String),
    /// A payload cannot be built from these attributes.
    #[error("payload attributes: {0}")]
    InvalidAttributes(String),
    /// No valid block with this hash is known.
    #[error("block {0} is unknown")]
    UnknownBlock(B256),
    /// The state after this block is not kept any more.
    #[error(
        "the state after block {0} has been pruned; --history.retain-blocks says how many stay"
    )]
    Pruned(B256),
    /// The head cannot go back to this block: nothing could be built or validated on it.
    #[error(
        "the head cannot go back to block {0}: its state has been pruned; \
         --history.retain-blocks says how many stay"
    )]
    TooDeepReorg(B256),
    /// The list of what this block read is pruned, and so is its witness.
    #[error(
        "the witness of block {0} has been pruned; --witness.retain-blocks and \
         --witness.retain-bytes say how many stay"
    )]
    PrunedWitness(B256),
    /// Blocks with smaller numbers cannot be found by their transactions and logs.
    #[error(
        "blocks before {0} are not in the index of transactions and logs: stop the node and run \
         deponent db index"
    )]
    NotIndexed(u64),
    /// The receipts of this block, the first of its chain, are not there.
    #[error("the chain begins with the state after block {0}, not its receipts")]
    NoReceipts(B256),
    /// The payload to build breaks a rule: a transaction given for it cannot run.
    #[error("cannot build: {0}")]
    Build(InvalidBlock),
    /// The time of a call was over before it ended.
    #[error("the time of the call is over")]
    OutOfTime,
    /// The genesis cannot be used.
    #[error("the chain cannot begin: {0}")]
    Genesis(String),
    /// The slots of an account of the first state are not those that it has.
    #[error(
        "the slots of the account that hashes to {hashed_address} give the storage root {got}, the \
         account says {expected}"
    )]
    StorageRoot {
        /// keccak-256 of the account's address.
        hashed_address: B256,
        /// The root that the slots give.
        got: B256,
        /// The root that the account says.
        expected: B256,
    },
    /// The chain's rules cannot be used.
    #[error("chain configuration: {0}")]
    ChainSpec(#[from] ChainSpecError),
    /// The EVM failed for a reason of its own.
    #[error("the EVM failed: {0}")]
    Evm(String),
    /// The state of a known block could not be read.
    #[error("state: {0}")]
    State(#[from] StateError),
    /// The database failed, or holds what it should not.
    #[error("database: {0}")]
    Storage(String),
}

/// Why no lock of the engine is poisoned.
pub(crate) const NO_PANIC: &str = "no thread panics while it holds the lock";

/// A failure of the database as a state reports it.
pub(crate) fn storage_error(error: impl std::fmt::Display) -> StateError {
    StateError::Storage(error.to_string())
}

impl From<state::Error> for Error {
    fn from(error: state::Error) -> Self {
        Self::Storage(error.to_string())
    }
}

impl From<trie::Error> for Error {
    fn from(error: trie::Error) -> Self {
        Self::State(error.into())
    }
}
