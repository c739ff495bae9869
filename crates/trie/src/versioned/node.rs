//! The nodes of an overlay.

use super::{
    NodeAddress, Version,
    record::{self, HASH_HEADER, RecordNode},
    record_arena::RecordArena,
};
use crate::Account;
use alloy_primitives::{B256, U256, keccak256};
use std::{num::NonZeroU16, ops::Range};

/// A link to the child of a branch or an extension, or to the root of a tree: three bits of kind,
/// the rest an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NodeLink(u32);

/// A decoded [`NodeLink`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LinkTarget {
    Empty,
    /// A node that is not loaded, and is named by the record of its parent.
    Recorded,
    /// A node that is not loaded, and is not named by the record of its parent.
    Blinded(usize),
    Branch(usize),
    Extension(usize),
    Leaf(usize),
}

impl NodeLink {
    pub(crate) const EMPTY: Self = Self(0);
    pub(crate) const RECORDED: Self = Self(1);

    fn new(kind: u32, index: usize) -> Self {
        let index = u32::try_from(index).ok().filter(|index| *index < 1 << 29);
        Self(index.expect("memory ends before the indices do") << 3 | kind)
    }

    pub(crate) fn blinded(index: usize) -> Self {
        Self::new(2, index)
    }

    pub(crate) fn branch(index: usize) -> Self {
        Self::new(3, index)
    }

    pub(crate) fn extension(index: usize) -> Self {
        Self::new(4, index)
    }

    pub(crate) fn leaf(index: usize) -> Self {
        Self::new(5, index)
    }

    pub(crate) fn target(self) -> LinkTarget {
        let index = (self.0 >> 3) as usize;
        match self.0 & 7 {
            0 => LinkTarget::Empty,
            1 => LinkTarget::Recorded,
            2 => LinkTarget::Blinded(index),
            3 => LinkTarget::Branch(index),
            4 => LinkTarget::Extension(index),
            _ => LinkTarget::Leaf(index),
        }
    }

    pub(crate) fn is_loaded(self) -> bool {
        self.0 & 7 >= 3
    }
}

/// A node that is not loaded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlindedNode {
    pub(crate) address: NodeAddress,
    pub(crate) hash: B256,
}

/// How a parent refers to a node: by the hash, or by the RLP itself if that is under 32 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NodeReference {
    bytes: [u8; 32],
    /// 0 while the node has to be hashed, 32 if this is a hash.
    len: u8,
}

impl NodeReference {
    pub(crate) const UNKNOWN: Self = Self { bytes: [0; 32], len: 0 };

    pub(crate) fn to_hash(hash: &B256) -> Self {
        Self { bytes: hash.0, len: 32 }
    }

    pub(crate) fn to_embedded(rlp: &[u8]) -> Self {
        let mut reference = Self { bytes: [0; 32], len: rlp.len() as u8 };
        reference.bytes[..rlp.len()].copy_from_slice(rlp);
        reference
    }

    pub(crate) fn is_known(&self) -> bool {
        self.len != 0
    }

    pub(crate) fn is_embedded(&self) -> bool {
        self.len < 32
    }

    pub(crate) fn hash(&self) -> Option<&[u8; 32]> {
        (self.len == 32).then_some(&self.bytes)
    }

    /// The hash of the node, which is the root of a trie. With whole keys in it such a node is
    /// never short, but a damaged store may have one that is.
    pub(crate) fn root_hash(&self) -> B256 {
        match self.hash() {
            Some(hash) => B256::from(*hash),
            None => keccak256(&self.bytes[..usize::from(self.len)]),
        }
    }

    /// Appends the RLP of the reference.
    pub(crate) fn encode(&self, rlp: &mut Vec<u8>) {
        if self.len == 32 {
            rlp.push(HASH_HEADER);
        }
        rlp.extend_from_slice(&self.bytes[..usize::from(self.len)]);
    }
}

/// Bytes of the hash before a record.
const HASH_BYTES: usize = 32;

/// The record that a node was loaded from, copied into [`Overlay::arena`] behind the hash of the
/// node; or the node embedded in such a record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NodeOrigin {
    address: [u8; NodeAddress::BYTES],
    /// The bytes of the record before the RLP, and of the RLP.
    prefix_len: u16,
    len: NonZeroU16,
    start: u32,
}

impl NodeOrigin {
    /// Appends a record, the RLP of which is at this range, and the hash of its node to `arena`.
    pub(crate) fn recorded(
        arena: &mut RecordArena,
        BlindedNode { address, hash }: &BlindedNode,
        record: &[u8],
        rlp: Range<usize>,
    ) -> Self {
        let start = arena.append(hash.as_slice(), &record[..rlp.end]) + HASH_BYTES;
        Self::new(*address, start, rlp)
    }

    /// A node embedded in this one's record: its RLP there.
    pub(crate) fn embedded(self, rlp: &[u8], arena: &RecordArena) -> Self {
        let within = rlp.as_ptr() as usize - self.record(arena).as_ptr() as usize;
        Self::new(NodeAddress::NONE, self.start as usize + within, 0..rlp.len())
    }

    fn new(address: NodeAddress, start: usize, rlp: Range<usize>) -> Self {
        Self {
            address: address.to_bytes(),
            prefix_len: rlp.start as u16,
            len: NonZeroU16::new(rlp.len() as u16).expect("a node has bytes"),
            start: u32::try_from(start).expect("a block loads less than 4 GiB of nodes"),
        }
    }

    /// None for a node embedded in another's record.
    pub(crate) fn address(self) -> NodeAddress {
        NodeAddress::from_bytes(self.address)
    }

    /// The reference to the node as it was loaded.
    pub(crate) fn reference(self, arena: &RecordArena) -> NodeReference {
        if self.address().is_none() {
            return NodeReference::to_embedded(self.rlp(arena));
        }
        let hash = arena.bytes(self.start as usize - HASH_BYTES, HASH_BYTES);
        NodeReference::to_hash(&B256::from_slice(hash))
    }

    pub(crate) fn record(self, arena: &RecordArena) -> &[u8] {
        arena.bytes(self.start as usize, usize::from(self.prefix_len) + self.rlp_bytes())
    }

    pub(crate) fn rlp(self, arena: &RecordArena) -> &[u8] {
        arena.bytes(self.start as usize + usize::from(self.prefix_len), self.rlp_bytes())
    }

    /// Where the RLP begins in the arena.
    pub(crate) fn rlp_start(self) -> u32 {
        self.start + u32::from(self.prefix_len)
    }

    pub(crate) fn rlp_bytes(self) -> usize {
        usize::from(self.len.get())
    }

    /// The node, which was taken apart before.
    pub(crate) fn node(self, arena: &RecordArena) -> RecordNode<'_> {
        let node = if self.address().is_none() {
            record::parse_embedded(self.rlp(arena))
        } else {
            record::parse(self.record(arena))
        };
        node.expect("the record was read before")
    }

    /// Copies the record, and the hash before it, to the end of another arena.
    pub(crate) fn copy(self, from: &RecordArena, to: &mut RecordArena) -> Self {
        let hash_bytes = if self.address().is_none() { 0 } else { HASH_BYTES };
        let hash = from.bytes(self.start as usize - hash_bytes, hash_bytes);
        let start = to.append(hash, self.record(from)) + hash_bytes;
        Self { start: start as u32, ..self }
    }
}

/// The fields that all nodes have.
#[derive(Clone, Debug)]
pub(crate) struct NodeHead {
    /// `None` for a node that the block made.
    pub(crate) origin: Option<NodeOrigin>,
    pub(crate) reference: NodeReference,
    /// Whether the node as loaded belongs to the witness.
    pub(crate) is_captured: bool,
    /// Whether the node may be another than the loaded one.
    pub(crate) is_modified: bool,
}

impl NodeHead {
    pub(crate) fn new() -> Self {
        Self {
            origin: None,
            reference: NodeReference::UNKNOWN,
            is_captured: false,
            is_modified: true,
        }
    }

    pub(crate) fn loaded(origin: NodeOrigin, reference: NodeReference) -> Self {
        let origin = Some(origin);
        Self { origin, reference, is_modified: false, ..Self::new() }
    }

    /// The node has changed, or one below it.
    pub(crate) fn modify(&mut self) {
        self.is_modified = true;
        self.reference.len = 0;
    }
}

/// A branch. Branches and leaves take exactly two cache lines, since cache misses dominate the cost
/// of walks.
#[derive(Clone, Debug)]
#[repr(C, align(128))]
pub(crate) struct OverlayBranch {
    pub(crate) children: [NodeLink; 16],
    pub(crate) head: NodeHead,
    /// The children that are not empty.
    pub(crate) mask: u16,
    /// The children that the origin has.
    pub(crate) origin_mask: u16,
    /// The children that may be others than the origin's.
    pub(crate) changed: u16,
    /// The children that may have to be hashed.
    pub(crate) dirty: u16,
    /// Whether all children that the origin has are hashes.
    pub(crate) has_origin_hashes: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct OverlayExtension {
    pub(crate) head: NodeHead,
    /// A key below the extension.
    pub(crate) key: B256,
    /// The path is the nibbles of the key from `depth` up to `end`.
    pub(crate) depth: u8,
    pub(crate) end: u8,
    pub(crate) child: NodeLink,
}

#[derive(Clone, Debug)]
#[repr(align(128))]
pub(crate) struct OverlayLeaf {
    pub(crate) head: NodeHead,
    pub(crate) key: B256,
    /// The path is the nibbles of the key from here on.
    pub(crate) depth: u8,
    /// Whether the value was set ahead, and not confirmed yet.
    pub(crate) is_ahead: bool,
    pub(crate) value: LeafValue,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum LeafValue {
    Slot(U256),
    /// An index into [`Overlay::accounts`].
    Account(u32),
}

/// An account with what its record says beyond it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AccountValue {
    pub(crate) account: Account,
    /// The storage as loaded.
    pub(crate) base_storage: Version,
    /// The index of the account's storage in its shard.
    pub(crate) storage: Option<u32>,
}

/// A trie, or the part of one below a nibble.
#[derive(Clone, Debug)]
pub(crate) struct OverlayTree {
    pub(crate) root: NodeLink,
    /// How many nibbles are above the root.
    pub(crate) depth: u8,
    pub(crate) is_accounts: bool,
    /// Leaves set ahead.
    pub(crate) ahead: Vec<u32>,
}

impl OverlayBranch {
    pub(crate) fn new() -> Self {
        Self {
            head: NodeHead::new(),
            children: [NodeLink::EMPTY; 16],
            mask: 0,
            origin_mask: 0,
            changed: 0,
            dirty: 0,
            has_origin_hashes: false,
        }
    }

    /// Whether the branch has the children of its origin, and all of these are hashes.
    pub(crate) fn is_patchable(&self) -> bool {
        self.has_origin_hashes && self.mask == self.origin_mask
    }
}

impl OverlayExtension {
    /// The item of the child in the origin's RLP.
    pub(crate) fn origin_item<'a>(&self, arena: &'a RecordArena) -> &'a [u8] {
        let origin = self.head.origin.expect("the child is the origin's");
        let RecordNode::Extension(extension) = origin.node(arena) else {
            unreachable!("it was an extension")
        };
        extension.item()
    }
}

const _: () = assert!(size_of::<OverlayBranch>() == 128 && size_of::<OverlayLeaf>() == 128);
