//! The nodes of the newest witnesses, in memory.
//!
//! Right after its block a witness is put together from the block's tries; later on, from hundreds
//! of nodes that lie all over the memory, or on the disk. Between the two its nodes are here, one
//! behind the other in the order that they are sent in.

use crate::block::live::Tries;
use alloy_primitives::map::B256Map;
use alloy_primitives::{B256, Bytes};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};
use trie::NodeList;
use trie::versioned::{Lister, run_serially};

/// Nodes of witnesses by the hash of their block, the newest, as far as a number of bytes goes.
#[derive(Debug)]
pub(crate) struct Ring {
    limit_bytes: usize,
    kept: Mutex<Kept>,
    /// Who lists a block's nodes holds it, which is one thread mostly.
    lister: Mutex<Lister>,
}

#[derive(Debug, Default)]
struct Kept {
    nodes: B256Map<Arc<Nodes>>,
    /// The first is the oldest.
    order: VecDeque<B256>,
    bytes: usize,
    /// As many as there ever were.
    most_bytes: usize,
}

/// The nodes of one witness.
#[derive(Debug)]
pub(crate) struct Nodes {
    /// No node is in two of them.
    pieces: Vec<Bytes>,
    /// Of each node, in order.
    lens: Vec<u32>,
}

/// Bytes of a piece: what the allocator gives out again soon, see `trie`'s lists.
const PIECE_BYTES: usize = 16 << 10;

/// Pieces that are copied without a pause: some 50 µs.
const PIECES_PER_PART: usize = 8;

/// What a piece takes besides its bytes: where it is, who holds it, and the end that no node went
/// into.
const PIECE_COSTS_BYTES: usize = 384;

impl Ring {
    pub(crate) fn new(limit_bytes: usize) -> Self {
        Self { limit_bytes, kept: Mutex::default(), lister: Mutex::default() }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().expect(NO_PANIC)
    }

    /// The nodes of a block's witness, if they are here.
    pub(crate) fn get(&self, hash: &B256) -> Option<Arc<Nodes>> {
        self.kept().nodes.get(hash).cloned()
    }

    /// Keeps the nodes of a block's witness, in their order, which its tries are asked for where
    /// nobody has listed them yet. Says by how many bytes there is more than ever before.
    ///
    /// It copies them in parts with a `pause` in between.
    pub(crate) fn keep(
        &self,
        hash: B256,
        tries: &Arc<Tries>,
        listed: Option<&NodeList>,
        pause: impl Fn(),
    ) -> usize {
        if self.limit_bytes == 0 {
            return 0;
        }
        let bytes = match listed {
            Some(listed) => listed.content_bytes(),
            None => tries.witness_size().1,
        };
        if bytes > self.limit_bytes {
            return 0;
        }
        // What is new never comes on top of all that there may be.
        for dropped in self.make_room(bytes) {
            drop(dropped);
            pause();
        }
        let nodes = match listed {
            Some(listed) => Nodes::copy(listed, &pause),
            None => {
                // Who has it may be a thread that everybody else goes before.
                let mut room = self.lister.try_lock();
                let mut new = Lister::default();
                let lister = room.as_deref_mut().unwrap_or(&mut new);
                let listed = tries.witness(lister, 1, &run_serially);
                let nodes = Nodes::copy(&listed, &pause);
                lister.recycle(listed);
                nodes
            }
        };
        self.insert(hash, nodes)
    }

    /// Lets go of the oldest until so many bytes more are within the limit. Who drops them does so
    /// when nobody waits for the lock.
    fn make_room(&self, bytes: usize) -> Vec<Arc<Nodes>> {
        let mut dropped = Vec::new();
        let mut kept = self.kept();
        while kept.bytes + bytes > self.limit_bytes {
            let Some(oldest) = kept.order.pop_front() else { break };
            let nodes = kept.nodes.remove(&oldest).expect("each in the order is there");
            kept.bytes -= nodes.bytes();
            dropped.push(nodes);
        }
        dropped
    }

    fn insert(&self, hash: B256, nodes: Nodes) -> usize {
        let bytes = nodes.bytes();
        if bytes > self.limit_bytes {
            return 0;
        }
        // That counts more than the nodes, and another block may have been kept meanwhile.
        drop(self.make_room(bytes));
        let mut kept = self.kept();
        if kept.nodes.insert(hash, Arc::new(nodes)).is_none() {
            kept.order.push_back(hash);
            kept.bytes += bytes;
        }
        let before = kept.most_bytes;
        kept.most_bytes = before.max(kept.bytes);
        kept.most_bytes - before
    }
}

impl Nodes {
    fn copy(listed: &NodeList, pause: impl Fn()) -> Self {
        let mut left = listed.content_bytes();
        let mut pieces: Vec<Vec<u8>> = Vec::with_capacity(left / PIECE_BYTES + 2);
        for node in listed {
            if pieces.last().is_none_or(|piece| piece.len() + node.len() > piece.capacity()) {
                if !pieces.is_empty() && pieces.len().is_multiple_of(PIECES_PER_PART) {
                    pause();
                }
                pieces.push(Vec::with_capacity(left.min(PIECE_BYTES).max(node.len())));
            }
            pieces.last_mut().expect("there is one").extend_from_slice(node);
            left -= node.len();
        }
        let lens = listed.iter().map(|node| node.len() as u32).collect();
        Self { pieces: pieces.into_iter().map(Bytes::from).collect(), lens }
    }

    /// Adds the nodes to a list that has room for them.
    pub(crate) fn list(&self, mut room: NodeList) -> NodeList {
        room.reserve(self.lens.len());
        let mut pieces = self.pieces.iter();
        let mut rest: &[u8] = &[];
        for len in self.lens.iter().map(|len| *len as usize) {
            if len > rest.len() {
                let piece = pieces.next().expect("each node is in a piece");
                room.push_piece(piece.clone());
                rest = piece;
            }
            let (node, others) = rest.split_at(len);
            room.push_slice(node);
            rest = others;
        }
        room
    }

    /// About the bytes that it holds in memory.
    fn bytes(&self) -> usize {
        let pieces = self.pieces.iter().map(|piece| piece.len() + PIECE_COSTS_BYTES);
        size_of::<Self>() + self.lens.len() * size_of::<u32>() + pieces.sum::<usize>()
    }
}

const NO_PANIC: &str = "no thread panics while it holds the lock";

#[cfg(test)]
mod tests {
    use super::*;
    use alloy_primitives::U256;
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    fn some(rng: &mut StdRng) -> NodeList {
        let count = rng.random_range(0..200);
        // As long as nodes are, none at all, and longer than a piece.
        let len = |rng: &mut StdRng| match rng.random_range(0..100) {
            0 => 0,
            1 => PIECE_BYTES + rng.random_range(0..2),
            _ => rng.random_range(1..600),
        };
        let node = |_| Bytes::from_iter((0..len(rng)).map(|_| rng.random::<u8>()));
        (0..count).map(node).collect()
    }

    #[test]
    fn the_newest_are_there_as_they_were_and_no_more_than_the_limit() {
        let seed = rand::random();
        println!("seed {seed}");
        let rng = &mut StdRng::seed_from_u64(seed);
        let ring = Ring::new(1 << 20);
        let (mut kept, mut bytes) = (Vec::new(), 0);
        for number in 0..300u64 {
            let (hash, listed) = (B256::from(U256::from(number)), some(rng));
            let before = ring.kept().bytes;
            let grown_bytes = ring.insert(hash, Nodes::copy(&listed, || ()));
            bytes += grown_bytes;
            assert!(grown_bytes == 0 || ring.kept().bytes > before);
            kept.push((hash, listed));
        }
        let there: Vec<_> = kept.iter().map(|(hash, _)| ring.get(hash)).collect();
        let first = there.iter().position(Option::is_some).unwrap();
        assert!(first > 0 && there[first..].iter().all(Option::is_some));
        let mut there_bytes = 0;
        for ((_, listed), nodes) in kept[first..].iter().zip(there[first..].iter().flatten()) {
            assert_eq!(nodes.list(NodeList::default()), *listed);
            there_bytes += nodes.bytes();
        }
        assert_eq!(there_bytes, ring.kept().bytes);
        assert_eq!(bytes, ring.kept().most_bytes);
        let next_bytes = Nodes::copy(&kept[first - 1].1, || ()).bytes();
        assert!(there_bytes <= bytes && bytes <= 1 << 20 && there_bytes + next_bytes > 1 << 20);
    }

    #[test]
    fn what_is_there_is_not_counted_twice_and_what_is_too_large_drives_out_nothing() {
        let ring = Ring::new(1_000);
        let nodes = |len: usize| Nodes::copy(&vec![Bytes::from(vec![7; len])].into(), || ());
        let (one, other) = (B256::with_last_byte(1), B256::with_last_byte(2));
        let grown_bytes = ring.insert(one, nodes(100));
        assert_eq!((grown_bytes, ring.insert(one, nodes(100))), (ring.kept().bytes, 0));
        assert_eq!(ring.insert(other, nodes(2_000)), 0);
        assert!(ring.get(&one).is_some() && ring.get(&other).is_none());
        assert_eq!(ring.kept().order.len(), 1);
    }
}
