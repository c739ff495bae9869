//! Every bound of this crate, with its unit and its reason.

/// Changes that a message call may have to undo when it writes another transient slot: as many as
/// the gas of the largest transaction (EIP-7825) writes, 2^24 at 100 each. A call with more gas
/// could take 200 MiB.
pub(crate) const CALL_CHANGES: usize = (1 << 24) / 100;

/// The gas limit of a transaction from Amsterdam on, regular and state gas together:
/// `TX_MAX_TOTAL_GAS_LIMIT` of EIP-8037 (EIPs #12311, execution-specs #3582), so that it fits in 32
/// bits.
pub(crate) const TRANSACTION_GAS: u64 = u32::MAX as u64;
