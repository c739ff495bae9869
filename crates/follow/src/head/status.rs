//! Which block of an upstream becomes the head, and how that is followed.

use std::fmt;
use std::str::FromStr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use alloy_primitives::B256;

/// The block of an upstream that becomes the head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeadTag {
    /// Its newest block.
    Latest,
    /// Its safe block.
    Safe,
    /// Its finalized block.
    Finalized,
}

impl HeadTag {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Latest, Self::Safe, Self::Finalized];

    /// Its name in JSON-RPC.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Latest => "latest",
            Self::Safe => "safe",
            Self::Finalized => "finalized",
        }
    }
}

impl fmt::Display for HeadTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl FromStr for HeadTag {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|tag| tag.word() == text);
        found.ok_or_else(|| "expected latest, safe or finalized".into())
    }
}

/// How the head of an upstream is followed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HeadStatus {
    /// The upstream that is followed; `None` where none answers.
    pub upstream: Option<String>,
    /// The number and the hash of the block that it named last.
    pub head: Option<(u64, B256)>,
    /// Why that block is not the head; `None` where it is.
    pub problem: Option<String>,
}

/// Shared with those who show it.
#[derive(Debug, Default)]
pub(crate) struct SharedStatus(Mutex<HeadStatus>);

impl SharedStatus {
    pub(crate) fn lock(&self) -> MutexGuard<'_, HeadStatus> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
