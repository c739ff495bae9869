//! Bounds of the client, each with its unit and its reason.

/// Times that a call is sent again after its connection broke: one for a server that restarts, one
/// for a connection that it closed at that moment.
pub(crate) const REPEATS: usize = 2;

/// Characters of a foreign text that an error repeats.
pub(crate) const QUOTE_CHARS: usize = 200;
