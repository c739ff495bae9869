//! The nodes of a witness, listed in order.

use super::{NodeAddress, Records, base::Base, overlay::Overlay, record};
use crate::{Error, keccak::prefetch};
use alloy_primitives::{Bytes, bytes};
use std::{cmp::Ordering, ops::Range};

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
    pub(crate) fn list(&self, range: Range<usize>) -> Vec<Listed> {
        let mut listed = Vec::with_capacity(range.len());
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
        self.sort(&mut listed);
        listed
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
    pub(crate) fn list_roots(&self) -> Vec<Listed> {
        let root = |(start, rlp): (u32, &&[u8])| Listed {
            prefix: prefix(rlp),
            overlay: ROOTS,
            start,
            len: rlp.len() as u32,
        };
        let mut listed: Vec<_> = (0..).zip(&self.roots).map(root).collect();
        self.sort(&mut listed);
        listed
    }

    /// Parts lists into so many that follow each other, of about the same length: of each list one
    /// range. What is the same is in one part.
    pub(crate) fn part<'b>(
        &self,
        lists: &'b [Vec<Listed>],
        count: usize,
    ) -> Vec<Vec<&'b [Listed]>> {
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

    /// Merges lists, and makes each node a slice of the piece that it was loaded into, which
    /// `owner` gives by its overlay and its number there. The result has room for so many at least.
    pub(crate) fn merge(
        &self,
        mut lists: Vec<&[Listed]>,
        capacity: usize,
        owner: impl Fn(usize, usize) -> bytes::Bytes,
    ) -> Vec<Bytes> {
        let pieces = |overlay: &&Overlay| vec![None; overlay.base.pieces().len()];
        let mut owners: Vec<Vec<Option<bytes::Bytes>>> = self.overlays.iter().map(pieces).collect();
        let count: usize = lists.iter().map(|list| list.len()).sum();
        let mut merged = Vec::with_capacity(count.max(capacity));
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
        merged
    }

    /// The list whose first node comes first.
    fn lowest(&self, lists: &[&[Listed]]) -> Option<usize> {
        let first = |place: &usize| &lists[*place][0];
        (0..lists.len()).min_by(|one, other| self.order(first(one), first(other)))
    }
}

/// The nodes with these addresses as a witness has them: each once, in lexicographic order.
///
/// # Errors
/// [`Error::Record`] and [`Error::MalformedRecord`].
pub fn witness_at<R: Records + ?Sized>(
    records: &R,
    addresses: &[NodeAddress],
) -> Result<Vec<Bytes>, Error> {
    let mut found = Vec::with_capacity(addresses.len());
    for &address in addresses {
        found.push(records.record(address)?);
    }
    let mut nodes = Vec::with_capacity(found.len());
    for (record, &address) in found.iter().zip(addresses) {
        let node = record::parse(record.as_ref());
        let node = node.map_err(|reason| Error::MalformedRecord { address, reason })?;
        nodes.push((prefix(node.rlp()), node.rlp()));
    }
    nodes.sort_unstable();
    nodes.dedup();
    Ok(own(&nodes))
}

fn prefix(node: &[u8]) -> u128 {
    let mut bytes = [0; 16];
    let len = node.len().min(bytes.len());
    bytes[..len].copy_from_slice(&node[..len]);
    u128::from_be_bytes(bytes)
}

/// Copies nodes into one allocation, which the results share.
fn own(nodes: &[(u128, &[u8])]) -> Vec<Bytes> {
    let mut all = Vec::with_capacity(nodes.iter().map(|(_, node)| node.len()).sum());
    nodes.iter().for_each(|(_, node)| all.extend_from_slice(node));
    let all = Bytes::from(all);
    let mut start = 0;
    let owned = nodes.iter().map(|(_, node)| {
        let range = start..start + node.len();
        start = range.end;
        all.slice(range)
    });
    owned.collect()
}

const _: () = assert!(size_of::<Listed>() == 32);
