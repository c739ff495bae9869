//! The errors of upstreams.

use alloy_primitives::B256;
use rpc::ClientError;

/// Why an upstream has not given what it was asked for.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no answer, or it is an error.
    #[error("{method}: {error}")]
    Unanswered {
        /// The method.
        method: &'static str,
        /// The client's reason.
        error: ClientError,
    },
    /// Its answer cannot be read.
    #[error("{method}: its answer cannot be read: {reason}")]
    Unreadable {
        /// The method.
        method: &'static str,
        /// The fault.
        reason: String,
    },
    /// It does not have the block.
    #[error("it has no block {0}")]
    Absent(B256),
    /// It gives something else than what it was asked for.
    #[error("{method}: not block {hash}: {reason}")]
    Lie {
        /// The method.
        method: &'static str,
        /// The block that was asked for.
        hash: B256,
        /// The thing that it gives.
        reason: String,
    },
    /// It gives another block access list than that of the block.
    #[error("{method}: not the access list of block {hash}: it hashes to {got}")]
    FalseList {
        /// The method.
        method: &'static str,
        /// The block whose list was asked for.
        hash: B256,
        /// The hash of what it gives.
        got: B256,
    },
}

impl Error {
    /// Whether the answer is proven to be false.
    pub const fn is_lie(&self) -> bool {
        matches!(self, Self::Lie { .. } | Self::FalseList { .. })
    }
}
