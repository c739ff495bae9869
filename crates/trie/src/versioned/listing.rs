//! The nodes of a witness, listed in order.

use super::{
    NodeAddress, Records,
    base::Base,
    captured,
    overlay::Overlay,
    record,
    unit::{Unit, run_all, run_serially},
};
use crate::{Error, NodeList, keccak::prefetch, list::Place};
use alloy_primitives::{Bytes, bytes};
use std::{iter, mem, ops::RangeInclusive};

/// Lists the nodes of witnesses, one after the other. It keeps its room for the next one: memory
/// that is used for the first time takes longer than the rest.
#[derive(Debug, Default)]
pub struct Lister {
    found: Found,
    /// Where each thread sorts.
    rooms: Vec<Vec<Sorted>>,
    /// What each thread lists, but for the first.
    listed: Vec<Vec<Place>>,
    /// For the next witness.
    spare: Vec<Place>,
}

/// Nodes that are to be listed, in no order; a node that is in two places is there twice.
#[derive(Debug, Default)]
struct Found {
    places: Vec<Place>,
    /// Of each the key, with its index in `places`.
    keys: Vec<Sorted>,
    /// The bits of a [`Sorted`] that are an index.
    index_mask: u64,
}

/// A node that is sorted, in little: the high bits of its key ([`captured::key`]), and an index in
/// the others, in as few bits as it takes to number the nodes.
type Sorted = u64;

impl Found {
    /// Makes room for so many, which are all that there will be.
    fn clear(&mut self, count: usize) {
        self.places.clear();
        self.keys.clear();
        self.places.reserve(count);
        self.keys.reserve(count);
        self.index_mask = count.next_power_of_two() as u64 - 1;
    }

    fn push(&mut self, key: u64, place: Place) {
        self.keys.push(key & !self.index_mask | self.places.len() as u64);
        self.places.push(place);
    }

    fn place(&self, node: Sorted) -> &Place {
        &self.places[(node & self.index_mask) as usize]
    }

    fn rlp<'a>(&self, pieces: &[&'a [u8]], node: Sorted) -> &'a [u8] {
        let Place { start, piece, len } = self.place(node);
        &pieces[*piece as usize][*start..][..*len as usize]
    }

    /// Whether the keys of two do not tell which comes first.
    fn are_alike(&self, one: Sorted, other: Sorted) -> bool {
        (one ^ other) <= self.index_mask
    }

    /// The keys of so many parts that follow each other, each of about as many nodes.
    fn parts(&self, count: usize) -> Vec<RangeInclusive<Sorted>> {
        if count == 1 {
            return vec![0..=Sorted::MAX];
        }
        let step = (self.keys.len() / (count * SAMPLES)).max(1);
        let mut samples: Vec<_> = self.keys.iter().skip(step / 2).step_by(step).copied().collect();
        samples.sort_unstable();
        let mut parts = Vec::with_capacity(count);
        let mut first = 0;
        for index in 1..count {
            let last = samples.get(index * samples.len() / count).copied().unwrap_or_default();
            // Those that are alike stay together.
            let last = last | self.index_mask;
            // Else the part has nothing that is not in the one before.
            if last >= first && last < Sorted::MAX {
                parts.push(first..=last);
                first = last + 1;
            }
        }
        parts.push(first..=Sorted::MAX);
        parts
    }

    /// Lists the nodes with these keys, about `share`, behind what is in `listed`, in order and
    /// each once.
    fn list(
        &self,
        pieces: &[&[u8]],
        keys: &RangeInclusive<Sorted>,
        share: usize,
        room: &mut Vec<Sorted>,
        listed: &mut Vec<Place>,
    ) {
        let nodes = self.sorted(pieces, keys, share, room);
        listed.reserve(nodes.len());
        let mut last: Option<Sorted> = None;
        for &node in nodes {
            let rlp = |node| self.rlp(pieces, node);
            let is_twin = |last| self.are_alike(last, node) && rlp(last) == rlp(node);
            if !last.replace(node).is_some_and(is_twin) {
                listed.push(*self.place(node));
            }
        }
    }

    /// Those with these keys, about `share`, in order.
    fn sorted<'a>(
        &self,
        pieces: &[&[u8]],
        keys: &RangeInclusive<Sorted>,
        share: usize,
        room: &'a mut Vec<Sorted>,
    ) -> &'a [Sorted] {
        // Whether one belongs here is anyone's guess, the processor's too: all are written, and
        // those that do not belong here written over.
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
        let are_alike = |one: &Sorted, other: &Sorted| self.are_alike(*one, *other);
        for alike in nodes.chunk_by(are_alike).filter(|alike| alike.len() > 1) {
            alike.iter().for_each(|node| prefetch_start(self.rlp(pieces, *node)));
        }
        for alike in nodes.chunk_by_mut(are_alike).filter(|alike| alike.len() > 1) {
            alike.sort_unstable_by_key(|node| self.rlp(pieces, *node));
        }
        nodes
    }
}

/// How many nodes are looked at, for each part, to find where parts begin.
const SAMPLES: usize = 64;

impl Lister {
    /// Takes back the list of a witness that nobody needs any more.
    pub fn recycle(&mut self, nodes: NodeList) {
        let mut places = nodes.into_places();
        places.clear();
        if (self.spare.capacity()..=KEPT_NODES).contains(&places.capacity()) {
            self.spare = places;
        }
    }

    /// An empty list, with room where there is some.
    pub fn room(&mut self) -> NodeList {
        NodeList::new(Vec::new(), mem::take(&mut self.spare))
    }

    /// Lists what was captured in overlays, and `roots` that stand outside of them, by up to so
    /// many threads. `owner` gives an overlay's piece, by their numbers.
    pub(crate) fn list_captured(
        &mut self,
        overlays: &[&Overlay],
        roots: &[&[u8]],
        threads: usize,
        run: &dyn Fn(&mut [Unit<'_>]),
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
            let numbers = 0..overlay.base.pieces().len();
            pieces.extend(numbers.map(|piece| Bytes::from(owner(number, piece))));
            for node in &overlay.to_list {
                let (piece, start) = Base::place(node.start as usize);
                let piece = (first + piece) as u32;
                self.found.push(node.key, Place { start, piece, len: node.len.into() });
            }
        }
        let mut copied = Vec::new();
        for rlp in roots {
            let (start, piece) = (copied.len(), pieces.len() as u32);
            self.found.push(captured::key(rlp), Place { start, piece, len: rlp.len() as u32 });
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
        for addresses in addresses.chunks(FETCHED_AT_ONCE) {
            fetch(records, addresses);
            for &address in addresses {
                let copied = records.look(address, |record| {
                    let rlp = record::parse(record)?.rlp();
                    self.found.push(captured::key(rlp), copy(rlp, &mut pieces));
                    Ok(())
                })?;
                copied.map_err(|reason| Error::MalformedRecord { address, reason })?;
            }
        }
        let pieces = pieces.into_iter().map(Bytes::from).collect();
        Ok(self.list_found(pieces, 1, &run_serially))
    }

    /// Lists what was found, by up to so many threads.
    fn list_found(
        &mut self,
        pieces: Vec<Bytes>,
        threads: usize,
        run: &dyn Fn(&mut [Unit<'_>]),
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
            units.push(Unit::new(share, move || found.list(slices, keys, share, room, listed)));
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
        keep(&mut found.places, KEPT_NODES);
        keep(&mut found.keys, KEPT_NODES);
        NodeList::new(pieces, all)
    }
}

/// Lists few nodes: copied together, in order. Each is put in its place among those before it,
/// which takes the fewest instructions: those of a small block are in no cache when it comes.
fn list_few(overlays: &[&Overlay], roots: &[&[u8]], count: usize) -> NodeList {
    let mut nodes: Vec<(u64, &[u8])> = Vec::with_capacity(count);
    let captured = overlays
        .iter()
        .flat_map(|overlay| overlay.to_list.iter().map(|node| (node.key, node.rlp(&overlay.base))));
    for node in captured.chain(roots.iter().map(|rlp| (captured::key(rlp), *rlp))) {
        if let Err(place) = nodes.binary_search(&node) {
            nodes.insert(place, node);
        }
    }
    let mut pieces = Vec::new();
    let places = nodes.into_iter().map(|(_, rlp)| copy(rlp, &mut pieces)).collect();
    NodeList::new(pieces.into_iter().map(Bytes::from).collect(), places)
}

/// Copies a node behind the last one, or into a new piece, and says where it lies.
fn copy(rlp: &[u8], pieces: &mut Vec<Vec<u8>>) -> Place {
    if pieces.last().is_none_or(|piece| piece.len() + rlp.len() > PIECE_BYTES) {
        pieces.push(Vec::with_capacity(PIECE_BYTES.max(rlp.len())));
    }
    let number = pieces.len() - 1;
    let start = pieces[number].len();
    pieces[number].extend_from_slice(rlp);
    Place { start, piece: number as u32, len: rlp.len() as u32 }
}

/// What the allocator gives out again soon: memory of 256 KiB was new to the system in most calls,
/// and having it cleared took longer than all else.
const PIECE_BYTES: usize = 16 << 10;

/// So many nodes are listed without anything that pays for many alone: to put one in its place
/// moves at most 3 KiB. Tests have few.
const FEW_NODES: usize = if cfg!(test) { 8 } else { 128 };

/// Nodes of a witness that are worth a unit of their own to be listed: some 50 µs. Tests have few.
const UNIT_NODES: usize = if cfg!(test) { 4 } else { 2_048 };

/// Forgets what is in a list, and what room it has for more than so many.
fn keep<T>(list: &mut Vec<T>, most: usize) {
    list.clear();
    list.shrink_to(most);
}

/// Room is kept for so many nodes, of each kind of list at most 1 MiB, all threads together: more
/// than most witnesses have.
const KEPT_NODES: usize = 1 << 16;

/// Has records fetched into the processor's cache side by side: where each is, then most of it. Who
/// reads them one after the other waits for the memory twice for each.
fn fetch<R: Records + ?Sized>(records: &R, addresses: &[NodeAddress]) {
    addresses.iter().for_each(|address| records.prefetch(*address));
    // What is not at hand is read when its turn comes.
    for address in addresses {
        let _ = records.peek(*address, prefetch_start);
    }
}

fn prefetch_start(bytes: &[u8]) {
    prefetch(&bytes[..bytes.len().min(FETCHED_BYTES)]);
}

/// Bytes of a record that are fetched: of longer ones the processor sees by then that they are read
/// on.
const FETCHED_BYTES: usize = 320;

/// How many records are fetched side by side: they stay in the first level of the caches until they
/// are copied.
const FETCHED_AT_ONCE: usize = 32;

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
        let seed = rand::random();
        println!("seed {seed}");
        let rng = &mut StdRng::seed_from_u64(seed);
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
