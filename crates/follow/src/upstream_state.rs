//! How an upstream is, as far as it has said so.

use std::fmt;

/// How an upstream is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum UpstreamState {
    /// It was asked for nothing yet.
    #[default]
    Unasked,
    /// It has this chain, and its last answer was good.
    Answers,
    /// It has not given what it was asked for last.
    Fails,
    /// It has the chain with this id, and is asked for no blocks.
    OtherChain(u64),
}

impl fmt::Display for UpstreamState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unasked => f.write_str("not asked yet"),
            Self::Answers => f.write_str("answers"),
            Self::Fails => f.write_str("does not answer"),
            Self::OtherChain(id) => write!(f, "has another chain, {id}"),
        }
    }
}
