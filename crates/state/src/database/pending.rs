use super::types::{Heads, NewBlock};
use crate::index::NewCanonical;
use crate::index::lookup::CanonicalByNumber;
use crate::log::NewCode;
use alloy_primitives::map::B256Map;
use alloy_primitives::{B256, Bytes};
use std::collections::{BTreeMap, VecDeque};
use std::ops::RangeInclusive;
use std::sync::Arc;

/// A change of the store, persisted in the order of their numbers.
#[derive(Clone, Debug)]
pub(super) enum PendingChange {
    Block(Arc<NewBlock>),
    Codes(Vec<NewCode>),
    Witness { hash: B256, witness: Bytes },
    Canonical { changes: CanonicalByNumber, heads: Heads },
    Meta { key: String, value: Bytes },
    ForgetVersions(u64),
    DeleteNodes(u64),
    RetainWitnesses { max_blocks: u64, max_bytes: u64 },
}

impl PendingChange {
    /// The memory that it holds while it waits, in bytes, about: none for a change without data,
    /// which is persisted with a later one.
    pub(super) fn bytes(&self) -> u64 {
        let extra = match self {
            Self::Block(block) => {
                let codes: usize = block.codes.iter().map(NewCode::memory_bytes).sum();
                let parts = [Some(&block.block), block.witness.as_ref(), block.touched.as_ref()];
                codes + parts.into_iter().flatten().map(|part| part.len()).sum::<usize>()
            }
            Self::Codes(codes) => codes.iter().map(NewCode::memory_bytes).sum(),
            Self::Witness { witness, .. } => witness.len(),
            Self::Canonical { changes, .. } => {
                let blocks = changes.values().flatten();
                64 * changes.len() + blocks.map(|block| block.bytes()).sum::<usize>()
            }
            Self::Meta { key, value } => key.len() + value.len(),
            Self::ForgetVersions(_) | Self::DeleteNodes(_) | Self::RetainWitnesses { .. } => {
                return 0;
            }
        };
        512 + extra as u64
    }
}

/// The changes that are not persisted, and their values by key for readers. Each value has the
/// number of its change.
#[derive(Debug)]
pub(super) struct PendingChanges {
    pub(super) heads: Heads,
    /// The number of the newest change.
    sequence: u64,
    queue: VecDeque<(u64, PendingChange)>,
    blocks: B256Map<(u64, Arc<NewBlock>)>,
    codes: B256Map<(u64, Bytes)>,
    canonical: BTreeMap<u64, (u64, Option<Arc<NewCanonical>>)>,
    meta: BTreeMap<String, (u64, Bytes)>,
}

impl PendingChanges {
    pub(super) fn new(sequence: u64, heads: Heads) -> Self {
        Self {
            heads,
            sequence,
            queue: VecDeque::new(),
            blocks: B256Map::default(),
            codes: B256Map::default(),
            canonical: BTreeMap::new(),
            meta: BTreeMap::new(),
        }
    }

    pub(super) fn add_block(&mut self, block: NewBlock) -> u64 {
        self.change(PendingChange::Block(Arc::new(block)))
    }

    /// Adds a change. Returns the bytes that it holds.
    pub(super) fn change(&mut self, change: PendingChange) -> u64 {
        self.sequence += 1;
        let number = self.sequence;
        match &change {
            PendingChange::Block(block) => {
                self.add_codes(number, &block.codes);
                self.blocks.insert(block.hash, (number, block.clone()));
            }
            PendingChange::Codes(codes) => self.add_codes(number, codes),
            PendingChange::Canonical { changes, heads } => {
                let changes = changes.iter().map(|(at, block)| (*at, (number, block.clone())));
                self.canonical.extend(changes);
                self.heads = *heads;
            }
            PendingChange::Meta { key, value } => {
                self.meta.insert(key.clone(), (number, value.clone()));
            }
            PendingChange::Witness { .. }
            | PendingChange::ForgetVersions(_)
            | PendingChange::DeleteNodes(_)
            | PendingChange::RetainWitnesses { .. } => {}
        }
        let bytes = change.bytes();
        self.queue.push_back((number, change));
        bytes
    }

    pub(super) fn block_count(&self) -> u64 {
        self.blocks.len() as u64
    }

    fn add_codes(&mut self, number: u64, codes: &[NewCode]) {
        for code in codes {
            self.codes.entry(code.hash()).or_insert_with(|| (number, code.code().clone()));
        }
    }

    pub(super) fn block(&self, hash: &B256) -> Option<(u64, Arc<NewBlock>)> {
        self.blocks.get(hash).cloned()
    }

    pub(super) fn code(&self, hash: &B256) -> Option<Bytes> {
        self.codes.get(hash).map(|(_, code)| code.clone())
    }

    /// The pending canonical hash of this number; `Some(None)` if the number loses its hash.
    pub(super) fn canonical(&self, number: u64) -> Option<Option<B256>> {
        self.canonical.get(&number).map(|(_, block)| block.as_ref().map(|block| block.hash))
    }

    /// The pending canonical blocks of these numbers; `None` if a number loses its block.
    pub(super) fn canonical_in(&self, numbers: RangeInclusive<u64>) -> CanonicalByNumber {
        let pending = self.canonical.range(numbers);
        pending.map(|(number, (_, block))| (*number, block.clone())).collect()
    }

    /// The numbers of pending canonical blocks with a transaction of this key.
    pub(super) fn transaction_blocks(&self, key: u64) -> Vec<u64> {
        let blocks = self
            .canonical
            .iter()
            .filter_map(|(number, (_, block))| Some((number, block.as_ref()?)));
        let found = blocks.filter(|(_, block)| block.transactions.contains(&key));
        found.map(|(number, _)| *number).collect()
    }

    pub(super) fn meta(&self, key: &str) -> Option<Bytes> {
        self.meta.get(key).map(|(_, value)| value.clone())
    }

    /// All changes that wait, oldest first.
    pub(super) fn changes(&self) -> Vec<(u64, PendingChange)> {
        self.queue.iter().cloned().collect()
    }

    /// Drops the changes up to a number, which are persisted. Returns the bytes that they held.
    pub(super) fn persisted(&mut self, sequence: u64) -> u64 {
        let mut bytes = 0;
        while self.queue.front().is_some_and(|(number, _)| *number <= sequence) {
            let (_, change) = self.queue.pop_front().expect("looked at above");
            bytes += change.bytes();
        }
        self.blocks.retain(|_, (number, _)| *number > sequence);
        self.codes.retain(|_, (number, _)| *number > sequence);
        self.canonical.retain(|_, (number, _)| *number > sequence);
        self.meta.retain(|_, (number, _)| *number > sequence);
        bytes
    }
}
