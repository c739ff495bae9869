//! Why a shape cannot be read or written.

use witness::DecodeError;

/// Why JSON is not the value that it should be, or why a value has no form on the wire.
///
/// The containers in SSZ have an error of their own, [`SszError`](crate::SszError), which names the
/// field.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The JSON is malformed, or lacks a member, or has one that the version does not have. The
    /// text names the member.
    #[error("{0}")]
    Json(String),
    /// The witness in an answer cannot be read.
    #[error(transparent)]
    Witness(#[from] DecodeError),
    /// A payload that is to be sent lacks what its fork has beside it.
    #[error("the sidecar lacks {0}")]
    Missing(&'static str),
}

impl From<serde_json::Error> for Error {
    fn from(error: serde_json::Error) -> Self {
        Self::Json(error.to_string())
    }
}
