//! The nodes of a witness, listed in order.

use super::{
    NodeAddress, Records,
    base::Base,
    captured::{self, Captured},
    overlay::Overlay,
    record,
    unit::{Unit, run_all},
};
use crate::{Error, keccak::prefetch};
use alloy_primitives::{Bytes, bytes};
use std::{iter, mem, ops::RangeInclusive};

/// What a witness may be listed from.
#[derive(Debug)]
pub(crate) struct Nodes<'a> {
    overlays: Vec<&'a Overlay>,
    /// RLP of nodes that stand outside of the overlays.
    roots: Vec<&'a [u8]>,
}

/// A node of [`Nodes`], in little, as it is moved about to be sorted.
#[derive(Clone, Copy, Debug, Default)]
struct Listed {
    /// See [`captured::key`].
    key: u64,
    /// The index of its overlay, or [`ROOTS`].
    overlay: u32,
    /// Its index in what the overlay has captured, or among the roots.
    index: u32,
}

const ROOTS: u32 = u32::MAX;

const _: () = assert!(size_of::<Listed>() == 16);

impl<'a> Nodes<'a> {
    pub(crate) fn new(overlays: Vec<&'a Overlay>, roots: Vec<&'a [u8]>) -> Self {
        Self { overlays, roots }
    }

    /// How many there are; where two are the same, both count.
    fn count(&self) -> usize {
        let overlays = self.overlays.iter().map(|overlay| overlay.to_list.len());
        self.roots.len() + overlays.sum::<usize>()
    }

    /// All of them, in no order.
    fn all(&self) -> impl Iterator<Item = Listed> {
        let in_overlays = (0..).zip(&self.overlays).flat_map(|(overlay, nodes)| {
            let nodes = (0..).zip(&nodes.to_list);
            nodes.map(move |(index, Captured { key, .. })| Listed { key: *key, overlay, index })
        });
        let roots = (0..).zip(&self.roots);
        let roots =
            roots.map(|(index, rlp)| Listed { key: captured::key(rlp), overlay: ROOTS, index });
        in_overlays.chain(roots)
    }

    /// The node's overlay, and what was captured there; `None` for a root.
    fn captured(&self, node: &Listed) -> Option<(&'a Overlay, &'a Captured)> {
        let overlay = self.overlays.get(node.overlay as usize)?;
        Some((overlay, &overlay.to_list[node.index as usize]))
    }

    fn rlp(&self, node: &Listed) -> &'a [u8] {
        match self.captured(node) {
            Some((overlay, Captured { start, len, .. })) => {
                overlay.base.bytes(*start as usize, usize::from(*len))
            }
            None => self.roots[node.index as usize],
        }
    }

    /// The keys of so many parts that follow each other, each of about as many nodes.
    fn parts(&self, count: usize) -> Vec<RangeInclusive<u64>> {
        if count == 1 {
            return vec![0..=u64::MAX];
        }
        let step = (self.count() / (count * SAMPLES)).max(1);
        // Each overlay begins with the nodes nearest to its root, which are not like the others.
        let (mut samples, mut skipped) = (Vec::new(), step / 2);
        for nodes in self.overlays.iter().map(|overlay| &overlay.to_list) {
            samples.extend(nodes.iter().skip(skipped).step_by(step).map(|node| node.key));
            let looked_at = nodes.len().saturating_sub(skipped).div_ceil(step);
            skipped = skipped + looked_at * step - nodes.len();
        }
        samples.sort_unstable();
        let mut parts = Vec::with_capacity(count);
        let mut first = 0;
        for index in 1..count {
            let last = samples.get(index * samples.len() / count).copied().unwrap_or_default();
            // Else the part has nothing that is not in the one before.
            if last >= first && last < u64::MAX {
                parts.push(first..=last);
                first = last + 1;
            }
        }
        parts.push(first..=u64::MAX);
        parts
    }

    /// Lists the nodes with these keys behind what is in `listed`, in order and each once, as
    /// slices of the piece that it was loaded into, which `owner` gives by its overlay and its
    /// number there. There are about `share` of them.
    fn list(
        &self,
        keys: &RangeInclusive<u64>,
        share: usize,
        owner: impl Fn(usize, usize) -> bytes::Bytes,
        room: &mut Vec<Listed>,
        listed: &mut Vec<Bytes>,
    ) {
        let nodes = self.sorted(keys, share, room);
        let pieces = |overlay: &&Overlay| vec![None; overlay.base.pieces().len()];
        let mut owners: Vec<Vec<Option<bytes::Bytes>>> = self.overlays.iter().map(pieces).collect();
        listed.reserve(nodes.len());
        let mut last: Option<&Listed> = None;
        for node in nodes {
            let is_twin = |last: &Listed| last.key == node.key && self.rlp(last) == self.rlp(node);
            if last.replace(node).is_some_and(is_twin) {
                continue;
            }
            let rlp = self.rlp(node);
            listed.push(match self.captured(node) {
                Some((_, Captured { start, .. })) => {
                    let (overlay, number) = (node.overlay as usize, Base::piece(*start as usize));
                    let owner =
                        owners[overlay][number].get_or_insert_with(|| owner(overlay, number));
                    Bytes::from(owner.slice_ref(rlp))
                }
                None => Bytes::copy_from_slice(rlp),
            });
        }
    }

    /// Those with these keys, about `share`, in order.
    fn sorted<'b>(
        &self,
        keys: &RangeInclusive<u64>,
        share: usize,
        room: &'b mut Vec<Listed>,
    ) -> &'b [Listed] {
        // Whether one belongs here is anyone's guess, the processor's too: all are written, and
        // those that do not belong here written over.
        room.resize(room.len().max(share + share / 8 + 1), Listed::default());
        let mut count = 0;
        for node in self.all() {
            if count == room.len() {
                room.resize(2 * count, Listed::default());
            }
            room[count] = node;
            count += usize::from(keys.contains(&node.key));
        }
        let nodes = &mut room[..count];
        nodes.sort_unstable_by_key(|node| node.key);
        let is_alike = |one: &Listed, other: &Listed| one.key == other.key;
        for alike in nodes.chunk_by(is_alike).filter(|alike| alike.len() > 1) {
            alike.iter().for_each(|node| prefetch_start(self.rlp(node)));
        }
        for alike in nodes.chunk_by_mut(is_alike) {
            alike.sort_unstable_by_key(|node| self.rlp(node));
        }
        nodes
    }
}

/// How many nodes are looked at, for each part, to find where parts begin.
const SAMPLES: usize = 64;

/// Lists the nodes of witnesses, one after the other. It keeps its room for the next one: memory
/// that is used for the first time takes longer than the rest.
#[derive(Debug, Default)]
pub struct Lister {
    copied: Vec<Copied>,
    /// Where each thread sorts.
    rooms: Vec<Vec<Listed>>,
    /// What each thread lists, but for the first.
    listed: Vec<Vec<Bytes>>,
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

    /// Lists nodes by up to so many threads, as slices of pieces, see [`Nodes::list`].
    pub(crate) fn list_captured(
        &mut self,
        nodes: &Nodes<'_>,
        threads: usize,
        run: &dyn Fn(&mut [Unit<'_>]),
        owner: &(dyn Fn(usize, usize) -> bytes::Bytes + Sync),
    ) -> Vec<Bytes> {
        let parts = nodes.parts((nodes.count() / UNIT_NODES).min(threads).max(1));
        let share = nodes.count().div_ceil(parts.len());
        let Self { rooms, listed, spare, .. } = self;
        rooms.resize_with(parts.len(), Vec::new);
        listed.resize_with(parts.len() - 1, Vec::new);
        let mut all = mem::take(spare);
        let mut units = Vec::with_capacity(parts.len());
        let lists = iter::once(&mut all).chain(&mut *listed);
        for ((keys, room), listed) in parts.iter().zip(&mut *rooms).zip(lists) {
            units.push(Unit::new(share, move || nodes.list(keys, share, owner, room, listed)));
        }
        run_all(&mut units, run);
        drop(units);
        all.reserve(listed.iter().map(Vec::len).sum());
        listed.iter_mut().for_each(|part| all.append(part));
        let most = KEPT_NODES / parts.len();
        rooms.iter_mut().for_each(|room| {
            room.truncate(most);
            room.shrink_to(most);
        });
        listed.iter_mut().for_each(|part| keep(part, most));
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
        nodes.sort_unstable_by_key(|node| node.key);
        for same in nodes.chunk_by_mut(|one, other| one.key == other.key) {
            same.sort_unstable_by_key(|node| node.rlp(&pieces));
        }
        nodes.dedup_by(|one, other| one.key == other.key && one.rlp(&pieces) == other.rlp(&pieces));
        let piece = |node: &Copied| pieces[node.piece as usize].slice_ref(node.rlp(&pieces));
        let mut all = mem::take(spare);
        all.extend(nodes.iter().map(piece));
        keep(nodes, KEPT_NODES);
        Ok(all)
    }
}

/// Nodes of a witness that are worth a unit of their own to be listed: some 50 µs. Tests have few.
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

/// A node that was copied, in little, as it is moved about to be sorted.
#[derive(Debug)]
struct Copied {
    /// See [`captured::key`].
    key: u64,
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
        Self { key: captured::key(rlp), piece: index as u32, start, len: rlp.len() as u32 }
    }

    fn rlp<'a>(&self, pieces: &'a [Bytes]) -> &'a [u8] {
        &pieces[self.piece as usize][self.start as usize..][..self.len as usize]
    }
}

/// What the allocator gives out again soon: memory of 256 KiB was new to the system in most calls,
/// and having it cleared took longer than all else.
const PIECE_BYTES: usize = 16 << 10;

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
