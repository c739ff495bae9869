//! The forks that the header `Eth-Execution-Version` names.

use std::fmt;

/// A fork with containers of its own. Forks of blob parameters count to the one they follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the specification's names")]
pub enum Fork {
    Paris,
    Shanghai,
    Cancun,
    Prague,
    Osaka,
    Amsterdam,
}

impl Fork {
    /// All of them, in order.
    pub const ALL: [Self; 6] =
        [Self::Paris, Self::Shanghai, Self::Cancun, Self::Prague, Self::Osaka, Self::Amsterdam];

    /// The name in the header.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Paris => "paris",
            Self::Shanghai => "shanghai",
            Self::Cancun => "cancun",
            Self::Prague => "prague",
            Self::Osaka => "osaka",
            Self::Amsterdam => "amsterdam",
        }
    }

    /// The fork of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|fork| fork.name() == name)
    }
}

impl fmt::Display for Fork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
