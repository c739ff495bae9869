//! Every bound of this crate, with its unit and its reason.

/// Changes that a message call may have to undo when it writes another transient slot: as many as
/// the gas of the largest transaction (EIP-7825) writes, 2^24 at 100 each. A call with more gas
/// could take 200 MiB.
pub(crate) const CALL_CHANGES: usize = (1 << 24) / 100;
