//! Hashing changed nodes in batches: leaves first, then level by level, the deepest first.

use super::{
    key::{KEY_NIBBLES, hex_prefix, nibble},
    node::{
        AccountValue, LeafValue, LinkTarget, NodeLink, NodeReference, OverlayBranch,
        OverlayExtension, OverlayLeaf,
    },
    overlay::Overlay,
    record::{self, HASH_HEADER, NO_CHILD},
    record_arena::RecordArena,
};
use crate::{Account, keccak::PaddedInputs};
use alloy_primitives::{B256, U256};
use std::{cell::Cell, iter};

/// Nodes that are encoded before they are hashed together: many times the lanes, and few enough to
/// stay in the L2 cache.
const BATCH_NODES: usize = 256;

/// Room for the RLP of a leaf: list header, path, and an account's string header, list header,
/// nonce, balance and two hashes; before it, 32 bytes for the surplus of short strings.
const LEAF_ROOM: usize = 32 + 2 + 34 + 2 + 2 + 9 + 33 + 33 + 33;

impl Overlay {
    /// Hashes at most `budget` of the nodes that are to be hashed in the trees with these roots,
    /// leaves first and then the deepest. Returns the number hashed.
    pub(crate) fn hash(
        &mut self,
        roots: impl IntoIterator<Item = NodeLink>,
        budget: usize,
    ) -> usize {
        let mut buffers = BUFFERS.take().unwrap_or_default();
        let HashBuffers { queue, levels, batch } = &mut buffers;
        roots.into_iter().for_each(|root| queue.add(root));
        levels.push(0);
        while *levels.last().expect("there is a level") < queue.above.len() {
            let (start, end) = (levels[levels.len() - 1], queue.above.len());
            levels.push(end);
            for index in start..end {
                self.queue_children(queue.above[index], queue);
            }
        }
        let mut left = budget;
        let above = levels.windows(2).rev().map(|level| &queue.above[level[0]..level[1]]);
        for level in iter::once(&queue.leaves[..]).chain(above) {
            for links in level.chunks(BATCH_NODES) {
                left -= self.hash_batch(links, left, batch);
            }
        }
        levels.clear();
        for links in [&mut queue.leaves, &mut queue.above] {
            links.clear();
            links.shrink_to(KEPT_LINKS);
        }
        BUFFERS.set(Some(buffers));
        budget - left
    }

    /// Queues the children of a branch or an extension that may have to be hashed.
    fn queue_children(&self, link: NodeLink, queue: &mut HashQueue) {
        if !self.is_unknown(link) {
            return;
        }
        match link.target() {
            LinkTarget::Branch(id) => {
                let branch = &self.branches[id];
                for nibble in bits(branch.dirty & branch.mask) {
                    queue.add(branch.children[nibble]);
                }
            }
            LinkTarget::Extension(id) => queue.add(self.extensions[id].child),
            _ => {}
        }
    }

    fn is_unknown(&self, link: NodeLink) -> bool {
        self.head(link).is_some_and(|head| !head.reference.is_known())
    }

    /// Hashes at most `budget` of these nodes, as far as they have changed. Returns the number
    /// hashed. None is below another.
    fn hash_batch(&mut self, links: &[NodeLink], budget: usize, batch: &mut HashBatch) -> usize {
        batch.links.clear();
        let mut left = budget;
        for &link in links {
            if left == 0 {
                break;
            }
            if !self.is_unknown(link) {
                continue;
            }
            left -= 1;
            self.encode(link, &mut batch.inputs.bytes);
            if let LinkTarget::Branch(id) = link.target() {
                self.branches[id].dirty = 0;
            }
            let start = batch.inputs.start();
            let rlp = &batch.inputs.bytes[start..];
            if rlp.len() < 32 {
                let reference = NodeReference::to_embedded(rlp);
                self.head_mut(link).expect("the node is loaded").reference = reference;
                batch.inputs.bytes.truncate(start);
            } else {
                batch.links.push(link);
                batch.inputs.end();
            }
        }
        for (link, hash) in batch.links.iter().zip(batch.inputs.take_hashes()) {
            let head = self.head_mut(*link).expect("the node is loaded");
            head.reference = NodeReference::to_hash(&hash);
        }
        budget - left
    }

    /// Appends the RLP of a loaded node. What is below it has been hashed.
    pub(crate) fn encode(&self, link: NodeLink, rlp: &mut Vec<u8>) {
        match link.target() {
            LinkTarget::Branch(id) => {
                let branch = &self.branches[id];
                if !branch.is_patchable() || self.patch(branch, rlp).is_none() {
                    self.assemble(branch, rlp);
                }
            }
            LinkTarget::Extension(id) => self.encode_extension(&self.extensions[id], rlp),
            LinkTarget::Leaf(id) => encode_leaf(&self.leaves[id], &self.accounts, rlp),
            _ => unreachable!("only loaded nodes are hashed"),
        }
    }

    fn encode_extension(&self, extension: &OverlayExtension, rlp: &mut Vec<u8>) {
        let (from, to) = (usize::from(extension.depth), usize::from(extension.end));
        let (path, path_bytes) = hex_prefix(&extension.key, from, to, false);
        let start = begin_list(rlp);
        if path_bytes > 1 {
            rlp.push(NO_CHILD + path_bytes as u8);
        }
        rlp.extend_from_slice(&path[..path_bytes]);
        match self.child_reference(extension.child) {
            Some(reference) => reference.encode(rlp),
            None => rlp.extend_from_slice(extension.origin_item(&self.arena)),
        }
        end_list(rlp, start);
    }

    /// The reference of a link; `None` if it is in the record of the parent.
    fn child_reference(&self, link: NodeLink) -> Option<NodeReference> {
        match link.target() {
            LinkTarget::Blinded(index) => Some(NodeReference::to_hash(&self.blinded[index].hash)),
            _ => self.head(link).map(|head| head.reference),
        }
    }

    /// Appends a branch: its origin, with the hashes of changed children written over those there.
    /// `None`, and nothing is appended, if a child is embedded.
    fn patch(&self, branch: &OverlayBranch, rlp: &mut Vec<u8>) -> Option<()> {
        let origin = branch.head.origin?.rlp(&self.arena);
        let start = rlp.len();
        rlp.extend_from_slice(origin);
        let patched = &mut rlp[start..];
        let first = record::RecordBranch::header_bytes(origin.len(), branch.origin_mask);
        for nibble in bits(branch.changed) {
            let reference = match branch.children[nibble].target() {
                LinkTarget::Branch(id) => &self.branches[id].head.reference,
                LinkTarget::Leaf(id) => &self.leaves[id].head.reference,
                LinkTarget::Extension(id) => &self.extensions[id].head.reference,
                _ => unreachable!("a changed child is loaded"),
            };
            let below = (branch.origin_mask & ((1 << nibble) - 1)).count_ones() as usize;
            let at = first + nibble + 1 + 32 * below;
            let Some(hash) = reference.hash() else {
                rlp.truncate(start);
                return None;
            };
            patched[at..at + 32].copy_from_slice(hash);
        }
        Some(())
    }

    /// Appends a branch child by child.
    fn assemble(&self, branch: &OverlayBranch, rlp: &mut Vec<u8>) {
        let origin = branch.origin_items(&self.arena);
        let start = begin_list(rlp);
        for (link, item) in branch.children.iter().zip(origin) {
            match self.child_reference(*link) {
                Some(reference) => reference.encode(rlp),
                None if *link == NodeLink::EMPTY => rlp.push(NO_CHILD),
                None => rlp.extend_from_slice(item),
            }
        }
        rlp.push(NO_CHILD);
        end_list(rlp, start);
    }
}

/// Nodes that may have to be hashed. Leaves depend on no other node, and are encoded faster
/// together.
#[derive(Default)]
struct HashQueue {
    leaves: Vec<NodeLink>,
    /// Branches and extensions, those nearer to the root first.
    above: Vec<NodeLink>,
}

impl HashQueue {
    fn add(&mut self, link: NodeLink) {
        match link.target() {
            LinkTarget::Leaf(_) => self.leaves.push(link),
            LinkTarget::Branch(_) | LinkTarget::Extension(_) => self.above.push(link),
            LinkTarget::Empty | LinkTarget::Recorded | LinkTarget::Blinded(_) => {}
        }
    }
}

thread_local! {
    /// The buffers of this thread. A block's tries are hashed part by part, and allocating for each
    /// part took a twentieth of an update.
    static BUFFERS: Cell<Option<HashBuffers>> = const { Cell::new(None) };
}

/// The buffers for hashing.
#[derive(Default)]
struct HashBuffers {
    queue: HashQueue,
    /// The starts of the levels in the queue.
    levels: Vec<usize>,
    batch: HashBatch,
}

/// The links for which buffers are kept, of either kind: 512 KiB in all. The buffers of levels are
/// bounded by the length of a key, those of a batch by [`BATCH_NODES`].
const KEPT_LINKS: usize = 1 << 16;

/// The nodes of a batch that are hashed.
#[derive(Default)]
struct HashBatch {
    links: Vec<NodeLink>,
    inputs: PaddedInputs,
}

impl OverlayBranch {
    /// The items of the children in the origin's RLP.
    fn origin_items<'a>(&self, arena: &'a RecordArena) -> [&'a [u8]; 16] {
        let Some(origin) = self.head.origin else { return [&[NO_CHILD]; 16] };
        let record::RecordNode::Branch(branch) = origin.node(arena) else {
            unreachable!("it was a branch")
        };
        branch.items().expect("the record was read before")
    }
}

/// The indices of the bits that are set.
pub(crate) fn bits(mut mask: u16) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = (mask != 0).then(|| mask.trailing_zeros() as usize)?;
        mask &= mask - 1;
        Some(bit)
    })
}

/// Reserves bytes for the header of a list, and returns their start.
fn begin_list(rlp: &mut Vec<u8>) -> usize {
    rlp.extend([0; 3]);
    rlp.len() - 3
}

/// Writes the header of the list that began at `start` and has less than 64 KiB.
fn end_list(rlp: &mut Vec<u8>, start: usize) {
    let payload_bytes = rlp.len() - start - 3;
    match payload_bytes {
        ..56 => drop(rlp.splice(start..start + 3, [0xc0 + payload_bytes as u8])),
        56..256 => drop(rlp.splice(start..start + 3, [0xf8, payload_bytes as u8])),
        _ => rlp[start..start + 3].copy_from_slice(&[
            0xf9,
            (payload_bytes >> 8) as u8,
            payload_bytes as u8,
        ]),
    }
}

/// Appends a branch with these children, of which `None` is no child.
pub(crate) fn encode_branch(references: &[Option<NodeReference>], rlp: &mut Vec<u8>) {
    let start = begin_list(rlp);
    for reference in references {
        match reference {
            Some(reference) => reference.encode(rlp),
            None => rlp.push(NO_CHILD),
        }
    }
    rlp.push(NO_CHILD);
    end_list(rlp, start);
}

/// Writes RLP from its end to its beginning, so that the length of a payload is known when its
/// header is written. Short strings are written as 32 bytes, of which the next write covers the
/// surplus: the compiler then knows the length of every copy.
struct BackwardWriter {
    bytes: [u8; LEAF_ROOM],
    start: usize,
}

impl BackwardWriter {
    fn new() -> Self {
        Self { bytes: [0; LEAF_ROOM], start: LEAF_ROOM }
    }

    fn len(&self) -> usize {
        LEAF_ROOM - self.start
    }

    fn put(&mut self, byte: u8) {
        self.start -= 1;
        self.bytes[self.start] = byte;
    }

    /// The last `len` of these bytes.
    fn put_last(&mut self, bytes: &[u8; 32], len: usize) {
        self.bytes[self.start - 32..][..32].copy_from_slice(bytes);
        self.start -= len;
    }

    /// The RLP of a number.
    fn put_number(&mut self, number: &U256) {
        let len = number.byte_len();
        self.put_last(&number.to_be_bytes(), len);
        self.put_header(len, number.byte(0));
    }

    /// The header of the string that has been written; of a string of one byte, which is the
    /// `last`, there may be none.
    fn put_header(&mut self, len: usize, last: u8) {
        if len != 1 || last >= 0x80 {
            self.put(0x80 + len as u8);
        }
    }

    fn put_hash(&mut self, hash: &B256) {
        self.put_last(hash, 32);
        self.put(HASH_HEADER);
    }

    /// An account's RLP, which has more than 55 bytes, as a string.
    fn put_account(&mut self, account: &Account) {
        self.put_hash(&account.code_hash);
        self.put_hash(&account.storage_root);
        self.put_number(&account.balance);
        self.put_number(&U256::from(account.nonce));
        for header in [0xf8, 0xb8] {
            self.put(self.len() as u8);
            self.put(header);
        }
    }
}

/// Appends the RLP of a leaf.
fn encode_leaf(leaf: &OverlayLeaf, accounts: &[AccountValue], rlp: &mut Vec<u8>) {
    let mut writer = BackwardWriter::new();
    match leaf.value {
        LeafValue::Slot(value) => {
            writer.put_number(&value);
            let len = writer.len();
            writer.put_header(len, value.byte(0));
        }
        LeafValue::Account(index) => writer.put_account(&accounts[index as usize].account),
    }
    // The path, hex-prefixed: it ends with the key, so its whole bytes are the key's.
    let depth = usize::from(leaf.depth);
    let path_bytes = (KEY_NIBBLES - depth) / 2;
    writer.put_last(&leaf.key, path_bytes);
    let is_odd = depth % 2 == 1;
    writer.put(if is_odd { 0x30 | nibble(&leaf.key, depth) as u8 } else { 0x20 });
    writer.put_header(1 + path_bytes, 0);
    let payload_bytes = writer.len() as u8;
    match payload_bytes {
        ..56 => writer.put(0xc0 + payload_bytes),
        _ => {
            writer.put(payload_bytes);
            writer.put(0xf8);
        }
    }
    rlp.extend_from_slice(&writer.bytes[writer.start..]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::versioned::{Version, node::NodeHead};
    use alloy_rlp::Encodable;
    use alloy_trie::{Nibbles, nodes::LeafNode};
    use proptest::prelude::*;

    /// A number of any length.
    fn number() -> impl Strategy<Value = U256> {
        (any::<[u64; 4]>(), 0..=256usize)
            .prop_map(|(limbs, bits)| U256::from_limbs(limbs).checked_shr(bits).unwrap_or_default())
    }

    /// The RLP of a leaf beside alloy's, of which `value` is the RLP of the value.
    fn check(leaf: &OverlayLeaf, accounts: &[AccountValue], value: Vec<u8>) {
        let path = Nibbles::unpack(leaf.key).slice(usize::from(leaf.depth)..);
        let mut expected = vec![0xaa];
        LeafNode::new(path, value).encode(&mut expected);
        let mut rlp = vec![0xaa];
        encode_leaf(leaf, accounts, &mut rlp);
        assert_eq!(rlp, expected, "{leaf:?}");
    }

    proptest! {
        #[test]
        fn leaves_agree_with_alloys_at_every_depth(
            key: [u8; 32],
            number in number(),
            nonce: u64,
            nonce_bits in 0..64u32,
            hashes: [[u8; 32]; 2],
        ) {
            let [storage_root, code_hash] = hashes.map(B256::from);
            let nonce = nonce >> nonce_bits;
            let account = Account { nonce, balance: number, storage_root, code_hash };
            let base_storage = Version::EMPTY;
            let accounts = [AccountValue { account, base_storage, storage: None }];
            for depth in 0..=KEY_NIBBLES as u8 {
                let (head, key, value) = (NodeHead::new(), B256::from(key), LeafValue::Account(0));
                let mut leaf = OverlayLeaf { head, key, depth, is_ahead: false, value };
                check(&leaf, &accounts, account.to_rlp());
                leaf.value = LeafValue::Slot(number.max(U256::ONE));
                check(&leaf, &[], alloy_rlp::encode(number.max(U256::ONE)));
            }
        }
    }
}
