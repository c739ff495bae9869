//! The nodes of a witness, listed in order.

use super::{
    NodeAddress, Records,
    base::Base,
    overlay::Overlay,
    record,
    unit::{Unit, run_all},
};
use crate::{Error, keccak::prefetch};
use alloy_primitives::{Bytes, bytes};
use std::{cmp::Ordering, iter, mem, ops::Range};

/// What a witness may be listed from.
#[derive(Debug)]
pub(crate) struct Nodes<'a> {
    overlays: Vec<&'a Overlay>,
    /// RLP of nodes that stand outside of the overlays.
    roots: Vec<&'a [u8]>,
}

/// A node of [`Nodes`], in little, as it is moved about to be sorted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Listed {
    /// The first bytes of its RLP: where they differ, nodes are in order by them, and sorting need
    /// not look at nodes all over the memory.
    prefix: u128,
    /// The index of its overlay, or [`ROOTS`].
    overlay: u32,
    /// Where its RLP begins in the overlay's base; the index of a root.
    start: u32,
    len: u32,
}

const ROOTS: u32 = u32::MAX;

/// How many nodes ahead their RLP is fetched into the processor's cache.
const FETCHED_AHEAD: usize = 16;

impl<'a> Nodes<'a> {
    pub(crate) fn new(overlays: Vec<&'a Overlay>, roots: Vec<&'a [u8]>) -> Self {
        Self { overlays, roots }
    }

    /// How many nodes the overlays have, whatever has become of them.
    pub(crate) fn count(&self) -> usize {
        self.overlays.iter().map(|overlay| overlay.nodes_count()).sum()
    }

    fn rlp(&self, node: &Listed) -> &'a [u8] {
        match self.overlays.get(node.overlay as usize) {
            Some(overlay) => overlay.base.bytes(node.start as usize, node.len as usize),
            None => self.roots[node.start as usize],
        }
    }

    fn order(&self, one: &Listed, other: &Listed) -> Ordering {
        one.prefix.cmp(&other.prefix).then_with(|| self.rlp(one).cmp(self.rlp(other)))
    }

    /// Lists those of the overlays' nodes in a range that belong to the witness, in order.
    fn list(&self, range: Range<usize>, listed: &mut Vec<Listed>) {
        listed.clear();
        listed.reserve(range.len());
        let mut start = 0;
        for (index, overlay) in (0..).zip(&self.overlays) {
            let end = start + overlay.nodes_count();
            let within = range.start.clamp(start, end) - start..range.end.clamp(start, end) - start;
            listed.extend(overlay.captured_in(within).map(|origin| {
                let (start, len) = (origin.rlp_start(), origin.rlp_bytes() as u32);
                Listed { prefix: 0, overlay: index, start, len }
            }));
            start = end;
        }
        // Their RLP is all over the memory.
        for index in 0..listed.len() {
            if let Some(ahead) = listed.get(index + FETCHED_AHEAD) {
                prefetch(&self.rlp(ahead)[..1]);
            }
            listed[index].prefix = prefix(self.rlp(&listed[index]));
        }
        self.sort(listed);
    }

    /// Sorts by prefixes, which is fast as a comparison of numbers alone, and then what has the
    /// same one.
    fn sort(&self, listed: &mut [Listed]) {
        listed.sort_unstable_by_key(|node| node.prefix);
        for same in listed.chunk_by_mut(|one, other| one.prefix == other.prefix) {
            same.sort_unstable_by_key(|node| self.rlp(node));
        }
    }

    /// Lists the nodes outside of the overlays, in order.
    fn list_roots(&self, listed: &mut Vec<Listed>) {
        let root = |(start, rlp): (u32, &&[u8])| Listed {
            prefix: prefix(rlp),
            overlay: ROOTS,
            start,
            len: rlp.len() as u32,
        };
        listed.clear();
        listed.extend((0..).zip(&self.roots).map(root));
        self.sort(listed);
    }

    /// Parts lists into so many that follow each other, of about the same length: of each list one
    /// range. What is the same is in one part.
    fn part<'b>(&self, lists: &'b [Vec<Listed>], count: usize) -> Vec<Vec<&'b [Listed]>> {
        // Each list is drawn from all nodes, so one of them tells of the others.
        let longest = lists.iter().max_by_key(|list| list.len()).map_or(&[][..], |list| list);
        let mut left: Vec<&[Listed]> = lists.iter().map(|list| &list[..]).collect();
        let mut parts = Vec::with_capacity(count);
        for index in 1..count {
            let Some(pivot) = longest.get(index * longest.len() / count) else { break };
            let cut = |list: &mut &'b [Listed]| {
                let at = list.partition_point(|node| self.order(node, pivot).is_lt());
                let (before, after) = list.split_at(at);
                *list = after;
                before
            };
            parts.push(left.iter_mut().map(cut).collect());
        }
        parts.push(left);
        parts
    }

    /// Merges lists behind what is in `merged`, and makes each node a slice of the piece that it
    /// was loaded into, which `owner` gives by its overlay and its number there.
    fn merge(
        &self,
        mut lists: Vec<&[Listed]>,
        owner: impl Fn(usize, usize) -> bytes::Bytes,
        merged: &mut Vec<Bytes>,
    ) {
        let pieces = |overlay: &&Overlay| vec![None; overlay.base.pieces().len()];
        let mut owners: Vec<Vec<Option<bytes::Bytes>>> = self.overlays.iter().map(pieces).collect();
        let count: usize = lists.iter().map(|list| list.len()).sum();
        merged.reserve(count);
        let mut last: Option<&Listed> = None;
        lists.retain(|list| !list.is_empty());
        while let Some(place) = self.lowest(&lists) {
            let list = &mut lists[place];
            let (node, rest) = list.split_first().expect("empty ones are removed");
            *list = rest;
            if rest.is_empty() {
                lists.swap_remove(place);
            }
            if last.replace(node).is_some_and(|last| self.order(last, node).is_eq()) {
                continue;
            }
            let rlp = self.rlp(node);
            merged.push(match owners.get_mut(node.overlay as usize) {
                Some(owners) => {
                    let number = Base::piece(node.start as usize);
                    let owner =
                        owners[number].get_or_insert_with(|| owner(node.overlay as usize, number));
                    Bytes::from(owner.slice_ref(rlp))
                }
                None => Bytes::copy_from_slice(rlp),
            });
        }
    }

    /// The list whose first node comes first.
    fn lowest(&self, lists: &[&[Listed]]) -> Option<usize> {
        let first = |place: &usize| &lists[*place][0];
        (0..lists.len()).min_by(|one, other| self.order(first(one), first(other)))
    }
}

/// Lists the nodes of witnesses, one after the other. It keeps its room for the next one: memory
/// that is used for the first time takes longer than the rest.
#[derive(Debug, Default)]
pub struct Lister {
    copied: Vec<Copied>,
    /// What each thread lists, and the roots.
    lists: Vec<Vec<Listed>>,
    /// What each thread merges, but for the first.
    merged: Vec<Vec<Bytes>>,
    /// For the next witness.
    spare: Vec<Bytes>,
}

impl Lister {
    /// Takes back the list of a witness that nobody needs any more.
    pub fn recycle(&mut self, mut nodes: Vec<Bytes>) {
        nodes.clear();
        if (self.spare.capacity()..=KEPT_NODES).contains(&nodes.capacity()) {
            self.spare = nodes;
        }
    }

    /// An empty list, with room where there is some.
    pub fn room(&mut self) -> Vec<Bytes> {
        mem::take(&mut self.spare)
    }

    /// Lists nodes by up to so many threads, and makes them slices of pieces, see [`Nodes::merge`].
    pub(crate) fn merge(
        &mut self,
        nodes: &Nodes<'_>,
        threads: usize,
        run: &dyn Fn(&mut [Unit<'_>]),
        owner: &(dyn Fn(usize, usize) -> bytes::Bytes + Sync),
    ) -> Vec<Bytes> {
        let units_count = (nodes.count() / UNIT_NODES).min(threads).max(1);
        let share = nodes.count().div_ceil(units_count);
        let Self { lists, merged, spare, .. } = self;
        lists.resize_with(units_count + 1, Vec::new);
        let (roots, listed) = lists.split_last_mut().expect("there is a unit");
        let mut units = Vec::with_capacity(units_count);
        for (index, list) in listed.iter_mut().enumerate() {
            let range = index * share..(index + 1) * share;
            units.push(Unit::new(share, move || nodes.list(range, list)));
        }
        run_all(&mut units, run);
        drop(units);
        nodes.list_roots(roots);
        let parts = nodes.part(lists, units_count);
        let mut all = mem::take(spare);
        // It has room for all.
        all.reserve(lists.iter().map(Vec::len).sum());
        merged.resize_with(parts.len() - 1, Vec::new);
        let mut units = Vec::with_capacity(parts.len());
        for (part, merged) in parts.into_iter().zip(iter::once(&mut all).chain(&mut *merged)) {
            units.push(Unit::new(share, move || nodes.merge(part, owner, merged)));
        }
        run_all(&mut units, run);
        drop(units);
        merged.iter_mut().for_each(|part| all.append(part));
        let most = KEPT_NODES / units_count;
        lists.iter_mut().for_each(|list| keep(list, most));
        merged.iter_mut().for_each(|part| keep(part, most));
        all
    }

    /// The nodes with these addresses as a witness has them: each once, in lexicographic order.
    ///
    /// # Errors
    /// [`Error::Record`] and [`Error::MalformedRecord`].
    pub fn list<R: Records + ?Sized>(
        &mut self,
        records: &R,
        addresses: &[NodeAddress],
    ) -> Result<Vec<Bytes>, Error> {
        let Self { copied: nodes, spare, .. } = self;
        let mut pieces = Vec::new();
        nodes.clear();
        nodes.reserve(addresses.len());
        for addresses in addresses.chunks(FETCHED_AT_ONCE) {
            fetch(records, addresses);
            for &address in addresses {
                let copied = records.look(address, |record| {
                    nodes.push(Copied::new(record::parse(record)?.rlp(), &mut pieces));
                    Ok(())
                })?;
                copied.map_err(|reason| Error::MalformedRecord { address, reason })?;
            }
        }
        let pieces: Vec<Bytes> = pieces.into_iter().map(Bytes::from).collect();
        nodes.sort_unstable_by_key(|node| node.prefix);
        for same in nodes.chunk_by_mut(|one, other| one.prefix == other.prefix) {
            same.sort_unstable_by_key(|node| node.rlp(&pieces));
        }
        nodes.dedup_by(|one, other| {
            one.prefix == other.prefix && one.rlp(&pieces) == other.rlp(&pieces)
        });
        let piece = |node: &Copied| pieces[node.piece as usize].slice_ref(node.rlp(&pieces));
        let mut all = mem::take(spare);
        all.extend(nodes.iter().map(piece));
        keep(nodes, KEPT_NODES);
        Ok(all)
    }
}

/// Nodes of a witness that are worth a unit of their own to be listed: some 300 µs. Tests have few.
const UNIT_NODES: usize = if cfg!(test) { 4 } else { 2_048 };

/// Forgets what is in a list, and what room it has for more than so many.
fn keep<T>(list: &mut Vec<T>, most: usize) {
    list.clear();
    list.shrink_to(most);
}

/// Room is kept for so many nodes, 2 MiB, of each kind of list, all threads together: more than
/// most witnesses have.
const KEPT_NODES: usize = 1 << 16;

/// Has records fetched into the processor's cache side by side: where each is, then most of it. Who
/// reads them one after the other waits for the memory twice for each.
fn fetch<R: Records + ?Sized>(records: &R, addresses: &[NodeAddress]) {
    addresses.iter().for_each(|address| records.prefetch(*address));
    // What is not at hand is read when its turn comes.
    for address in addresses {
        let first = |record: &[u8]| prefetch(&record[..record.len().min(FETCHED_BYTES)]);
        let _ = records.peek(*address, first);
    }
}

/// Bytes of a record that are fetched: of longer ones the processor sees by then that they are read
/// on.
const FETCHED_BYTES: usize = 320;

/// How many records are fetched side by side: they stay in the first level of the caches until they
/// are copied.
const FETCHED_AT_ONCE: usize = 32;

/// A node that was copied, in little, as it is moved about to be sorted.
#[derive(Debug)]
struct Copied {
    /// See [`Listed`].
    prefix: u128,
    /// The index of the piece that it was copied into.
    piece: u32,
    /// Where in it.
    start: u32,
    len: u32,
}

impl Copied {
    /// Copies a node behind the last one, or into a new piece.
    fn new(rlp: &[u8], pieces: &mut Vec<Vec<u8>>) -> Self {
        if pieces.last().is_none_or(|piece| piece.len() + rlp.len() > PIECE_BYTES) {
            pieces.push(Vec::with_capacity(PIECE_BYTES.max(rlp.len())));
        }
        let index = pieces.len() - 1;
        let start = pieces[index].len() as u32;
        pieces[index].extend_from_slice(rlp);
        Self { prefix: prefix(rlp), piece: index as u32, start, len: rlp.len() as u32 }
    }

    fn rlp<'a>(&self, pieces: &'a [Bytes]) -> &'a [u8] {
        &pieces[self.piece as usize][self.start as usize..][..self.len as usize]
    }
}

/// What the allocator gives out again soon: memory of 256 KiB was new to the system in most calls,
/// and having it cleared took longer than all else.
const PIECE_BYTES: usize = 16 << 10;

fn prefix(node: &[u8]) -> u128 {
    let mut bytes = [0; 16];
    let len = node.len().min(bytes.len());
    bytes[..len].copy_from_slice(&node[..len]);
    u128::from_be_bytes(bytes)
}

const _: () = assert!(size_of::<Listed>() == 32);

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
            assert_eq!(lister.list(&records, &addresses), Ok(expected));
            addresses.retain(|_| rng.random_ratio(2, 3));
        }
        assert!(twins_count > 100, "{twins_count}");
    }
}
