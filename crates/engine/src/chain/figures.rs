//! Floor 2. What a block cost, and how much of the state it read and wrote.

use crate::chain::timings::Timings;
use alloy_primitives::B256;
use execution::{Executed, SealedBlock};
use std::time::Duration;

/// The cost of a block that has run and is valid.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BlockFigures {
    /// The block's hash.
    pub hash: B256,
    /// The block's number.
    pub number: u64,
    /// The block's time, in seconds since 1970.
    pub timestamp: u64,
    /// Gas that the block used.
    pub gas_used: u64,
    /// The number of its transactions.
    pub transactions: usize,
    /// Where its time went once it was its turn.
    pub timings: Timings,
    /// Its time since the engine got it, until the answer: decoding, waiting, running, and the
    /// witness where that was asked for.
    pub total: Duration,
    /// Of that, waiting for another block to end, or until less waited for the disk
    /// (back-pressure).
    pub waited: Duration,
    /// Its reads.
    pub reads: StateReads,
    /// Its writes.
    pub writes: StateWrites,
    /// Whether it ran with the help of its access list.
    pub is_listed: bool,
    /// Bytes of this and earlier blocks that waited for the disk at the answer.
    pub unpersisted_bytes: u64,
}

/// How much of the state a block read, each thing once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StateReads {
    /// Accounts, those that do not exist included.
    pub accounts: usize,
    /// Slots of storages, those that are zero included.
    pub slots: usize,
    /// Codes.
    pub codes: usize,
    /// The bytes of these codes.
    pub code_bytes: usize,
    /// Of these codes, those that were not in the cache of codes made ready to run.
    pub uncached_codes: usize,
}

/// How much of the state a block changed: the values after it, each once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StateWrites {
    /// Accounts that exist after it.
    pub accounts: usize,
    /// Accounts that it deleted.
    pub deleted_accounts: usize,
    /// Slots that are not zero after it.
    pub slots: usize,
    /// Slots that it set to zero.
    pub deleted_slots: usize,
    /// Codes that it deployed.
    pub codes: usize,
    /// The bytes of these codes.
    pub code_bytes: usize,
}

impl BlockFigures {
    /// The figures that are known of a block before its times are.
    pub(crate) fn new(block: &SealedBlock, reads: StateReads, executed: &Executed) -> Self {
        Self {
            hash: block.hash(),
            number: block.header.number,
            timestamp: block.header.timestamp,
            gas_used: block.header.gas_used,
            transactions: block.body.transactions.len(),
            reads,
            writes: StateWrites::of(executed),
            ..Self::default()
        }
    }
}

impl StateWrites {
    fn of(executed: &Executed) -> Self {
        let mut writes = Self::default();
        // The EVM library lists the empty code too.
        for (_, code) in executed.new_codes.iter().filter(|(_, code)| !code.is_empty()) {
            writes.codes += 1;
            writes.code_bytes += code.len();
        }
        for change in &executed.changes {
            match change.account {
                Some(_) => writes.accounts += 1,
                None => writes.deleted_accounts += 1,
            }
            let zeros = change.slots.iter().filter(|(_, value)| value.is_zero()).count();
            writes.deleted_slots += zeros;
            writes.slots += change.slots.len() - zeros;
        }
        writes
    }
}
