//! Every bound of this crate, with its unit and its reason.

/// Changes that a message call may have to undo when it writes another transient slot: as many as
/// the gas of the largest transaction (EIP-7825) writes, 2^24 at 100 each. A call with more gas
/// could take 200 MiB.
pub(crate) const CALL_CHANGES: usize = (1 << 24) / 100;

/// The gas limit of a transaction from Amsterdam on, regular and state gas together:
/// `TX_MAX_TOTAL_GAS_LIMIT` of EIP-8037 (EIPs #12311, execution-specs #3582), so that it fits in 32
/// bits.
pub(crate) const TRANSACTION_GAS: u64 = u32::MAX as u64;

/// The gas limit of a transaction in Osaka (EIP-7825).
pub(crate) const TRANSACTION_REGULAR_GAS: u64 = 1 << 24;

/// How far an estimate of gas may be above the least gas limit, as a fraction of it: geth's 1.5 %.
/// Wallets add more, and each halving of it is another run of the call.
pub(crate) const ESTIMATE_ERROR: (u128, u128) = (15, 1000);

/// Items of a block access list (EIP-7928) that are left for the system calls of a block under
/// construction: the contracts of EIP-4788, 2935, 7002, 7251 and 8282 and the slots that they read,
/// some 200 at most.
pub(crate) const SYSTEM_CALL_ITEMS: u64 = 256;

/// Bytes by which a block under construction grows when its header is completed: the gas used and
/// the hash of the block access list.
pub(crate) const HEADER_GROWTH: usize = 64;

/// The most transactions without gas left that a selection keeps, so that one of them can have its
/// place earlier.
pub(crate) const LEFT_OUT: usize = 4;

/// The most runs of a call that an access list is made for. Each run but the last finds something
/// new, and a contract could have them go on for ever; those that compilers make need three.
pub(crate) const ACCESS_LIST_RUNS: usize = 16;

/// The most blocks of a simulation, with those between that were not asked for: geth's.
pub(crate) const SIMULATED_BLOCKS: u64 = 256;

/// The seconds from a simulated block to the next, where no time is given: a slot of mainnet, as
/// in geth.
pub(crate) const BLOCK_SECONDS: u64 = 12;

/// Instructions between two looks at the time of a trace: some microseconds of work.
pub(crate) const STEPS_BETWEEN_LOOKS: u64 = 1024;
