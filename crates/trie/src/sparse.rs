use crate::{
    EMPTY_ROOT_HASH, Error, NodeSource,
    nibbles::{Nibbles, common_prefix_len},
    node::{
        NodeArena, NodeId, NodePosition, SparseBranch, SparseChild, SparseNode, SparseReference,
    },
};
use alloy_primitives::{B256, Bytes, keccak256};
use std::{collections::BTreeSet, mem};

#[cfg(test)]
mod tests;

/// One Merkle-Patricia trie of which only the nodes on the paths that were asked for are in
/// memory.
///
/// Keys are byte strings of at most [`MAX_KEY_BYTES`](crate::MAX_KEY_BYTES) bytes, taken as they
/// are: the caller hashes them where the trie is a secure one. Values are never empty.
///
/// # What is revealed
/// Which nodes an operation takes from its source is part of its contract, because they become
/// the witness:
/// 1. the nodes on the path of the key, as far as the path goes: to the value, or to the empty
///    slot, leaf or extension that proves the key absent (but not to what is below that
///    extension);
/// 2. where a removal leaves a branch with a single child, that child, whether it is a leaf, an
///    extension or a branch, and nothing below it.
///
/// # Errors
/// Every operation with a source fails with [`Error::MissingNode`] where the source lacks a
/// node, with [`Error::MalformedNode`] where it has no valid trie node, and with
/// [`Error::KeyTooLong`]. The trie then has more nodes revealed at most, the same content and
/// root, and the operation may be tried again.
#[derive(Clone, Debug)]
pub struct SparseTrie {
    root: SparseChild,
    /// The root hash; `None` while it has to be computed.
    root_hash: Option<B256>,
    arena: NodeArena,
    /// The nodes taken from a source, in that order.
    revealed: Vec<Bytes>,
    /// The nodes that the latest walk went through, from the root.
    steps: Vec<SparseStep>,
    /// A buffer for encoding nodes.
    buffer: Vec<u8>,
}

/// A node on the path of a key.
#[derive(Clone, Copy, Debug)]
struct SparseStep {
    node: NodeId,
    /// How many nibbles of the key are above the node.
    depth: usize,
}

/// The reference to a node from above.
#[derive(Clone, Copy, Debug)]
enum SparseParent {
    Root,
    Extension(NodeId),
    Branch(NodeId, u8),
}

/// The one entry that a removal leaves in a branch.
#[derive(Clone, Copy, Debug)]
enum Survivor {
    Value,
    Child { nibble: u8, node: NodeId },
}

impl SparseTrie {
    /// The trie with this root hash, of which nothing is revealed yet.
    pub fn new(root: B256) -> Self {
        let child =
            if root == EMPTY_ROOT_HASH { SparseChild::Empty } else { SparseChild::Blinded(root) };
        Self {
            root: child,
            root_hash: Some(root),
            arena: NodeArena::default(),
            revealed: Vec::new(),
            steps: Vec::new(),
            buffer: Vec::new(),
        }
    }

    /// As [`new`](Self::new), of a trie whose keys are all hashes: a branch with a value is
    /// malformed there.
    pub(crate) fn of_hashes(root: B256) -> Self {
        let mut trie = Self::new(root);
        trie.arena.has_equal_keys = true;
        trie
    }

    /// The trie without entries.
    pub fn empty() -> Self {
        Self::new(EMPTY_ROOT_HASH)
    }

    /// The value of `key`, or `None` where the trie proves that it has none.
    ///
    /// # Errors
    /// See [`SparseTrie`].
    pub fn get(
        &mut self,
        key: &[u8],
        nodes: &(impl NodeSource + ?Sized),
    ) -> Result<Option<&[u8]>, Error> {
        if !self.walk(&Nibbles::from_key(key)?, nodes)? {
            return Ok(None);
        }
        Ok(match &self.arena.slot(self.last_step().node).node {
            SparseNode::Leaf { value, .. } => Some(value),
            SparseNode::Branch(branch) => branch.value.as_deref(),
            SparseNode::Extension { .. } => unreachable!("a key is found at a value"),
        })
    }

    /// Gives `key` this value, whether it had another, the same or none before.
    ///
    /// # Errors
    /// See [`SparseTrie`].
    ///
    /// # Panics
    /// If the value is empty: a trie cannot hold one.
    pub fn insert(
        &mut self,
        key: &[u8],
        value: Vec<u8>,
        nodes: &(impl NodeSource + ?Sized),
    ) -> Result<(), Error> {
        assert!(!value.is_empty(), "a trie value is never empty");
        let key = Nibbles::from_key(key)?;
        if self.walk(&key, nodes)? {
            self.replace_value(value);
        } else {
            self.add_value(&key, value);
        }
        Ok(())
    }

    /// Takes `key` out of the trie and says whether it was there. If not, nothing changes.
    ///
    /// # Errors
    /// See [`SparseTrie`].
    pub fn remove(
        &mut self,
        key: &[u8],
        nodes: &(impl NodeSource + ?Sized),
    ) -> Result<bool, Error> {
        if !self.walk(&Nibbles::from_key(key)?, nodes)? {
            return Ok(false);
        }
        let last = self.last_step();
        if matches!(self.arena.slot(last.node).node, SparseNode::Branch(_)) {
            let survivor = self.reveal_survivor(last, None, nodes)?;
            self.mark_changed();
            self.branch_mut(last.node).value = None;
            self.collapse(survivor);
        } else if let Some(parent) = self.steps.iter().rev().nth(1).copied() {
            let nibble = self.nibble_towards(parent.node, last.node);
            let survivor = self.reveal_survivor(parent, Some(nibble), nodes)?;
            self.mark_changed();
            self.steps.pop();
            self.branch_mut(parent.node).children[usize::from(nibble)] = SparseChild::Empty;
            self.collapse(survivor);
        } else {
            self.mark_changed();
            self.root = SparseChild::Empty;
        }
        Ok(true)
    }

    /// The root hash. Only nodes that changed since it was last asked for are hashed.
    pub fn root(&mut self) -> B256 {
        if let Some(hash) = self.root_hash {
            return hash;
        }
        let hash = match self.root {
            SparseChild::Empty => EMPTY_ROOT_HASH,
            SparseChild::Blinded(hash) => hash,
            SparseChild::Node(id) => {
                let mut buffer = mem::take(&mut self.buffer);
                let reference = self.reference(id, &mut buffer);
                self.buffer = buffer;
                reference.hash().unwrap_or_else(|| keccak256(reference.as_rlp()))
            }
        };
        self.root_hash = Some(hash);
        hash
    }

    /// Hands over the nodes that a hash-keyed store needs to have the trie as it is now: each
    /// node that was created or changed since the trie was opened, or since this was last
    /// called, with its hash, parents before children. Embedded nodes are in their parents. A
    /// node whose change was undone again, or that the trie has in another place too, may be
    /// handed over although the store has it.
    pub fn new_nodes(&mut self, sink: &mut impl FnMut(B256, Bytes)) {
        let root_hash = self.root();
        let SparseChild::Node(root) = self.root else { return };
        if !mem::take(&mut self.arena.slot_mut(root).is_new) {
            return;
        }
        let mut pending = vec![(root, root_hash)];
        while let Some((id, hash)) = pending.pop() {
            self.arena.encode(id, &mut self.buffer);
            sink(hash, Bytes::copy_from_slice(&self.buffer));
            for child in self.children(id) {
                let slot = self.arena.slot_mut(child);
                let hash = slot.reference.as_ref().and_then(SparseReference::hash);
                if mem::take(&mut slot.is_new)
                    && let Some(hash) = hash
                {
                    pending.push((child, hash));
                }
            }
        }
    }

    /// The nodes taken from a source since the trie was opened or [`Self::take_revealed`] was
    /// called: the trie's part of the witness. Each once, in lexicographic order. These are
    /// nodes of the trie as it was opened; nodes embedded in their parents are not listed apart.
    pub fn revealed(&self) -> Vec<Bytes> {
        sorted(self.revealed.clone())
    }

    /// As [`Self::revealed`], and forgets these nodes: later calls list later nodes alone.
    pub fn take_revealed(&mut self) -> Vec<Bytes> {
        sorted(mem::take(&mut self.revealed))
    }

    /// The proof of `key`, of its value or its absence: the nodes on its path, root first,
    /// without those embedded in their parents. Empty for a trie without entries. The proof is
    /// of the trie as it is now and can be checked with [`verify_proof`](crate::verify_proof).
    ///
    /// # Errors
    /// See [`SparseTrie`].
    pub fn proof(
        &mut self,
        key: &[u8],
        nodes: &(impl NodeSource + ?Sized),
    ) -> Result<Vec<Bytes>, Error> {
        self.root();
        self.walk(&Nibbles::from_key(key)?, nodes)?;
        let on_path: Vec<NodeId> = self.steps.iter().map(|step| step.node).collect();
        Ok(on_path.into_iter().filter_map(|id| self.rlp(id)).collect())
    }

    /// The proofs of several keys as one set of nodes: each once, in lexicographic order.
    /// Indexed [`by_hash`](crate::by_hash) it is a source with all that reading the keys needs.
    ///
    /// # Errors
    /// See [`SparseTrie`].
    pub fn multiproof<K: AsRef<[u8]>>(
        &mut self,
        keys: impl IntoIterator<Item = K>,
        nodes: &(impl NodeSource + ?Sized),
    ) -> Result<Vec<Bytes>, Error> {
        self.root();
        let mut on_paths = BTreeSet::new();
        for key in keys {
            self.walk(&Nibbles::from_key(key.as_ref())?, nodes)?;
            on_paths.extend(self.steps.iter().map(|step| step.node));
        }
        Ok(sorted(on_paths.into_iter().filter_map(|id| self.rlp(id)).collect()))
    }

    /// Follows `key` from the root and reveals the nodes on its path. Leaves the nodes passed in
    /// `steps` and says whether the last of them holds the key's value.
    fn walk(&mut self, key: &[u8], nodes: &(impl NodeSource + ?Sized)) -> Result<bool, Error> {
        self.steps.clear();
        let (mut link, mut depth) = (SparseParent::Root, 0);
        loop {
            let Some(node) = self.reveal(link, depth, nodes)? else { return Ok(false) };
            self.steps.push(SparseStep { node, depth });
            match &self.arena.slot(node).node {
                SparseNode::Leaf { path, .. } => return Ok(**path == key[depth..]),
                SparseNode::Extension { path, .. } => {
                    if !key[depth..].starts_with(path) {
                        return Ok(false);
                    }
                    depth += path.len();
                    link = SparseParent::Extension(node);
                }
                SparseNode::Branch(branch) => {
                    let Some(&nibble) = key.get(depth) else { return Ok(branch.value.is_some()) };
                    depth += 1;
                    link = SparseParent::Branch(node, nibble);
                }
            }
        }
    }

    /// The node that the link refers to, taken from the source if it is blinded.
    fn reveal(
        &mut self,
        link: SparseParent,
        depth: usize,
        nodes: &(impl NodeSource + ?Sized),
    ) -> Result<Option<NodeId>, Error> {
        let hash = match *self.child_mut(link) {
            SparseChild::Empty => return Ok(None),
            SparseChild::Node(id) => return Ok(Some(id)),
            SparseChild::Blinded(hash) => hash,
        };
        let rlp = nodes.node(&hash).ok_or(Error::MissingNode { hash })?;
        debug_assert_eq!(keccak256(&rlp), hash, "a source returns the preimage of the hash");
        let place = match link {
            SparseParent::Root => NodePosition::Root,
            SparseParent::Extension(_) => NodePosition::BelowExtension,
            SparseParent::Branch(..) => NodePosition::BelowBranch,
        };
        let id = self
            .arena
            .decode(&rlp, &hash, depth, place)
            .map_err(|reason| Error::MalformedNode { hash, reason })?;
        *self.child_mut(link) = SparseChild::Node(id);
        self.revealed.push(rlp);
        Ok(Some(id))
    }

    fn child_mut(&mut self, link: SparseParent) -> &mut SparseChild {
        match link {
            SparseParent::Root => &mut self.root,
            SparseParent::Extension(id) => match &mut self.arena.slot_mut(id).node {
                SparseNode::Extension { child, .. } => child,
                _ => unreachable!("the link is an extension's"),
            },
            SparseParent::Branch(id, nibble) => {
                &mut self.branch_mut(id).children[usize::from(nibble)]
            }
        }
    }

    fn branch_mut(&mut self, id: NodeId) -> &mut SparseBranch {
        match &mut self.arena.slot_mut(id).node {
            SparseNode::Branch(branch) => branch,
            _ => unreachable!("the node is a branch"),
        }
    }

    fn last_step(&self) -> SparseStep {
        *self.steps.last().expect("the walk went through a node")
    }

    /// The nibble under which the branch `parent` has the child `id`.
    fn nibble_towards(&mut self, parent: NodeId, id: NodeId) -> u8 {
        let children = &self.branch_mut(parent).children;
        let is_wanted =
            |child: &SparseChild| matches!(child, SparseChild::Node(node) if *node == id);
        let nibble = children.iter().position(is_wanted);
        nibble.expect("a step's node is below the step before") as u8
    }

    /// Every node that the latest walk went through has to be hashed and stored again.
    fn mark_changed(&mut self) {
        self.root_hash = None;
        for step in &self.steps {
            let slot = self.arena.slot_mut(step.node);
            slot.reference = None;
            slot.is_new = true;
        }
    }

    /// Replaces the value that the latest walk has found.
    fn replace_value(&mut self, value: Vec<u8>) {
        let old = match &mut self.arena.slot_mut(self.last_step().node).node {
            SparseNode::Leaf { value, .. } => value,
            SparseNode::Branch(branch) => branch.value.as_mut().expect("the key was found here"),
            SparseNode::Extension { .. } => unreachable!("a key is found at a value"),
        };
        if *old != value {
            *old = value;
            self.mark_changed();
        }
    }

    /// Adds a value where the latest walk, along `key`, has found none.
    fn add_value(&mut self, key: &[u8], value: Vec<u8>) {
        self.mark_changed();
        let Some(&SparseStep { node: id, depth }) = self.steps.last() else {
            let leaf = SparseNode::Leaf { path: key.into(), value };
            self.root = SparseChild::Node(self.arena.add(leaf));
            return;
        };
        let rest = &key[depth..];
        if matches!(self.arena.slot(id).node, SparseNode::Branch(_)) {
            self.fill(id, rest, value);
            return;
        }
        // A leaf or an extension that leaves the key's path: a branch comes where they part.
        let vacant = SparseNode::Branch(Box::new(SparseBranch::empty()));
        let old = mem::replace(&mut self.arena.slot_mut(id).node, vacant);
        let (SparseNode::Leaf { path, .. } | SparseNode::Extension { path, .. }) = &old else {
            unreachable!("branches are dealt with above")
        };
        let path = *path;
        let shared = common_prefix_len(&path, rest);
        let branch = if shared == 0 {
            id
        } else {
            let branch = self.arena.add(SparseNode::Branch(Box::new(SparseBranch::empty())));
            let path = path[..shared].into();
            self.arena.slot_mut(id).node =
                SparseNode::Extension { path, child: SparseChild::Node(branch) };
            branch
        };
        self.hang(branch, &path[shared..], old);
        self.fill(branch, &rest[shared..], value);
    }

    /// Puts a value into the branch, or into a new leaf below it.
    fn fill(&mut self, branch: NodeId, path: &[u8], value: Vec<u8>) {
        if let Some((&nibble, path)) = path.split_first() {
            let leaf = self.arena.add(SparseNode::Leaf { path: path.into(), value });
            self.branch_mut(branch).children[usize::from(nibble)] = SparseChild::Node(leaf);
        } else {
            self.branch_mut(branch).value = Some(value);
        }
    }

    /// Puts a leaf or an extension below the branch, its path shortened to `path`.
    fn hang(&mut self, branch: NodeId, path: &[u8], node: SparseNode) {
        match (node, path.split_first()) {
            (SparseNode::Leaf { value, .. }, _) => self.fill(branch, path, value),
            (SparseNode::Extension { child, .. }, Some((&nibble, path))) => {
                let child = if path.is_empty() {
                    child
                } else {
                    let extension = SparseNode::Extension { path: path.into(), child };
                    SparseChild::Node(self.arena.add(extension))
                };
                self.branch_mut(branch).children[usize::from(nibble)] = child;
            }
            _ => unreachable!("an extension that does not match the key has a nibble left"),
        }
    }

    /// The entry that will be alone in the branch once its value, or its child at `removed`, is
    /// gone; `None` if more than one entry will be left. A child that will be alone is revealed.
    fn reveal_survivor(
        &mut self,
        branch: SparseStep,
        removed: Option<u8>,
        nodes: &(impl NodeSource + ?Sized),
    ) -> Result<Option<Survivor>, Error> {
        let entries = self.branch_mut(branch.node);
        if entries.occupied_count() > 2 {
            return Ok(None);
        }
        let other = (0..16).find(|&nibble| {
            let child = &entries.children[usize::from(nibble)];
            removed != Some(nibble) && !matches!(child, SparseChild::Empty)
        });
        let Some(nibble) = other else { return Ok(Some(Survivor::Value)) };
        let link = SparseParent::Branch(branch.node, nibble);
        let node = self.reveal(link, branch.depth + 1, nodes)?.expect("the child is not empty");
        Ok(Some(Survivor::Child { nibble, node }))
    }

    /// Replaces the branch at the end of the latest walk by what is left of it, and joins that
    /// to the extension above, if there is one.
    fn collapse(&mut self, survivor: Option<Survivor>) {
        let Some(survivor) = survivor else { return };
        let id = self.last_step().node;
        let left = match survivor {
            Survivor::Value => {
                let value = self.branch_mut(id).value.take().expect("the value is left");
                SparseNode::Leaf { path: [].as_slice().into(), value }
            }
            Survivor::Child { nibble, node } => self.lengthened(&[nibble], node),
        };
        self.arena.slot_mut(id).node = left;
        let Some(parent) = self.steps.iter().rev().nth(1).map(|step| step.node) else { return };
        if let SparseNode::Extension { path, .. } = &self.arena.slot(parent).node {
            let path = *path;
            let joined = self.lengthened(&path, id);
            self.arena.slot_mut(parent).node = joined;
        }
    }

    /// The replacement of node `id` with `prefix` before its path: `id` itself with a longer path,
    /// or an extension to it if it is a branch.
    fn lengthened(&mut self, prefix: &[u8], id: NodeId) -> SparseNode {
        match &mut self.arena.slot_mut(id).node {
            SparseNode::Leaf { path, value } => {
                SparseNode::Leaf { path: Nibbles::join(&[prefix, path]), value: mem::take(value) }
            }
            SparseNode::Extension { path, child } => {
                SparseNode::Extension { path: Nibbles::join(&[prefix, path]), child: *child }
            }
            SparseNode::Branch(_) => {
                SparseNode::Extension { path: prefix.into(), child: SparseChild::Node(id) }
            }
        }
    }

    /// The reference to a node, after hashing it and the changed nodes below. The recursion
    /// is as deep as a key is long.
    fn reference(&mut self, id: NodeId, buffer: &mut Vec<u8>) -> SparseReference {
        if let Some(reference) = self.arena.slot(id).reference {
            return reference;
        }
        for child in self.children(id) {
            self.reference(child, buffer);
        }
        self.arena.encode(id, buffer);
        let reference = SparseReference::to_node(buffer);
        self.arena.slot_mut(id).reference = Some(reference);
        reference
    }

    /// The revealed nodes directly below a node.
    fn children(&self, id: NodeId) -> impl Iterator<Item = NodeId> + use<> {
        let children = match &self.arena.slot(id).node {
            SparseNode::Leaf { .. } => [SparseChild::Empty; 16],
            SparseNode::Extension { child, .. } => {
                let mut children = [SparseChild::Empty; 16];
                children[0] = *child;
                children
            }
            SparseNode::Branch(branch) => branch.children,
        };
        children.into_iter().filter_map(|child| match child {
            SparseChild::Node(id) => Some(id),
            SparseChild::Empty | SparseChild::Blinded(_) => None,
        })
    }

    /// The RLP of a hashed node, or `None` if it is embedded in its parent.
    fn rlp(&mut self, id: NodeId) -> Option<Bytes> {
        let reference = self.arena.slot(id).reference.as_ref();
        let is_root = matches!(self.root, SparseChild::Node(root) if root == id);
        if !is_root && reference.is_some_and(|reference| reference.hash().is_none()) {
            return None;
        }
        self.arena.encode(id, &mut self.buffer);
        Some(Bytes::copy_from_slice(&self.buffer))
    }
}

fn sorted(mut nodes: Vec<Bytes>) -> Vec<Bytes> {
    nodes.sort_unstable();
    nodes.dedup();
    nodes
}
