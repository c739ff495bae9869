//! Floor 3. Reads of the parent's state that threads share, for a block without an access list.

use crate::error::NO_PANIC;
use crate::limits;
use crate::read::version::KnownAccount;
use alloy_primitives::map::{AddressMap, HashMap};
use alloy_primitives::{Address, B256, U256};
use execution::CommittedChanges;
use std::sync::RwLock;

/// Shared by the block's thread and those that run transactions ahead of it.
#[derive(Debug, Default)]
pub(crate) struct Guess {
    /// Changes of the transactions that have had their turn.
    pub(crate) so_far: CommittedChanges,
    /// Reads of the threads that run ahead.
    pub(crate) reads: SharedReads,
}

/// Accounts and slots that threads have read of the state after the parent.
#[derive(Debug)]
pub(crate) struct SharedReads {
    /// In parts, so that threads seldom wait for each other.
    parts: Vec<RwLock<ReadsPart>>,
}

#[derive(Debug, Default)]
struct ReadsPart {
    accounts: AddressMap<KnownAccount>,
    /// The slots' hashes and values.
    slots: HashMap<(Address, U256), (B256, U256)>,
}

impl Default for SharedReads {
    fn default() -> Self {
        Self { parts: (0..limits::SHARED_READS_PARTS).map(|_| RwLock::default()).collect() }
    }
}

impl SharedReads {
    /// An account, if it was read.
    pub(crate) fn account(&self, address: &Address) -> Option<KnownAccount> {
        let part = self.part(address, U256::ZERO).read().expect(NO_PANIC);
        part.accounts.get(address).copied()
    }

    pub(crate) fn put_account(&self, address: Address, known: KnownAccount) {
        let mut part = self.part(&address, U256::ZERO).write().expect(NO_PANIC);
        part.accounts.insert(address, known);
    }

    /// The hash and the value of a slot, if it was read.
    pub(crate) fn slot(&self, owner: Address, slot: U256) -> Option<(B256, U256)> {
        let part = self.part(&owner, slot).read().expect(NO_PANIC);
        part.slots.get(&(owner, slot)).copied()
    }

    pub(crate) fn put_slot(&self, owner: Address, slot: U256, read: (B256, U256)) {
        let mut part = self.part(&owner, slot).write().expect(NO_PANIC);
        part.slots.insert((owner, slot), read);
    }

    /// The part is chosen by the last bytes of both. Many keys in one part cost time alone.
    fn part(&self, owner: &Address, slot: U256) -> &RwLock<ReadsPart> {
        &self.parts[usize::from(owner[19] ^ slot.byte(0)) % self.parts.len()]
    }
}
