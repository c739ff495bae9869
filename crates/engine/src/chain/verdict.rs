//! Floor 2. The verdict on a block.

use crate::chain::timings::Timings;
use alloy_primitives::B256;
use std::fmt;

/// The answer on a payload or a head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The block and all its ancestors are valid; it is itself the latest valid block.
    Valid,
    /// The block, or one before it, breaks a rule.
    Invalid {
        /// The last valid block of the branch, `None` when that is not known.
        latest_valid_hash: Option<B256>,
        /// The rule broken.
        reason: String,
    },
    /// Nothing can be said, since something is missing.
    Syncing(Missing),
}

/// The answer on a payload, and whether its block ran for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JudgedPayload {
    /// The verdict.
    pub verdict: Verdict,
    /// Where the time of the block went; `None` where none ran to the end: the verdict was known
    /// from an earlier payload, or the block is not valid.
    pub timings: Option<Timings>,
}

impl JudgedPayload {
    /// Whether the block was valid before this payload came.
    pub fn is_known(&self) -> bool {
        self.verdict == Verdict::Valid && self.timings.is_none()
    }
}

/// The part that is missing to judge a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    /// A block before it: the first that is not known.
    Block {
        /// Its number, as its child has it.
        number: u64,
        /// Its hash.
        hash: B256,
    },
    /// The state after its parent, which is known, and whose state is not kept any more.
    State {
        /// The parent's hash.
        parent: B256,
    },
    /// The header of an ancestor that the block asks for, before the first block of the chain.
    Header {
        /// The ancestor's number.
        number: u64,
    },
    /// The head that a fork choice names.
    Head {
        /// The head's hash.
        hash: B256,
    },
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Block { number, hash } => write!(f, "block {number}, {hash}, is not known"),
            Self::State { parent } => write!(
                f,
                "the state after its parent {parent} is not kept any more; \
                 --history.retain-blocks says how many stay"
            ),
            Self::Header { number } => write!(
                f,
                "it asks for the hash of block {number}, which is before the chain's first block"
            ),
            Self::Head { hash } => write!(f, "block {hash} is not known"),
        }
    }
}
