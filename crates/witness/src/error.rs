use alloy_primitives::B256;
use trie::versioned::RecordError;

/// The reason why bytes are not a witness.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The bytes break the encoding's own rules.
    #[error("{field}: {reason}")]
    Malformed {
        /// The part of the witness that was being read.
        field: &'static str,
        /// The fault in it.
        reason: String,
    },
    /// A list or an item is larger than the limit.
    #[error("{field}: {got} is over the limit of {limit}")]
    TooLarge {
        /// The part of the witness that was being read.
        field: &'static str,
        /// Items or bytes found.
        got: usize,
        /// Items or bytes allowed.
        limit: usize,
    },
    /// The headers do not form a chain that ends at the block's parent.
    #[error("headers: {0}")]
    Headers(String),
}

impl DecodeError {
    pub(crate) fn malformed(field: &'static str, reason: impl ToString) -> Self {
        Self::Malformed { field, reason: reason.to_string() }
    }

    pub(crate) fn check(field: &'static str, got: usize, limit: usize) -> Result<(), Self> {
        if got > limit { Err(Self::TooLarge { field, got, limit }) } else { Ok(()) }
    }
}

/// The reason why a read from the state has no answer. It never means "absent": an account that is
/// not there is `Ok(None)`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StateError {
    /// A trie node is missing or malformed.
    #[error(transparent)]
    Trie(#[from] trie::Error),
    /// There is no code with this hash.
    #[error("code {0} is missing")]
    MissingCode(B256),
    /// There is no header of this ancestor.
    #[error("header of ancestor {0} is missing")]
    MissingHeader(u64),
    /// The store of the state could not be read, or is damaged.
    #[error("{0}")]
    Storage(String),
    /// The state is elsewhere, and a part of it cannot be had from there, or does not fit.
    #[error("{0}")]
    Remote(String),
}

impl StateError {
    /// Whether another program, which has the state, is at fault.
    pub const fn is_remote(&self) -> bool {
        let record = matches!(self, Self::Trie(trie::Error::Record(RecordError::Remote(_))));
        record || matches!(self, Self::Remote(_))
    }
}
