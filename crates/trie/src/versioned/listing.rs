//! Listing the nodes of a witness in canonical order.

use super::{
    NodeAddress, Records, captured,
    overlay::Overlay,
    record,
    record_arena::RecordArena,
    unit::{WorkUnit, run_all, run_serially},
};
use crate::{Error, NodeList, list::NodeSpan};
use alloy_primitives::{Bytes, bytes};
use std::{iter, mem, ops::RangeInclusive};

/// Lists the nodes of witnesses, one witness after the other. It keeps its buffers, since fresh
/// memory takes longer than the listing itself.
#[derive(Debug, Default)]
pub struct Lister {
    found: UnsortedNodes,
    /// The sort buffer of each thread.
    rooms: Vec<Vec<SortKey>>,
    /// The list of each thread but the first.
    listed: Vec<Vec<NodeSpan>>,
    /// A buffer for the next list.
    spare: Vec<NodeSpan>,
}

/// The nodes to list, unsorted and with duplicates.
#[derive(Debug, Default)]
struct UnsortedNodes {
    spans: Vec<NodeSpan>,
    /// The sort key of each node, with its index in `spans`.
    keys: Vec<SortKey>,
    /// The bits of a [`SortKey`] that are an index.
    index_mask: u64,
}

/// A sort key: the high bits of [`captured::key`], and the index of the node in as many low bits as
/// it takes to number all nodes.
type SortKey = u64;

impl UnsortedNodes {
    /// Clears the list and reserves memory for `count` nodes, which are all that will be added.
    fn clear(&mut self, count: usize) {
        self.spans.clear();
        self.keys.clear();
        self.spans.reserve(count);
        self.keys.reserve(count);
        self.index_mask = count.next_power_of_two() as u64 - 1;
    }

    fn push(&mut self, key: u64, place: NodeSpan) {
        self.keys.push(key & !self.index_mask | self.spans.len() as u64);
        self.spans.push(place);
    }

    fn place(&self, node: SortKey) -> &NodeSpan {
        &self.spans[(node & self.index_mask) as usize]
    }

    fn rlp<'a>(&self, pieces: &[&'a [u8]], node: SortKey) -> &'a [u8] {
        let NodeSpan { start, piece, len } = self.place(node);
        &pieces[*piece as usize][*start..][..*len as usize]
    }

    /// Whether two nodes have the same key, the index aside.
    fn are_alike(&self, one: SortKey, other: SortKey) -> bool {
        (one ^ other) <= self.index_mask
    }

    /// The ranges of keys of `count` consecutive parts, each with about as many nodes.
    fn parts(&self, count: usize) -> Vec<RangeInclusive<SortKey>> {
        if count == 1 {
            return vec![0..=SortKey::MAX];
        }
        let step = (self.keys.len() / (count * SAMPLES)).max(1);
        let mut samples: Vec<_> = self.keys.iter().skip(step / 2).step_by(step).copied().collect();
        samples.sort_unstable();
        let mut parts = Vec::with_capacity(count);
        let mut first = 0;
        for index in 1..count {
            let last = samples.get(index * samples.len() / count).copied().unwrap_or_default();
            // Nodes with the same key are in one part.
            let last = last | self.index_mask;
            // An empty part is left out.
            if last >= first && last < SortKey::MAX {
                parts.push(first..=last);
                first = last + 1;
            }
        }
        parts.push(first..=SortKey::MAX);
        parts
    }

    /// Appends the nodes with these keys, about `share` of them, to `listed`, sorted and without
    /// duplicates.
    fn list(
        &self,
        pieces: &[&[u8]],
        keys: &RangeInclusive<SortKey>,
        share: usize,
        room: &mut Vec<SortKey>,
        listed: &mut Vec<NodeSpan>,
    ) {
        let nodes = self.sorted(pieces, keys, share, room);
        listed.reserve(nodes.len());
        let mut last: Option<SortKey> = None;
        for &node in nodes {
            let rlp = |node| self.rlp(pieces, node);
            let is_twin = |last| self.are_alike(last, node) && rlp(last) == rlp(node);
            if !last.replace(node).is_some_and(is_twin) {
                listed.push(*self.place(node));
            }
        }
    }

    /// The nodes with these keys, about `share` of them, sorted.
    fn sorted<'a>(
        &self,
        pieces: &[&[u8]],
        keys: &RangeInclusive<SortKey>,
        share: usize,
        room: &'a mut Vec<SortKey>,
    ) -> &'a [SortKey] {
        // A branch on the range would be mispredicted, so each key is written, and overwritten by
        // the next one if it is out of range.
        room.resize(room.len().max(share + share / 8 + 1), 0);
        let mut count = 0;
        for key in &self.keys {
            if count == room.len() {
                room.resize(2 * count, 0);
            }
            room[count] = *key;
            count += usize::from(keys.contains(key));
        }
        let nodes = &mut room[..count];
        nodes.sort_unstable();
        let are_alike = |one: &SortKey, other: &SortKey| self.are_alike(*one, *other);
        for alike in nodes.chunk_by_mut(are_alike).filter(|alike| alike.len() > 1) {
            alike.sort_unstable_by_key(|node| self.rlp(pieces, *node));
        }
        nodes
    }
}

/// The number of nodes sampled for each part to find the bounds of parts.
const SAMPLES: usize = 64;

impl Lister {
    /// Takes back a list that is no longer needed, to reuse its memory.
    pub fn recycle(&mut self, nodes: NodeList) {
        let mut spans = nodes.into_spans();
        spans.clear();
        if (self.spare.capacity()..=KEPT_NODES).contains(&spans.capacity()) {
            self.spare = spans;
        }
    }

    /// Copies a list, into the memory of a recycled one if there is one. The nodes are shared.
    pub fn copy(&mut self, nodes: &NodeList) -> NodeList {
        let mut copy = NodeList::new(Vec::new(), mem::take(&mut self.spare));
        copy.clone_from(nodes);
        copy
    }

    /// Lists the nodes captured in overlays, and `roots` that are in no overlay, on at most
    /// `threads` threads. `owner` returns a piece of an overlay, by their numbers.
    pub(crate) fn list_captured(
        &mut self,
        overlays: &[&Overlay],
        roots: &[&[u8]],
        threads: usize,
        run: &dyn Fn(&mut [WorkUnit<'_>]),
        owner: impl Fn(usize, usize) -> bytes::Bytes,
    ) -> NodeList {
        let captured: usize = overlays.iter().map(|overlay| overlay.to_list.len()).sum();
        let count = captured + roots.len();
        if count <= FEW_NODES {
            return list_few(overlays, roots, count);
        }
        self.found.clear(count);
        let mut pieces = Vec::new();
        for (number, overlay) in overlays.iter().enumerate() {
            let first = pieces.len();
            let numbers = 0..overlay.arena.pieces().len();
            pieces.extend(numbers.map(|piece| Bytes::from(owner(number, piece))));
            for node in &overlay.to_list {
                let (piece, start) = RecordArena::position(node.start as usize);
                let piece = (first + piece) as u32;
                self.found.push(node.key, NodeSpan { start, piece, len: node.len.into() });
            }
        }
        let mut copied = Vec::new();
        for rlp in roots {
            let (start, piece) = (copied.len(), pieces.len() as u32);
            self.found.push(captured::key(rlp), NodeSpan { start, piece, len: rlp.len() as u32 });
            copied.extend_from_slice(rlp);
        }
        pieces.push(copied.into());
        self.list_found(pieces, threads, run)
    }

    /// The nodes with these addresses as a witness has them: each once, in lexicographic order.
    ///
    /// # Errors
    /// [`Error::Record`] and [`Error::MalformedRecord`].
    pub fn list<R: Records + ?Sized>(
        &mut self,
        records: &R,
        addresses: &[NodeAddress],
    ) -> Result<NodeList, Error> {
        let mut pieces = Vec::new();
        self.found.clear(addresses.len());
        for &address in addresses {
            let copied = records.look(address, |record| {
                let rlp = record::parse(record)?.rlp();
                self.found.push(captured::key(rlp), copy(rlp, &mut pieces));
                Ok(())
            })?;
            copied.map_err(|reason| Error::MalformedRecord { address, reason })?;
        }
        let pieces = pieces.into_iter().map(Bytes::from).collect();
        Ok(self.list_found(pieces, 1, &run_serially))
    }

    /// Lists the nodes found, on at most `threads` threads.
    fn list_found(
        &mut self,
        pieces: Vec<Bytes>,
        threads: usize,
        run: &dyn Fn(&mut [WorkUnit<'_>]),
    ) -> NodeList {
        let Self { found, rooms, listed, spare } = self;
        let slices: Vec<&[u8]> = pieces.iter().map(|piece| &piece[..]).collect();
        let count = found.keys.len();
        let parts = found.parts((count / UNIT_NODES).min(threads).max(1));
        let share = count.div_ceil(parts.len());
        rooms.resize_with(parts.len(), Vec::new);
        listed.resize_with(parts.len() - 1, Vec::new);
        let mut all = mem::take(spare);
        let mut units = Vec::with_capacity(parts.len());
        let lists = iter::once(&mut all).chain(&mut *listed);
        for ((keys, room), listed) in parts.iter().zip(&mut *rooms).zip(lists) {
            let (found, slices) = (&*found, &slices);
            units.push(WorkUnit::new(share, move || found.list(slices, keys, share, room, listed)));
        }
        run_all(&mut units, run);
        drop(units);
        listed.iter_mut().for_each(|part| all.append(part));
        let most = KEPT_NODES / parts.len();
        rooms.iter_mut().for_each(|room| {
            room.truncate(most);
            room.shrink_to(most);
        });
        listed.iter_mut().for_each(|part| keep(part, most));
        keep(&mut found.spans, KEPT_NODES);
        keep(&mut found.keys, KEPT_NODES);
        NodeList::new(pieces, all)
    }
}

/// Lists few nodes: copies them by insertion sort, which takes the fewest instructions; the code is
/// not in the processor's cache when a small block comes.
fn list_few(overlays: &[&Overlay], roots: &[&[u8]], count: usize) -> NodeList {
    let mut nodes: Vec<(u64, &[u8])> = Vec::with_capacity(count);
    let captured = overlays.iter().flat_map(|overlay| {
        overlay.to_list.iter().map(|node| (node.key, node.rlp(&overlay.arena)))
    });
    for node in captured.chain(roots.iter().map(|rlp| (captured::key(rlp), *rlp))) {
        if let Err(place) = nodes.binary_search(&node) {
            nodes.insert(place, node);
        }
    }
    let mut pieces = Vec::new();
    let spans = nodes.into_iter().map(|(_, rlp)| copy(rlp, &mut pieces)).collect();
    NodeList::new(pieces.into_iter().map(Bytes::from).collect(), spans)
}

/// Copies a node behind the last one, or into a new piece, and returns its span.
fn copy(rlp: &[u8], pieces: &mut Vec<Vec<u8>>) -> NodeSpan {
    if pieces.last().is_none_or(|piece| piece.len() + rlp.len() > PIECE_BYTES) {
        pieces.push(Vec::with_capacity(PIECE_BYTES.max(rlp.len())));
    }
    let number = pieces.len() - 1;
    let start = pieces[number].len();
    pieces[number].extend_from_slice(rlp);
    NodeSpan { start, piece: number as u32, len: rlp.len() as u32 }
}

/// Bytes of a piece: a size that the allocator reuses. Pieces of 256 KiB were mostly fresh memory,
/// which the system had to clear.
const PIECE_BYTES: usize = 16 << 10;

/// The most nodes that are listed by insertion sort: an insertion moves at most 3 KiB. Fewer in
/// tests.
const FEW_NODES: usize = if cfg!(test) { 8 } else { 128 };

/// The nodes of a witness that are worth a work unit: about 50 µs. Fewer in tests.
const UNIT_NODES: usize = if cfg!(test) { 4 } else { 2_048 };

/// Clears a list, and keeps memory for at most `most` entries.
fn keep<T>(list: &mut Vec<T>, most: usize) {
    list.clear();
    list.shrink_to(most);
}

/// The nodes for which buffers are kept: at most 1 MiB for each kind of list, all threads together.
/// Most witnesses have fewer.
const KEPT_NODES: usize = 1 << 16;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::AccountInfo;
    use crate::bulk::StateBuilder;
    use crate::versioned::MemoryRecords;
    use alloy_primitives::{B256, KECCAK256_EMPTY, U256};
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};
    use std::collections::BTreeSet;

    /// Many nodes, of which many are the same in two places, and many begin alike.
    #[test]
    fn nodes_are_listed_once_and_in_order() {
        let rng = &mut StdRng::seed_from_u64(testing::seed());
        let mut records = MemoryRecords::default();
        let mut builder = StateBuilder::new(&mut records);
        let slots: BTreeSet<B256> = (0..500).map(|_| rng.random::<[u8; 32]>().into()).collect();
        let info = AccountInfo { nonce: 1, balance: U256::ZERO, code_hash: KECCAK256_EMPTY };
        for account in 1..5 {
            builder.account(B256::repeat_byte(account), info).unwrap();
            for slot in slots.iter().filter(|slot| slot[0] & account == 0) {
                builder.slot(*slot, U256::ONE).unwrap();
            }
        }
        builder.finish();
        let first = NodeAddress::NONE.offset() + 1;
        let mut addresses: Vec<_> = (first..records.end().offset()).map(NodeAddress::new).collect();
        let mut lister = Lister::default();
        let mut twins_count = 0;
        while !addresses.is_empty() {
            let mut expected = BTreeSet::new();
            for address in &addresses {
                let record = records.record(*address).unwrap();
                expected.insert(Bytes::copy_from_slice(record::parse(&record).unwrap().rlp()));
            }
            twins_count += addresses.len() - expected.len();
            let expected: Vec<_> = expected.into_iter().collect();
            assert_eq!(lister.list(&records, &addresses).unwrap(), expected);
            addresses.retain(|_| rng.random_ratio(2, 3));
        }
        assert!(twins_count > 100, "{twins_count}");
    }
}
