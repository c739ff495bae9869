//! Floor 2. The newest witnesses, in memory.
//!
//! The witness of the newest block is put together from the block's tries. An older one would have
//! to be read from hundreds of nodes all over the memory, or from the disk. So once a block is
//! sealed, the nodes of its witness are copied here, one behind the other in the order in which
//! they are sent.

use crate::error::NO_PANIC;
use crate::tries::Tries;
use crate::witnesses::assembled::Assembled;
use alloy_primitives::B256;
use alloy_primitives::map::B256Map;
use state::CacheStats;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use trie::NodeList;
use trie::versioned::{Lister, run_serially};
use witness::{ReadCode, Witness};

/// The newest witnesses: whole ones of the newest block and of the last older one that was asked
/// for, and the nodes of others, under a byte budget.
#[derive(Debug, Default)]
pub(crate) struct RecentWitnesses {
    limit_bytes: usize,
    ring: Mutex<NodeRing>,
    /// That of the block that was validated last.
    newest: Mutex<Option<RecentWitness>>,
    /// That of the older block that was asked for last.
    asked: Mutex<Option<RecentWitness>>,
    /// Lists of nodes need room, and memory that is used for the first time is slow.
    listers: Mutex<Vec<Lister>>,
    /// Look-ups of nodes that were here, and of those that were not.
    hits: AtomicU64,
    misses: AtomicU64,
}

/// The witness of one block. It is put together once, when it is first asked for; clones share it.
#[derive(Debug, Clone)]
pub(crate) struct RecentWitness {
    block_hash: B256,
    /// The block's tries, which have all nodes of the witness, until the block is sealed.
    pub(crate) tries: Weak<Tries>,
    /// The codes that the block read, in the order of their hashes, where they are at hand.
    pub(crate) codes: Option<Arc<Vec<ReadCode>>>,
    /// Locked while it is put together, so that many who ask for it have it made once.
    assembled: Arc<Mutex<Option<Assembled>>>,
}

/// Nodes of witnesses by the hash of their block.
#[derive(Debug, Default)]
struct NodeRing {
    nodes: B256Map<Arc<NodeList>>,
    /// The first is the oldest.
    order: VecDeque<B256>,
    bytes: usize,
}

/// Bytes of a piece: a size that the allocator soon gives out again, see `trie`'s lists.
const PIECE_BYTES: usize = 16 << 10;

/// Bytes that a piece takes besides its content: its place, its count, and the end that no node
/// went into.
const PIECE_COSTS_BYTES: usize = 384;

/// Bytes that a node takes besides its content.
const NODE_COSTS_BYTES: usize = 16;

/// Listers that are kept: one for the newest block, one for older ones, one for copies.
const LISTERS: usize = 3;

impl RecentWitness {
    /// Of a block whose tries and codes are in memory.
    pub(crate) fn new(block_hash: B256, tries: Weak<Tries>, codes: Vec<ReadCode>) -> Self {
        Self { block_hash, tries, codes: Some(codes.into()), assembled: Arc::default() }
    }

    /// The witness, made by `assemble` unless that was done. A failure is not remembered.
    pub(crate) fn get_or_assemble<E>(
        &self,
        assemble: impl FnOnce() -> Result<Option<Assembled>, E>,
    ) -> Result<Option<Assembled>, E> {
        let mut assembled = self.assembled.lock().expect(NO_PANIC);
        if assembled.is_none() {
            *assembled = assemble()?;
        }
        Ok(assembled.clone())
    }

    /// The witness, if it has been put together. Does not wait for a thread that does so now.
    fn assembled(&self) -> Option<Assembled> {
        self.assembled.try_lock().ok()?.clone()
    }
}

impl RecentWitnesses {
    pub(crate) fn new(limit_bytes: usize) -> Self {
        Self { limit_bytes, ..Self::default() }
    }

    fn ring(&self) -> MutexGuard<'_, NodeRing> {
        self.ring.lock().expect(NO_PANIC)
    }

    /// Begins with the witness of a new block. Gives the one before it, whose memory is better
    /// [freed](Self::recycle) behind the answer.
    pub(crate) fn begin(&self, witness: RecentWitness) -> Option<RecentWitness> {
        self.newest.lock().expect(NO_PANIC).replace(witness)
    }

    /// The witness of the newest block, if it is this one.
    pub(crate) fn newest(&self, hash: &B256) -> Option<RecentWitness> {
        self.newest.lock().expect(NO_PANIC).clone().filter(|witness| witness.block_hash == *hash)
    }

    /// The witness of a block: the newest, or one that becomes the one asked for last.
    pub(crate) fn entry(&self, hash: &B256) -> RecentWitness {
        if let Some(newest) = self.newest(hash) {
            return newest;
        }
        let mut asked = self.asked.lock().expect(NO_PANIC);
        if let Some(asked) = asked.as_ref().filter(|asked| asked.block_hash == *hash) {
            return asked.clone();
        }
        let new = RecentWitness {
            block_hash: *hash,
            tries: Weak::new(),
            codes: None,
            assembled: Arc::default(),
        };
        let before = asked.replace(new.clone());
        drop(asked);
        before.into_iter().for_each(|before| self.recycle(before));
        new
    }

    /// The witness of a block, if it has been put together and is still whole.
    pub(crate) fn assembled(&self, hash: &B256) -> Option<Assembled> {
        let asked = || self.asked.lock().expect(NO_PANIC).clone();
        let asked = || asked().filter(|asked| asked.block_hash == *hash);
        self.newest(hash).or_else(asked)?.assembled()
    }

    /// Frees a witness, unless others share it, and keeps the room of its list.
    pub(crate) fn recycle(&self, witness: RecentWitness) {
        let Some(assembled) = Arc::into_inner(witness.assembled) else { return };
        let Some(assembled) = assembled.into_inner().expect(NO_PANIC) else { return };
        if let Some(Witness { mut state, .. }) = Arc::into_inner(assembled.witness) {
            state.clear();
            self.with_lister(|lister| lister.recycle(state));
        }
    }

    /// Lends room for a list of nodes.
    pub(crate) fn with_lister<T>(&self, list: impl FnOnce(&mut Lister) -> T) -> T {
        let mut lister = self.listers.lock().expect(NO_PANIC).pop().unwrap_or_default();
        let listed = list(&mut lister);
        let mut listers = self.listers.lock().expect(NO_PANIC);
        if listers.len() < LISTERS {
            listers.push(lister);
        }
        listed
    }

    /// The nodes of a block's witness, if they are here.
    pub(crate) fn nodes(&self, hash: &B256) -> Option<Arc<NodeList>> {
        let nodes = self.ring().nodes.get(hash).cloned();
        let count = if nodes.is_some() { &self.hits } else { &self.misses };
        count.fetch_add(1, Ordering::Relaxed);
        nodes
    }

    /// How the memory of nodes is used.
    pub(crate) fn stats(&self) -> CacheStats {
        CacheStats {
            hits: self.hits.load(Ordering::Relaxed),
            misses: self.misses.load(Ordering::Relaxed),
            bytes: self.ring().bytes as u64,
            most_bytes: self.limit_bytes as u64,
        }
    }

    /// Copies the nodes of a block's witness out of the block's tries, or out of the witness where
    /// that has been put together.
    pub(crate) fn keep(&self, hash: B256, tries: &Arc<Tries>) {
        if self.limit_bytes == 0 {
            return;
        }
        let assembled = self.assembled(&hash);
        let bytes = match &assembled {
            Some(assembled) => assembled.witness.state.content_bytes(),
            None => tries.witness_size().1,
        };
        if bytes > self.limit_bytes {
            return;
        }
        // A new witness never comes on top of all that there may be.
        drop(self.make_room(bytes));
        let nodes = match assembled {
            Some(assembled) => assembled.witness.state.compact(PIECE_BYTES),
            None => self.with_lister(|lister| {
                let listed = tries.witness(lister, 1, &run_serially);
                let nodes = listed.compact(PIECE_BYTES);
                lister.recycle(listed);
                nodes
            }),
        };
        self.insert(hash, nodes);
    }

    /// Evicts the oldest until so many bytes more are within the limit. The caller drops them when
    /// the lock is free.
    fn make_room(&self, bytes: usize) -> Vec<Arc<NodeList>> {
        let mut evicted = Vec::new();
        let mut ring = self.ring();
        while ring.bytes + bytes > self.limit_bytes {
            let Some(oldest) = ring.order.pop_front() else { break };
            let nodes = ring.nodes.remove(&oldest).expect("each in the order is there");
            ring.bytes -= bytes_of(&nodes);
            evicted.push(nodes);
        }
        evicted
    }

    fn insert(&self, hash: B256, nodes: NodeList) {
        let bytes = bytes_of(&nodes);
        if bytes > self.limit_bytes {
            return;
        }
        // The costs of the pieces are new, and another block may have been kept meanwhile.
        drop(self.make_room(bytes));
        let mut ring = self.ring();
        if ring.nodes.insert(hash, Arc::new(nodes)).is_none() {
            ring.order.push_back(hash);
            ring.bytes += bytes;
        }
    }
}

/// About the bytes that nodes take in memory.
fn bytes_of(nodes: &NodeList) -> usize {
    let costs = nodes.len() * NODE_COSTS_BYTES + nodes.pieces_count() * PIECE_COSTS_BYTES;
    size_of::<NodeList>() + nodes.content_bytes() + costs
}

#[cfg(test)]
mod tests;
