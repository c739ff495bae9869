//! Bounds of the client, each with its unit and its reason.

/// Longest answer to a call that asks for no block and no witness, in bytes: some names, numbers
/// and hashes, and the reason why a payload is invalid.
pub(crate) const SHORT_ANSWER_BYTES: usize = 4 << 20;

/// Longest answer of any other call, in bytes: four of the largest witnesses in hex.
pub(crate) const LONG_ANSWER_BYTES: usize = 4 << 30;

/// Times that a call is sent again after its connection broke: one for a server that restarts, one
/// for a connection that it closed at that moment.
pub(crate) const REPEATS: usize = 2;
