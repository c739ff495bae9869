use super::{
    NodeAddress, RecordSink, Records, Version,
    hash::bits,
    key::{KEY_NIBBLES, compare_prefixes, successor, with_nibble},
    record::{
        self, RecordChild, RecordNode, begin_account_leaf, begin_branch, begin_extension,
        begin_slot_leaf,
    },
};
use crate::Error;
use alloy_primitives::B256;
use std::cmp::Ordering;

/// The position of a sweep: everything before this account, and before this slot of this account,
/// has been swept. The default is the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct SweepCursor {
    /// The Keccak-256 hash of an address.
    pub hashed_address: B256,
    /// The Keccak-256 hash of a slot's number.
    pub hashed_slot: B256,
}

/// Copies the nodes of a version with addresses below `below` to the end of the log, in the order
/// of keys. The returned version has the same root hash and, before the returned cursor, no node
/// below `below`. A cursor of `None` means that it has no such node at all: the cycle is complete.
///
/// A cycle begins with the default cursor and with `below` at the end of the log, and goes on
/// with the same `below` and the latest cursor on any later version. That is sound because later
/// versions add nodes only at the end, so what has been swept stays above.
///
/// After each leaf `go_on` is told how many bytes of records the call has gone through, and says
/// whether it goes on. Of the records it copies those that have to be, and the nodes on the path to
/// where it stops.
///
/// # Errors
/// [`Error::Record`] and [`Error::MalformedRecord`]. Some nodes may have been appended then, in
/// vain.
pub fn sweep<R: Records + ?Sized>(
    records: &R,
    version: &Version,
    below: NodeAddress,
    cursor: &SweepCursor,
    go_on: &mut dyn FnMut(u64) -> bool,
    sink: &mut impl RecordSink,
) -> Result<(Version, Option<SweepCursor>), Error> {
    let mut sweep =
        Sweep { records, sink, below, walked_bytes: 0, go_on, stop: None, record: Vec::new() };
    let trie = SweptTrie { from: cursor.hashed_address, kind: SweptKind::Accounts(cursor) };
    let address = sweep.node(version.address, &B256::ZERO, 0, &trie)?;
    Ok((Version { root: version.root, address }, sweep.stop))
}

struct Sweep<'a, R: ?Sized, S> {
    records: &'a R,
    sink: &'a mut S,
    below: NodeAddress,
    walked_bytes: u64,
    go_on: &'a mut dyn FnMut(u64) -> bool,
    /// The position to continue at, once it is time to stop.
    stop: Option<SweepCursor>,
    /// The record under construction.
    record: Vec<u8>,
}

/// The trie that is swept.
struct SweptTrie<'a> {
    /// The first key that is not swept yet.
    from: B256,
    kind: SweptKind<'a>,
}

enum SweptKind<'a> {
    Accounts(&'a SweepCursor),
    /// The storage of the account with this key.
    Storage(B256),
}

impl<R: Records + ?Sized, S: RecordSink> Sweep<'_, R, S> {
    /// Sweeps the node that is `depth` nibbles below the root, on the path of `key`, and all nodes
    /// below it. Returns its address from now on. The recursion is as deep as two keys are long.
    fn node(
        &mut self,
        address: NodeAddress,
        key: &B256,
        depth: usize,
        trie: &SweptTrie<'_>,
    ) -> Result<NodeAddress, Error> {
        if address.is_none() || address.is_remote() {
            return Ok(address);
        }
        let record = self.records.record(address)?;
        let malformed = |reason| Error::MalformedRecord { address, reason };
        let node = record::parse(record.as_ref()).map_err(malformed)?;
        self.walked_bytes += node.rlp().len() as u64;
        match node {
            RecordNode::Branch(branch) => {
                if depth >= KEY_NIBBLES {
                    return Err(malformed("branch below the end of a key"));
                }
                branch.children().map_err(malformed)?;
                let mut children = [NodeAddress::NONE; 16];
                for nibble in bits(branch.records) {
                    children[nibble] = match branch.child(nibble).map_err(malformed)? {
                        RecordChild::Record { address, .. } => address,
                        RecordChild::Embedded(_) | RecordChild::Empty => NodeAddress::NONE,
                    };
                }
                let swept = self.children(children, key, depth, trie)?;
                if address >= self.below && swept == children {
                    return Ok(address);
                }
                begin_branch(&mut self.record, &swept);
            }
            RecordNode::Extension(extension) => {
                let end = depth + extension.path.len();
                let key = extension.path.write(*key, depth).filter(|_| end < KEY_NIBBLES);
                let key = key.ok_or_else(|| malformed("path longer than a key"))?;
                if compare_prefixes(&key, &trie.from, end) == Ordering::Less {
                    return Ok(address);
                }
                let child = match extension.child {
                    RecordChild::Record { address, .. } => address,
                    RecordChild::Embedded(_) | RecordChild::Empty => NodeAddress::NONE,
                };
                let swept = self.node(child, &key, end, trie)?;
                if address >= self.below && swept == child {
                    return Ok(address);
                }
                begin_extension(&mut self.record, swept);
            }
            RecordNode::Leaf(leaf) => {
                let key = leaf.path.write(*key, depth);
                let key = key.filter(|_| depth + leaf.path.len() == KEY_NIBBLES);
                let key = key.ok_or_else(|| malformed("leaf with a key of other than 32 bytes"))?;
                if key < trie.from {
                    return Ok(address);
                }
                let swept = self.leaf(&key, leaf.storage, trie)?;
                if address >= self.below && swept == leaf.storage {
                    return Ok(address);
                }
                match swept {
                    Some(storage) => begin_account_leaf(&mut self.record, storage),
                    None => begin_slot_leaf(&mut self.record),
                }
            }
        }
        self.record.extend_from_slice(node.rlp());
        Ok(self.sink.append(&self.record))
    }

    /// Sweeps the children of a branch that are not done yet, until it is time to stop.
    fn children(
        &mut self,
        mut children: [NodeAddress; 16],
        key: &B256,
        depth: usize,
        trie: &SweptTrie<'_>,
    ) -> Result<[NodeAddress; 16], Error> {
        for (nibble, child) in children.iter_mut().enumerate() {
            let key = with_nibble(*key, depth, nibble);
            let is_done = compare_prefixes(&key, &trie.from, depth + 1) == Ordering::Less;
            if is_done || self.stop.is_some() || child.is_none() {
                continue;
            }
            *child = self.node(*child, &key, depth + 1, trie)?;
        }
        Ok(children)
    }

    /// Sweeps the storage of an account's leaf, and decides whether it is time to stop.
    fn leaf(
        &mut self,
        key: &B256,
        storage: Option<NodeAddress>,
        trie: &SweptTrie<'_>,
    ) -> Result<Option<NodeAddress>, Error> {
        match (&trie.kind, storage) {
            (SweptKind::Accounts(cursor), Some(storage)) => {
                let is_at_cursor = *key == cursor.hashed_address;
                let from = if is_at_cursor { cursor.hashed_slot } else { B256::ZERO };
                let trie = SweptTrie { from, kind: SweptKind::Storage(*key) };
                let storage = self.node(storage, &B256::ZERO, 0, &trie)?;
                if self.stop.is_none() && !(self.go_on)(self.walked_bytes) {
                    let next = successor(*key);
                    self.stop = next.map(|hashed_address| SweepCursor {
                        hashed_address,
                        hashed_slot: B256::ZERO,
                    });
                }
                Ok(Some(storage))
            }
            (SweptKind::Storage(hashed_address), None) => {
                if !(self.go_on)(self.walked_bytes) {
                    let (hashed_address, next) = (*hashed_address, successor(*key));
                    self.stop = next.map(|hashed_slot| SweepCursor { hashed_address, hashed_slot });
                }
                Ok(None)
            }
            // A leaf of the other trie is found when it is read; here it is copied.
            (_, storage) => Ok(storage),
        }
    }
}
