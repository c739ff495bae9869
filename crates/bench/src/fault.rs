//! The kinds of failures of clients, told apart for reports.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A kind of failure of a client. It is found in an error's contexts with [`Fault::of`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Fault {
    /// It did not get as far as to listen.
    NotStarting,
    /// Its process ended.
    Died,
    /// Nothing listens there.
    Unreachable,
    /// It closed the connection instead of answering.
    HungUp,
    /// No answer came in time.
    Hanging,
    /// The connection ended within an answer.
    Truncated,
    /// The answer is not what HTTP and JSON-RPC are.
    Garbled,
    /// The answer came compressed without being asked to: its time is not comparable.
    Compressed,
    /// It answered with an error.
    Refusing,
    /// `SYNCING` or `ACCEPTED`: it lacks the parent, or does not execute.
    Behind,
    /// A verdict that is wrong: these blocks are valid.
    Lying,
    /// `VALID` without the witness that was asked for.
    NoWitness,
    /// It did not say in time that a block is persisted.
    NotPersisting,
    /// Not the client's fault: we were told to end.
    Interrupted,
}

impl Fault {
    /// The one in an error's contexts.
    pub(crate) fn of(error: &anyhow::Error) -> Option<Self> {
        error.downcast_ref().copied()
    }

    /// An error of this kind.
    pub(crate) fn error(self, said: String) -> anyhow::Error {
        anyhow::Error::msg(said).context(self)
    }

    /// The client worked on something else than it was given, or did it otherwise: such work is not
    /// compared.
    pub(crate) const fn is_unequal_work(self) -> bool {
        matches!(self, Self::Lying | Self::NoWitness | Self::Compressed | Self::Behind)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotStarting => "does not start",
            Self::Died => "died",
            Self::Unreachable => "unreachable",
            Self::HungUp => "hung up",
            Self::Hanging => "hanging",
            Self::Truncated => "truncated answer",
            Self::Garbled => "garbled answer",
            Self::Compressed => "compressed answer",
            Self::Refusing => "refused",
            Self::Behind => "behind",
            Self::Lying => "wrong verdict",
            Self::NoWitness => "no witness",
            Self::NotPersisting => "not persisting",
            Self::Interrupted => "interrupted",
        })
    }
}
