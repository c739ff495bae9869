//! Floor 2. Payloads whose parent is not known, until it comes.

use crate::limits::{MISSING_LOG_PAUSE, ORPHAN_BYTES, ORPHANS};
use alloy_primitives::B256;
use alloy_primitives::map::B256Map;
use execution::SealedBlock;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::Instant;

/// One who fills gaps from elsewhere than the consensus client, as far as it matters here.
#[derive(Debug, Default)]
pub(crate) struct GapFiller {
    /// Whether there is one, which says itself what is missing.
    pub(crate) is_there: AtomicBool,
    /// The number of the last block of the gap that it fills; 0 without one.
    pub(crate) target: AtomicU64,
}

/// The newest blocks whose parent is not known, within bounds. They run without their access lists,
/// which are hints.
#[derive(Debug, Default)]
pub(crate) struct Orphans {
    by_hash: B256Map<SealedBlock>,
    /// In the order in which they came.
    order: VecDeque<B256>,
    bytes: usize,
    /// When the log last said that something is missing.
    logged: Option<Instant>,
}

/// About the bytes that a block takes in memory.
fn held_bytes(block: &SealedBlock) -> usize {
    2 * block.rlp_bytes() + 1024
}

impl Orphans {
    /// Keeps a block, and gives up the oldest ones where that is too much.
    pub(crate) fn insert(&mut self, block: SealedBlock) {
        let hash = block.hash();
        self.take(&hash);
        self.bytes += held_bytes(&block);
        self.by_hash.insert(hash, block);
        self.order.push_back(hash);
        while self.order.len() > ORPHANS || self.bytes > ORPHAN_BYTES && self.order.len() > 1 {
            let oldest = self.order[0];
            self.take(&oldest);
        }
    }

    /// A block that is not kept from then on.
    pub(crate) fn take(&mut self, hash: &B256) -> Option<SealedBlock> {
        let block = self.by_hash.remove(hash)?;
        self.order.retain(|kept| kept != hash);
        self.bytes -= held_bytes(&block);
        if self.order.is_empty() {
            // The next one that is missing is another matter, to be said at once.
            self.logged = None;
        }
        Some(block)
    }

    /// The blocks on this one.
    pub(crate) fn children_of(&self, parent: &B256) -> Vec<B256> {
        let is_child = |hash: &&B256| self.by_hash[*hash].header.parent_hash == *parent;
        self.order.iter().filter(is_child).copied().collect()
    }

    /// The ancestor that a block waits for: the first that is not among these.
    pub(crate) fn missing_before(&self, block: &SealedBlock) -> (u64, B256) {
        let mut header = &block.header;
        // A parent has a lower number, or its child is refused when it runs.
        for _ in 0..=self.order.len() {
            let Some(parent) = self.by_hash.get(&header.parent_hash) else { break };
            header = &parent.header;
        }
        (header.number.saturating_sub(1), header.parent_hash)
    }

    pub(crate) fn get(&self, hash: &B256) -> Option<&SealedBlock> {
        self.by_hash.get(hash)
    }

    /// The one that came last.
    pub(crate) fn newest(&self) -> Option<&SealedBlock> {
        self.order.back().map(|hash| &self.by_hash[hash])
    }

    /// The parents of all of them.
    pub(crate) fn parents(&self) -> Vec<B256> {
        let parent = |hash| self.by_hash[hash].header.parent_hash;
        self.order.iter().map(parent).collect()
    }

    /// The highest number that one has.
    pub(crate) fn highest(&self) -> Option<u64> {
        self.by_hash.values().map(|block| block.header.number).max()
    }

    pub(crate) fn count(&self) -> usize {
        self.order.len()
    }

    /// Whether it is time for a line in the log about what is missing: at once, then seldom.
    pub(crate) fn is_log_due(&mut self, now: Instant) -> bool {
        let is_due = self.logged.is_none_or(|last| now - last >= MISSING_LOG_PAUSE);
        if is_due {
            self.logged = Some(now);
        }
        is_due
    }
}

#[cfg(test)]
mod tests;
