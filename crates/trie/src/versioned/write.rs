//! Writing the changed nodes of a block: children before parents, in the order of keys.

use super::{
    NodeAddress, RecordSink,
    cut::{JoinedRoot, TriePart},
    hash::bits,
    node::{LeafValue, LinkTarget, NodeHead, NodeLink, OverlayBranch},
    overlay::Overlay,
    record::{
        RecordChild, RecordNode, begin_account_leaf, begin_branch, begin_extension, begin_slot_leaf,
    },
    record_arena::RecordArena,
    shard::{ShardStorage, StorageForm},
};

/// A part of a trie, and the storages of the accounts in it.
type PartWithStorages<'a> = (&'a TriePart, &'a [ShardStorage]);

pub(crate) struct VersionWriter<'a, S> {
    sink: &'a mut S,
    /// The record under construction.
    record: Vec<u8>,
}

impl<'a, S: RecordSink> VersionWriter<'a, S> {
    pub(crate) fn new(sink: &'a mut S) -> Self {
        Self { sink, record: Vec::with_capacity(S::MAX_RECORD_BYTES) }
    }

    /// Writes a trie that consists of parts, and returns the address of its root.
    pub(crate) fn joined(
        &mut self,
        joined: &JoinedRoot,
        parts: &[PartWithStorages<'_>],
    ) -> NodeAddress {
        let mut addresses = [NodeAddress::NONE; 16];
        match joined {
            JoinedRoot::Nothing => unreachable!("only finished tries are written"),
            JoinedRoot::Empty => NodeAddress::NONE,
            JoinedRoot::One(index) => self.part(parts[*index]),
            JoinedRoot::Branch(rlp) => {
                for (address, part) in addresses.iter_mut().zip(parts) {
                    *address = self.part(*part);
                }
                begin_branch(&mut self.record, &addresses);
                self.record.extend_from_slice(rlp);
                self.append()
            }
        }
    }

    fn part(&mut self, (part, storages): PartWithStorages<'_>) -> NodeAddress {
        self.node(&part.overlay, part.tree.root, storages)
    }

    fn append(&mut self) -> NodeAddress {
        let address = self.sink.append(&self.record);
        assert!(!address.is_none(), "a record stands somewhere");
        address
    }

    /// Writes a node, if it has changed, and the changed nodes below it. Returns its address. The
    /// recursion is as deep as two keys are long.
    fn node(
        &mut self,
        overlay: &Overlay,
        link: NodeLink,
        storages: &[ShardStorage],
    ) -> NodeAddress {
        let head = match link.target() {
            LinkTarget::Empty => return NodeAddress::NONE,
            LinkTarget::Blinded(index) => return overlay.blinded[index].address,
            _ => overlay.head(link).expect("the node above says what is not loaded"),
        };
        if overlay.is_as_loaded(head) {
            return head.origin.expect("it was loaded").address();
        }
        assert!(head.reference.is_known(), "what is written has been hashed");
        if head.reference.is_embedded() {
            return NodeAddress::NONE;
        }
        match link.target() {
            LinkTarget::Branch(id) => {
                let branch = &overlay.branches[id];
                let children = self.children(overlay, branch, storages);
                begin_branch(&mut self.record, &children);
            }
            LinkTarget::Extension(id) => {
                let extension = &overlay.extensions[id];
                let child = match extension.child.target() {
                    LinkTarget::Recorded => origin_child(&extension.head, &overlay.arena, 0),
                    _ => self.node(overlay, extension.child, storages),
                };
                begin_extension(&mut self.record, child);
            }
            LinkTarget::Leaf(id) => match overlay.leaves[id].value {
                LeafValue::Slot(_) => begin_slot_leaf(&mut self.record),
                LeafValue::Account(index) => {
                    let value = &overlay.accounts[index as usize];
                    let storage = match value.storage {
                        Some(storage) => self.storage(overlay, &storages[storage as usize]),
                        None => value.base_storage.address,
                    };
                    begin_account_leaf(&mut self.record, storage);
                }
            },
            _ => unreachable!("the node is loaded"),
        }
        overlay.encode(link, &mut self.record);
        self.append()
    }

    fn children(
        &mut self,
        overlay: &Overlay,
        branch: &OverlayBranch,
        storages: &[ShardStorage],
    ) -> [NodeAddress; 16] {
        let mut addresses = [NodeAddress::NONE; 16];
        for nibble in bits(branch.mask) {
            let link = branch.children[nibble];
            addresses[nibble] = match link.target() {
                LinkTarget::Recorded => origin_child(&branch.head, &overlay.arena, nibble),
                _ => self.node(overlay, link, storages),
            };
        }
        addresses
    }

    fn storage(&mut self, overlay: &Overlay, storage: &ShardStorage) -> NodeAddress {
        if storage.root == storage.base.root {
            return storage.base.address;
        }
        match &storage.form {
            StorageForm::Whole(tree) => self.node(overlay, tree.root, &[]),
            StorageForm::Cut(cut) => {
                let parts: Vec<PartWithStorages<'_>> =
                    cut.parts.iter().map(|part| (part, &[][..])).collect();
                self.joined(&cut.joined, &parts)
            }
        }
    }
}

/// The address of a child that was not loaded.
fn origin_child(head: &NodeHead, arena: &RecordArena, nibble: usize) -> NodeAddress {
    let origin = head.origin.expect("what is not loaded is the origin's");
    let child = match origin.node(arena) {
        RecordNode::Branch(branch) => branch.child(nibble).expect("the record was read before"),
        RecordNode::Extension(extension) => extension.child,
        RecordNode::Leaf(_) => unreachable!("nothing is below a leaf"),
    };
    match child {
        RecordChild::Record { address, .. } => address,
        RecordChild::Embedded(_) | RecordChild::Empty => NodeAddress::NONE,
    }
}
