//! Floor 2. The verdict on a block.

use alloy_primitives::B256;

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
    /// The block's parent is not known, so nothing can be said.
    Syncing,
}
