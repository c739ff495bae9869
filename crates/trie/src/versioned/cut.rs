//! Tries cut by the first nibble of the key into parts, each of which one thread can work on.

use super::{
    NodeAddress, Records, Version,
    hash::encode_branch,
    key::{nibble, with_nibble},
    node::{BlindedNode, LinkTarget, NodeHead, NodeLink, OverlayBranch, OverlayLeaf, OverlayTree},
    overlay::Overlay,
    record::{self, RecordChild, RecordNode},
};
use crate::{EMPTY_ROOT_HASH, Error};
use alloy_primitives::{B256, U256, keccak256};
use std::mem;

/// A tree and the nodes of it that are loaded, or of several trees and a main one.
#[derive(Clone, Debug)]
pub(crate) struct TriePart {
    pub(crate) overlay: Overlay,
    pub(crate) tree: OverlayTree,
}

/// A trie whose root is a branch, in sixteen parts.
#[derive(Clone, Debug)]
pub(crate) struct CutTrie {
    pub(crate) root: CutRoot,
    /// Whether the root belongs to the witness.
    pub(crate) is_captured: bool,
    pub(crate) parts: Vec<TriePart>,
    pub(crate) joined: JoinedRoot,
}

/// The root of a trie that is cut, a branch.
#[derive(Clone, Debug)]
pub(crate) struct CutRoot {
    pub(crate) address: NodeAddress,
    record: Vec<u8>,
}

impl CutRoot {
    fn branch(&self) -> record::RecordBranch<'_> {
        match record::parse(&self.record) {
            Ok(RecordNode::Branch(branch)) => branch,
            _ => unreachable!("the root is a branch"),
        }
    }

    pub(crate) fn rlp(&self) -> &[u8] {
        self.branch().rlp
    }
}

/// The root of a trie joined from its parts.
#[derive(Clone, Debug, Default)]
pub(crate) enum JoinedRoot {
    /// No more than they were.
    #[default]
    Nothing,
    /// A trie without entries.
    Empty,
    /// The only part left.
    One(usize),
    /// A branch with this RLP.
    Branch(Vec<u8>),
}

impl TriePart {
    /// A whole trie in one part.
    pub(crate) fn whole(version: &Version, is_accounts: bool) -> Self {
        let mut overlay = Overlay::default();
        let tree = overlay.tree(version, is_accounts);
        Self { overlay, tree }
    }

    /// The parts of the trie whose root is this branch.
    pub(crate) fn below(root: &CutRoot, is_accounts: bool) -> Result<Vec<Self>, Error> {
        let mut parts = Vec::with_capacity(16);
        for nibble in 0..16 {
            let mut overlay = Overlay::default();
            let base = recorded_child(root, nibble)?;
            let tree = overlay.subtree(base, 1, is_accounts);
            parts.push(Self { overlay, tree });
        }
        Ok(parts)
    }

    /// Hashes the changed nodes.
    pub(crate) fn hash(&mut self) {
        self.overlay.hash([self.tree.root], usize::MAX);
    }
}

/// The child of the root of a trie, which is never embedded: it has at least half a key.
fn recorded_child(root: &CutRoot, nibble: usize) -> Result<Option<BlindedNode>, Error> {
    let malformed = |reason| Error::MalformedRecord { address: root.address, reason };
    match root.branch().child(nibble).map_err(malformed)? {
        RecordChild::Empty => Ok(None),
        RecordChild::Record { address, hash } => {
            Ok(Some(BlindedNode { address, hash: B256::from(*hash) }))
        }
        RecordChild::Embedded(_) => Err(malformed("node embedded in the root of a trie")),
    }
}

/// The root of a version, if it is a branch.
pub(crate) fn branch_root<R: Records>(
    records: &R,
    version: &Version,
) -> Result<Option<CutRoot>, Error> {
    let address = version.address;
    if address.is_none() {
        return Ok(None);
    }
    let record = records.record(address)?;
    let malformed = |reason| Error::MalformedRecord { address, reason };
    match record::parse(record.as_ref()).map_err(malformed)? {
        RecordNode::Branch(branch) => {
            branch.children().map_err(malformed)?;
            let record = record.as_ref()[..branch.start + branch.rlp.len()].to_vec();
            Ok(Some(CutRoot { address, record }))
        }
        _ => Ok(None),
    }
}

/// Joins the root of a trie from its parts, which are hashed, and returns its hash.
pub(crate) fn join<R: Records>(
    records: &R,
    parts: &mut [&mut TriePart],
) -> Result<(JoinedRoot, B256), Error> {
    let references = parts.iter().map(|part| part.overlay.root_reference(&part.tree));
    let references: Vec<_> = references.collect();
    let mut present = (0..16).filter(|nibble| references[*nibble].is_some());
    let Some(first) = present.next() else { return Ok((JoinedRoot::Empty, EMPTY_ROOT_HASH)) };
    if present.next().is_none() {
        let hash = raise(records, parts[first], first)?;
        return Ok((JoinedRoot::One(first), hash));
    }
    let mut rlp = Vec::with_capacity(532);
    encode_branch(&references, &mut rlp);
    let hash = keccak256(&rlp);
    Ok((JoinedRoot::Branch(rlp), hash))
}

/// Makes the only part that is left the whole trie, and returns its hash.
fn raise<R: Records>(records: &R, part: &mut TriePart, nibble: usize) -> Result<B256, Error> {
    let TriePart { overlay, tree } = part;
    let key = with_nibble(B256::ZERO, 0, nibble);
    overlay.load_root(records, tree, &key, true)?;
    tree.root = overlay.lengthen(tree.root, &key, 0, 1);
    tree.depth = 0;
    overlay.hash([tree.root], usize::MAX);
    let reference = overlay.root_reference(tree).expect("the part is not empty");
    Ok(reference.root_hash())
}

/// Sets slots and then clears those with value zero.
pub(crate) fn apply_slots<R: Records>(
    records: &R,
    overlay: &mut Overlay,
    tree: &mut OverlayTree,
    slots: &[&(B256, U256)],
) -> Result<(), Error> {
    for (slot, value) in slots.iter().filter(|(_, value)| !value.is_zero()) {
        overlay.set_slot(records, tree, slot, *value)?;
    }
    overlay.take_back(records, tree)?;
    for (slot, _) in slots.iter().filter(|(_, value)| value.is_zero()) {
        overlay.remove(records, tree, slot)?;
    }
    Ok(())
}

/// The slots by the first nibble of their keys.
pub(crate) fn by_nibble(slots: &[(B256, U256)]) -> [Vec<&(B256, U256)>; 16] {
    let mut parted = [const { Vec::new() }; 16];
    for slot in slots {
        parted[nibble(&slot.0, 0)].push(slot);
    }
    parted
}

/// The slots in order.
///
/// # Panics
/// If there is a slot twice.
pub(crate) fn sorted(mut slots: Vec<&(B256, U256)>) -> Vec<&(B256, U256)> {
    slots.sort_unstable_by_key(|(slot, _)| slot);
    let is_unique = slots.is_sorted_by(|(a, _), (b, _)| a < b);
    assert!(is_unique, "a slot is changed at most once");
    slots
}

impl CutTrie {
    /// Cuts a tree, the root of which is a loaded branch, out of an overlay; `None` if it is not.
    pub(crate) fn out_of(
        overlay: &mut Overlay,
        tree: &mut OverlayTree,
    ) -> Result<Option<Self>, Error> {
        let LinkTarget::Branch(id) = tree.root.target() else { return Ok(None) };
        let Some(origin) = overlay.branches[id].head.origin else { return Ok(None) };
        let record = origin.record(&overlay.arena).to_vec();
        let root = CutRoot { address: origin.address(), record };
        let mut parts = TriePart::below(&root, tree.is_accounts)?;
        let OverlayBranch { head, children, .. } =
            mem::replace(&mut overlay.branches[id], OverlayBranch::new());
        for (part, link) in parts.iter_mut().zip(children).filter(|(_, link)| link.is_loaded()) {
            let mut moving = NodeMove { from: overlay, to: part };
            let root = moving.link(link);
            part.tree.root = root;
        }
        let is_captured = head.is_captured;
        Ok(Some(Self { root, is_captured, parts, joined: JoinedRoot::Nothing }))
    }

    /// Joins the root and returns its hash.
    pub(crate) fn join<R: Records>(&mut self, records: &R) -> Result<B256, Error> {
        let mut parts: Vec<_> = self.parts.iter_mut().collect();
        let (joined, hash) = join(records, &mut parts)?;
        self.joined = joined;
        Ok(hash)
    }

    /// The addresses of the nodes of the witness.
    pub(crate) fn captured(&self) -> impl Iterator<Item = NodeAddress> {
        let root = self.is_captured.then_some(self.root.address);
        let parts = self.parts.iter().flat_map(|part| part.overlay.captured());
        root.into_iter().chain(parts.map(|origin| origin.address()))
    }
}

/// Nodes on their way from one overlay to a part's.
struct NodeMove<'a> {
    from: &'a mut Overlay,
    to: &'a mut TriePart,
}

impl NodeMove<'_> {
    /// Moves a node and all nodes below it. The recursion is as deep as a key is long.
    fn link(&mut self, link: NodeLink) -> NodeLink {
        match link.target() {
            LinkTarget::Branch(id) => {
                let mut branch = mem::replace(&mut self.from.branches[id], OverlayBranch::new());
                self.head(&mut branch.head);
                branch.children = branch.children.map(|child| self.link(child));
                self.to.overlay.add_branch(branch)
            }
            LinkTarget::Extension(id) => {
                let mut extension = self.from.extensions[id].clone();
                self.from.extensions[id].head = NodeHead::new();
                self.head(&mut extension.head);
                extension.child = self.link(extension.child);
                self.to.overlay.add_extension(extension)
            }
            LinkTarget::Leaf(id) => {
                let old = &mut self.from.leaves[id];
                let OverlayLeaf { key, depth, is_ahead, value, .. } = *old;
                let mut head = mem::replace(&mut old.head, NodeHead::new());
                self.head(&mut head);
                if is_ahead {
                    self.to.tree.ahead.push(self.to.overlay.leaves.len() as u32);
                }
                self.to.overlay.add_leaf(OverlayLeaf { head, key, depth, is_ahead, value })
            }
            LinkTarget::Blinded(index) => {
                let overlay = &mut self.to.overlay;
                overlay.blinded.push(self.from.blinded[index]);
                NodeLink::blinded(overlay.blinded.len() - 1)
            }
            LinkTarget::Empty | LinkTarget::Recorded => link,
        }
    }

    fn head(&mut self, head: &mut NodeHead) {
        let to = &mut self.to.overlay;
        let Some(origin) = &mut head.origin else { return };
        *origin = origin.copy(&self.from.arena, &mut to.arena);
    }
}
