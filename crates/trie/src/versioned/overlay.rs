//! The nodes of tries that a block has loaded or changed.
//!
//! Nodes name each other by [`NodeLink`]s into the vectors of one [`Overlay`], which may hold the
//! nodes of many [`OverlayTree`]s. A child that is not loaded costs nothing: its link says that it
//! is in the record of its parent. A node that was loaded keeps its record, which is its pre-image
//! for the witness, the template of its next encoding, and its value when a change is taken back.
//! Records are copied into one vector, because they come from all over the memory, and at the end
//! of a block that was half of the time.

use super::{
    NodeAddress, Records, Version,
    captured::CapturedNode,
    key::{KEY_NIBBLES, nibble, shared_nibbles, with_nibble},
    node::{
        AccountValue, BlindedNode, LeafValue, LinkTarget, NodeHead, NodeLink, NodeOrigin,
        NodeReference, OverlayBranch, OverlayExtension, OverlayLeaf, OverlayTree,
    },
    read::check_storage,
    record::{self, Reason, RecordChild, RecordNode},
    record_arena::RecordArena,
};
use crate::{
    Account, AccountInfo, Error,
    value::{decode_account, decode_slot},
};
use alloy_primitives::{B256, U256};

/// A node on the path of a key.
#[derive(Clone, Copy, Debug)]
struct PathStep {
    link: NodeLink,
    depth: u8,
}

/// The reference to a node from above.
#[derive(Clone, Copy, Debug)]
enum ParentLink {
    Root,
    Extension(usize),
    Branch(usize, usize),
}

/// The end of a walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WalkEnd {
    /// At the leaf of the key.
    Leaf(usize),
    /// At an empty child of the last branch, or in an empty trie.
    Vacancy,
    /// At a leaf or an extension that leaves the key's path.
    Divergence,
}

/// The loaded and changed nodes of some trees.
#[derive(Clone, Debug, Default)]
pub(crate) struct Overlay {
    pub(crate) branches: Vec<OverlayBranch>,
    pub(crate) extensions: Vec<OverlayExtension>,
    pub(crate) leaves: Vec<OverlayLeaf>,
    pub(crate) accounts: Vec<AccountValue>,
    pub(crate) blinded: Vec<BlindedNode>,
    /// The records of the nodes that were loaded.
    pub(crate) arena: RecordArena,
    /// The nodes of the witness, in the order in which they were captured.
    pub(crate) to_list: Vec<CapturedNode>,
    /// The nodes that the latest walk went through.
    steps: Vec<PathStep>,
}

/// A decoded node.
enum DecodedNode {
    Branch { mask: u16, records: u16 },
    Extension { key: B256, end: usize },
    Slot { key: B256, value: U256 },
    Account { key: B256, account: Account, storage: NodeAddress },
}

impl Overlay {
    /// A tree of these nodes, which is this version.
    pub(crate) fn tree(&mut self, version: &Version, is_accounts: bool) -> OverlayTree {
        let base = BlindedNode { address: version.address, hash: version.root };
        let base = (!version.address.is_none()).then_some(base);
        self.subtree(base, 0, is_accounts)
    }

    /// The part of a tree that is below `depth` nibbles, with this root.
    pub(crate) fn subtree(
        &mut self,
        base: Option<BlindedNode>,
        depth: u8,
        is_accounts: bool,
    ) -> OverlayTree {
        let root = base.map_or(NodeLink::EMPTY, |base| {
            self.blinded.push(base);
            NodeLink::blinded(self.blinded.len() - 1)
        });
        OverlayTree { root, depth, is_accounts, ahead: Vec::new() }
    }

    pub(crate) fn head(&self, link: NodeLink) -> Option<&NodeHead> {
        match link.target() {
            LinkTarget::Branch(id) => Some(&self.branches[id].head),
            LinkTarget::Extension(id) => Some(&self.extensions[id].head),
            LinkTarget::Leaf(id) => Some(&self.leaves[id].head),
            LinkTarget::Empty | LinkTarget::Recorded | LinkTarget::Blinded(_) => None,
        }
    }

    pub(crate) fn head_mut(&mut self, link: NodeLink) -> Option<&mut NodeHead> {
        match link.target() {
            LinkTarget::Branch(id) => Some(&mut self.branches[id].head),
            LinkTarget::Extension(id) => Some(&mut self.extensions[id].head),
            LinkTarget::Leaf(id) => Some(&mut self.leaves[id].head),
            LinkTarget::Empty | LinkTarget::Recorded | LinkTarget::Blinded(_) => None,
        }
    }

    /// The reference to a tree's root, which has been hashed; `None` if the tree is empty.
    pub(crate) fn root_reference(&self, tree: &OverlayTree) -> Option<NodeReference> {
        match tree.root.target() {
            LinkTarget::Empty => None,
            LinkTarget::Blinded(index) => Some(NodeReference::to_hash(&self.blinded[index].hash)),
            _ => Some(self.head(tree.root).expect("a root is loaded or blinded").reference),
        }
    }

    /// The nodes with a record that belong to the witness.
    pub(crate) fn captured(&self) -> impl Iterator<Item = NodeOrigin> {
        let branches = self.branches.iter().map(|branch| &branch.head);
        branches
            .chain(self.extensions.iter().map(|extension| &extension.head))
            .chain(self.leaves.iter().map(|leaf| &leaf.head))
            .filter(|head| head.is_captured)
            .filter_map(|head| head.origin)
            .filter(|origin| !origin.address().is_none())
    }

    /// Makes a loaded node part of the witness.
    fn capture(&mut self, link: NodeLink) {
        let head = self.head_mut(link).expect("it is loaded");
        if std::mem::replace(&mut head.is_captured, true) {
            return;
        }
        // An embedded node comes with the one that it is in.
        if let Some(origin) = head.origin.filter(|origin| !origin.address().is_none()) {
            self.to_list.push(CapturedNode::new(origin, &self.arena));
        }
    }

    /// The number of nodes, removed ones included.
    pub(crate) fn nodes_count(&self) -> usize {
        self.branches.len() + self.extensions.len() + self.leaves.len()
    }

    /// Whether the node is as it was loaded, also if a change of it was taken back.
    pub(crate) fn is_as_loaded(&self, head: &NodeHead) -> bool {
        !head.is_modified
            || head.origin.is_some_and(|origin| origin.reference(&self.arena) == head.reference)
    }

    /// Follows `key` from the root and loads the nodes on its path. The nodes passed are left in
    /// `steps`, and marked as part of the witness if they are to be captured.
    pub(crate) fn walk<R: Records>(
        &mut self,
        records: &R,
        tree: &mut OverlayTree,
        key: &B256,
        is_captured: bool,
    ) -> Result<WalkEnd, Error> {
        self.steps.clear();
        let mut depth = usize::from(tree.depth);
        let mut place = ParentLink::Root;
        loop {
            let mut link = self.link(tree, place);
            if !link.is_loaded() {
                if link == NodeLink::EMPTY {
                    return Ok(WalkEnd::Vacancy);
                }
                link = self.load(records, tree, place, key, depth)?;
            }
            self.steps.push(PathStep { link, depth: depth as u8 });
            if is_captured {
                self.capture(link);
            }
            match link.target() {
                LinkTarget::Branch(id) => {
                    place = ParentLink::Branch(id, nibble(key, depth));
                    depth += 1;
                }
                LinkTarget::Extension(id) => {
                    let extension = &self.extensions[id];
                    depth = usize::from(extension.end);
                    if shared_nibbles(key, &extension.key) < depth {
                        return Ok(WalkEnd::Divergence);
                    }
                    place = ParentLink::Extension(id);
                }
                LinkTarget::Leaf(id) => {
                    let is_found = self.leaves[id].key == *key;
                    return Ok(if is_found { WalkEnd::Leaf(id) } else { WalkEnd::Divergence });
                }
                _ => unreachable!("the node is loaded"),
            }
        }
    }

    fn link(&self, tree: &OverlayTree, place: ParentLink) -> NodeLink {
        match place {
            ParentLink::Root => tree.root,
            ParentLink::Extension(id) => self.extensions[id].child,
            ParentLink::Branch(id, nibble) => self.branches[id].children[nibble],
        }
    }

    fn set_link(&mut self, tree: &mut OverlayTree, place: ParentLink, link: NodeLink) {
        match place {
            ParentLink::Root => tree.root = link,
            ParentLink::Extension(id) => self.extensions[id].child = link,
            ParentLink::Branch(id, nibble) => self.branches[id].children[nibble] = link,
        }
    }

    /// The reference to the node of the step at `index`.
    fn place(&self, index: usize, key: &B256) -> ParentLink {
        let Some(PathStep { link, depth }) = index.checked_sub(1).map(|above| self.steps[above])
        else {
            return ParentLink::Root;
        };
        match link.target() {
            LinkTarget::Branch(id) => ParentLink::Branch(id, nibble(key, usize::from(depth))),
            LinkTarget::Extension(id) => ParentLink::Extension(id),
            _ => unreachable!("nothing is below a leaf"),
        }
    }

    /// Loads the node at a link that is neither loaded nor empty. `key` is below it.
    fn load<R: Records>(
        &mut self,
        records: &R,
        tree: &mut OverlayTree,
        place: ParentLink,
        key: &B256,
        depth: usize,
    ) -> Result<NodeLink, Error> {
        let origin = match self.unloaded(tree, place)? {
            UnloadedNode::Embedded(origin) => origin,
            UnloadedNode::Record(blinded) => {
                records.look(blinded.address, |record| self.copy(&blinded, record))??
            }
        };
        let decoded = decode(origin, &self.arena, tree.is_accounts, key, depth)?;
        let is_branch = matches!(decoded, DecodedNode::Branch { .. });
        if matches!(place, ParentLink::Extension(_)) && !is_branch {
            let reason = "extension to a node other than a branch";
            return Err(Error::MalformedRecord { address: origin.address(), reason });
        }
        let link = self.add_loaded(decoded, origin, depth);
        self.set_link(tree, place, link);
        Ok(link)
    }

    /// Copies a record into the arena, so that it is near the others.
    fn copy(&mut self, blinded: &BlindedNode, record: &[u8]) -> Result<NodeOrigin, Error> {
        let address = blinded.address;
        let malformed = |reason| Error::MalformedRecord { address, reason };
        let node = record::parse(record).map_err(malformed)?;
        let rlp = node.start()..node.start() + node.rlp().len();
        Ok(NodeOrigin::recorded(&mut self.arena, blinded, record, rlp))
    }

    /// The node of a link that is not loaded.
    fn unloaded(&self, tree: &OverlayTree, place: ParentLink) -> Result<UnloadedNode, Error> {
        let link = self.link(tree, place);
        if let LinkTarget::Blinded(index) = link.target() {
            return Ok(UnloadedNode::Record(self.blinded[index]));
        }
        let (origin, child) = match place {
            ParentLink::Branch(id, nibble) => {
                let origin = self.branches[id].head.origin.expect("the child is its");
                let RecordNode::Branch(branch) = origin.node(&self.arena) else {
                    unreachable!("it was a branch")
                };
                (origin, branch.child(nibble))
            }
            ParentLink::Extension(id) => {
                let origin = self.extensions[id].head.origin.expect("the child is its");
                let RecordNode::Extension(extension) = origin.node(&self.arena) else {
                    unreachable!("it was an extension")
                };
                (origin, Ok(extension.child))
            }
            ParentLink::Root => unreachable!("a root is blinded, empty or loaded"),
        };
        let malformed = |reason| Error::MalformedRecord { address: origin.address(), reason };
        match child.map_err(malformed)? {
            RecordChild::Record { address, hash } => {
                Ok(UnloadedNode::Record(BlindedNode { address, hash: B256::from(*hash) }))
            }
            RecordChild::Embedded(rlp) => {
                Ok(UnloadedNode::Embedded(origin.embedded(rlp, &self.arena)))
            }
            RecordChild::Empty => unreachable!("the link would be empty"),
        }
    }

    fn add_loaded(&mut self, decoded: DecodedNode, origin: NodeOrigin, depth: usize) -> NodeLink {
        let head = NodeHead::loaded(origin, origin.reference(&self.arena));
        let depth = depth as u8;
        match decoded {
            DecodedNode::Branch { mask, records } => {
                let mut branch = OverlayBranch { head, ..OverlayBranch::new() };
                for (nibble, child) in branch.children.iter_mut().enumerate() {
                    if mask & 1 << nibble != 0 {
                        *child = NodeLink::RECORDED;
                    }
                }
                (branch.mask, branch.origin_mask) = (mask, mask);
                branch.has_origin_hashes = mask == records;
                self.add_branch(branch)
            }
            DecodedNode::Extension { key, end } => {
                let end = end as u8;
                self.add_extension(OverlayExtension {
                    head,
                    key,
                    depth,
                    end,
                    child: NodeLink::RECORDED,
                })
            }
            DecodedNode::Slot { key, value } => {
                let value = LeafValue::Slot(value);
                self.add_leaf(OverlayLeaf { head, key, depth, is_ahead: false, value })
            }
            DecodedNode::Account { key, account, storage } => {
                let base_storage = Version { root: account.storage_root, address: storage };
                let value = self.add_account(AccountValue { account, base_storage, storage: None });
                self.add_leaf(OverlayLeaf { head, key, depth, is_ahead: false, value })
            }
        }
    }

    pub(crate) fn add_branch(&mut self, branch: OverlayBranch) -> NodeLink {
        self.branches.push(branch);
        NodeLink::branch(self.branches.len() - 1)
    }

    pub(crate) fn add_extension(&mut self, extension: OverlayExtension) -> NodeLink {
        self.extensions.push(extension);
        NodeLink::extension(self.extensions.len() - 1)
    }

    pub(crate) fn add_leaf(&mut self, leaf: OverlayLeaf) -> NodeLink {
        self.leaves.push(leaf);
        NodeLink::leaf(self.leaves.len() - 1)
    }

    fn add_account(&mut self, account: AccountValue) -> LeafValue {
        self.accounts.push(account);
        LeafValue::Account((self.accounts.len() - 1) as u32)
    }

    /// The account of a leaf of the account trie.
    pub(crate) fn account(&self, leaf: usize) -> &AccountValue {
        match self.leaves[leaf].value {
            LeafValue::Account(index) => &self.accounts[index as usize],
            LeafValue::Slot(_) => unreachable!("the leaf is an account's"),
        }
    }

    pub(crate) fn account_mut(&mut self, leaf: usize) -> &mut AccountValue {
        match self.leaves[leaf].value {
            LeafValue::Account(index) => &mut self.accounts[index as usize],
            LeafValue::Slot(_) => unreachable!("the leaf is an account's"),
        }
    }

    /// The nodes that the latest walk went through, the last `skip` excepted, are to be hashed
    /// and written again.
    fn mark(&mut self, key: &B256, skip: usize) {
        let count = self.steps.len() - skip;
        for &PathStep { link, depth } in &self.steps[..count] {
            match link.target() {
                LinkTarget::Branch(id) => {
                    let branch = &mut self.branches[id];
                    let bit = 1 << nibble(key, usize::from(depth));
                    branch.changed |= bit;
                    branch.dirty |= bit;
                    branch.head.modify();
                }
                LinkTarget::Extension(id) => self.extensions[id].head.modify(),
                LinkTarget::Leaf(id) => self.leaves[id].head.modify(),
                _ => unreachable!("a step is a loaded node"),
            }
        }
    }

    /// Gives the slot a value other than zero.
    pub(crate) fn set_slot<R: Records>(
        &mut self,
        records: &R,
        tree: &mut OverlayTree,
        key: &B256,
        value: U256,
    ) -> Result<(), Error> {
        match self.walk(records, tree, key, true)? {
            WalkEnd::Leaf(id) => self.replace_slot(id, value, false),
            found => self.add(tree, key, LeafValue::Slot(value), found)?,
        }
        Ok(())
    }

    /// Gives the leaf at the end of the latest walk another value, maybe ahead.
    pub(crate) fn replace_slot(&mut self, id: usize, value: U256, is_ahead: bool) {
        let leaf = &mut self.leaves[id];
        leaf.is_ahead = is_ahead;
        if !matches!(leaf.value, LeafValue::Slot(old) if old == value) {
            leaf.value = LeafValue::Slot(value);
            let key = leaf.key;
            self.mark(&key, 0);
        }
    }

    /// Sets the account. If its storage has changed, that is the one with this index in the
    /// shard, and with this root.
    pub(crate) fn set_account<R: Records>(
        &mut self,
        records: &R,
        tree: &mut OverlayTree,
        key: &B256,
        info: &AccountInfo,
        storage: Option<(u32, B256)>,
    ) -> Result<(), Error> {
        let found = self.walk(records, tree, key, true)?;
        let base_storage = match found {
            WalkEnd::Leaf(id) => self.account(id).base_storage,
            WalkEnd::Vacancy | WalkEnd::Divergence => Version::EMPTY,
        };
        let AccountInfo { nonce, balance, code_hash } = *info;
        let storage_root = storage.map_or(base_storage.root, |(_, root)| root);
        let account = Account { nonce, balance, storage_root, code_hash };
        let storage = storage.map(|(index, _)| index);
        if let WalkEnd::Leaf(id) = found {
            let value = self.account_mut(id);
            value.storage = storage.or(value.storage);
            self.replace_account(id, account, false);
            return Ok(());
        }
        let value = self.add_account(AccountValue { account, base_storage, storage });
        self.add(tree, key, value, found)
    }

    /// Gives the leaf at the end of the latest walk another account, maybe ahead.
    pub(crate) fn replace_account(&mut self, id: usize, account: Account, is_ahead: bool) {
        self.leaves[id].is_ahead = is_ahead;
        let value = self.account_mut(id);
        if value.account != account {
            value.account = account;
            let key = self.leaves[id].key;
            self.mark(&key, 0);
        }
    }

    /// Takes back the values that were set ahead and not confirmed.
    pub(crate) fn take_back<R: Records>(
        &mut self,
        records: &R,
        tree: &mut OverlayTree,
    ) -> Result<(), Error> {
        for id in std::mem::take(&mut tree.ahead) {
            let id = id as usize;
            if !self.leaves[id].is_ahead {
                continue;
            }
            let key = self.leaves[id].key;
            let found = self.walk(records, tree, &key, false)?;
            assert_eq!(found, WalkEnd::Leaf(id), "nothing is removed before this");
            if tree.is_accounts {
                self.replace_account(id, self.base_account(id)?, false);
            } else {
                self.replace_slot(id, self.base_slot(id)?, false);
            }
        }
        Ok(())
    }

    /// The account that a leaf was loaded with.
    pub(crate) fn base_account(&self, id: usize) -> Result<Account, Error> {
        let leaf = &self.leaves[id];
        if !leaf.is_ahead {
            return Ok(self.account(id).account);
        }
        decode_account(&leaf.key, base_value(leaf, &self.arena))
    }

    /// The value that a leaf was loaded with.
    pub(crate) fn base_slot(&self, id: usize) -> Result<U256, Error> {
        let leaf = &self.leaves[id];
        match leaf.value {
            LeafValue::Slot(value) if !leaf.is_ahead => Ok(value),
            _ => decode_slot(&leaf.key, base_value(leaf, &self.arena)),
        }
    }

    /// Adds a leaf where the latest walk has ended without finding one.
    fn add(
        &mut self,
        tree: &mut OverlayTree,
        key: &B256,
        value: LeafValue,
        found: WalkEnd,
    ) -> Result<(), Error> {
        let Some(&PathStep { link, depth }) = self.steps.last() else {
            tree.root = self.new_leaf(key, tree.depth, value);
            return Ok(());
        };
        if found == WalkEnd::Vacancy {
            self.mark(key, 0);
            let leaf = self.new_leaf(key, depth + 1, value);
            let LinkTarget::Branch(id) = link.target() else {
                unreachable!("only branches have room")
            };
            let nibble = nibble(key, usize::from(depth));
            self.branches[id].children[nibble] = leaf;
            self.branches[id].mask |= 1 << nibble;
            return Ok(());
        }
        let (other, below, parting) = self.part(tree, key, link)?;
        self.mark(key, 0);
        let leaf = self.new_leaf(key, parting + 1, value);
        let mut branch = OverlayBranch::new();
        for (key, link) in [(&other, below), (key, leaf)] {
            let nibble = nibble(key, usize::from(parting));
            branch.children[nibble] = link;
            branch.mask |= 1 << nibble;
        }
        (branch.changed, branch.dirty) = (branch.mask, branch.mask);
        let mut top = self.add_branch(branch);
        if parting > depth {
            top = self.add_extension(OverlayExtension {
                head: NodeHead::new(),
                key: *key,
                depth,
                end: parting,
                child: top,
            });
        }
        let place = self.place(self.steps.len() - 1, key);
        self.set_link(tree, place, top);
        Ok(())
    }

    fn new_leaf(&mut self, key: &B256, depth: u8, value: LeafValue) -> NodeLink {
        self.add_leaf(OverlayLeaf {
            head: NodeHead::new(),
            key: *key,
            depth,
            is_ahead: false,
            value,
        })
    }

    /// Shortens the leaf or extension `link`, which leaves the path of `key`, to the part below a
    /// new branch. Returns a key below it, the child of the branch, and the branch's depth.
    fn part(
        &mut self,
        tree: &mut OverlayTree,
        key: &B256,
        link: NodeLink,
    ) -> Result<(B256, NodeLink, u8), Error> {
        match link.target() {
            LinkTarget::Leaf(id) => {
                let leaf = &mut self.leaves[id];
                let parting = shared_nibbles(key, &leaf.key) as u8;
                leaf.depth = parting + 1;
                Ok((leaf.key, link, parting))
            }
            LinkTarget::Extension(id) => {
                let other = self.extensions[id].key;
                let parting = shared_nibbles(key, &other) as u8;
                if self.extensions[id].end > parting + 1 {
                    self.extensions[id].depth = parting + 1;
                    return Ok((other, link, parting));
                }
                self.detach_child(tree, id)?;
                Ok((other, self.extensions[id].child, parting))
            }
            _ => unreachable!("a branch does not leave a path"),
        }
    }

    /// Makes the link of an extension independent of the extension's record.
    fn detach_child(&mut self, tree: &mut OverlayTree, id: usize) -> Result<(), Error> {
        let place = ParentLink::Extension(id);
        if self.extensions[id].child != NodeLink::RECORDED {
            return Ok(());
        }
        match self.unloaded(tree, place)? {
            UnloadedNode::Record(blinded) => {
                self.blinded.push(blinded);
                self.extensions[id].child = NodeLink::blinded(self.blinded.len() - 1);
            }
            UnloadedNode::Embedded(origin) => {
                let OverlayExtension { key, end, .. } = self.extensions[id];
                let depth = usize::from(end);
                let decoded = decode(origin, &self.arena, tree.is_accounts, &key, depth)?;
                let link = self.add_loaded(decoded, origin, depth);
                self.extensions[id].child = link;
            }
        }
        Ok(())
    }

    /// Takes `key` out of the tree and says whether it was there.
    pub(crate) fn remove<R: Records>(
        &mut self,
        records: &R,
        tree: &mut OverlayTree,
        key: &B256,
    ) -> Result<bool, Error> {
        let WalkEnd::Leaf(_) = self.walk(records, tree, key, true)? else { return Ok(false) };
        let Some(parent) = self.steps.len().checked_sub(2) else {
            tree.root = NodeLink::EMPTY;
            return Ok(true);
        };
        let PathStep { link, depth } = self.steps[parent];
        let LinkTarget::Branch(id) = link.target() else {
            unreachable!("a leaf is below a branch")
        };
        let at = nibble(key, usize::from(depth));
        let rest = self.branches[id].mask & !(1 << at);
        if rest.count_ones() >= 2 {
            self.mark(key, 1);
            let branch = &mut self.branches[id];
            branch.children[at] = NodeLink::EMPTY;
            branch.mask = rest;
            return Ok(true);
        }
        let last = rest.trailing_zeros() as usize;
        let below = usize::from(depth) + 1;
        let last_key = with_nibble(*key, usize::from(depth), last);
        let mut link = self.branches[id].children[last];
        if !link.is_loaded() {
            link = self.load(records, tree, ParentLink::Branch(id, last), &last_key, below)?;
        }
        self.capture(link);
        self.mark(key, 1);
        let above = parent.checked_sub(1).map(|above| self.steps[above]);
        let (index, depth) = match above {
            Some(PathStep { link, depth }) if matches!(link.target(), LinkTarget::Extension(_)) => {
                (parent - 1, depth)
            }
            _ => (parent, depth),
        };
        let joined = self.lengthen(link, &last_key, depth, below as u8);
        let place = self.place(index, key);
        self.set_link(tree, place, joined);
        Ok(true)
    }

    /// The replacement of `link`, found `below` nibbles down on the path of `key`, when it moves up
    /// to `depth`: itself with a longer path, or an extension to it if it is a branch.
    pub(crate) fn lengthen(
        &mut self,
        link: NodeLink,
        key: &B256,
        depth: u8,
        below: u8,
    ) -> NodeLink {
        match link.target() {
            LinkTarget::Leaf(id) => {
                self.leaves[id].depth = depth;
                self.leaves[id].head.modify();
                link
            }
            LinkTarget::Extension(id) => {
                self.extensions[id].depth = depth;
                self.extensions[id].head.modify();
                link
            }
            LinkTarget::Branch(_) => {
                let (head, key) = (NodeHead::new(), *key);
                self.add_extension(OverlayExtension { head, key, depth, end: below, child: link })
            }
            _ => unreachable!("the node is loaded"),
        }
    }

    /// Loads, and maybe captures, the root of a tree that is not empty.
    pub(crate) fn load_root<R: Records>(
        &mut self,
        records: &R,
        tree: &mut OverlayTree,
        key: &B256,
        is_captured: bool,
    ) -> Result<(), Error> {
        if !tree.root.is_loaded() {
            self.load(records, tree, ParentLink::Root, key, usize::from(tree.depth))?;
        }
        if is_captured {
            self.capture(tree.root);
        }
        Ok(())
    }
}

/// The RLP of the value that a leaf was loaded with.
fn base_value<'a>(leaf: &OverlayLeaf, arena: &'a RecordArena) -> &'a [u8] {
    let origin = leaf.head.origin.expect("only loaded leaves are set ahead");
    let RecordNode::Leaf(base) = origin.node(arena) else { unreachable!("it was a leaf") };
    base.value
}

enum UnloadedNode {
    Record(BlindedNode),
    Embedded(NodeOrigin),
}

/// Checks a node as found `depth` nibbles down on the path of `key`, and takes from it what the
/// overlay needs.
fn decode(
    origin: NodeOrigin,
    arena: &RecordArena,
    is_accounts: bool,
    key: &B256,
    depth: usize,
) -> Result<DecodedNode, Error> {
    let address = origin.address();
    let malformed = |reason: Reason| Error::MalformedRecord { address, reason };
    let node = if address.is_none() {
        record::parse_embedded(origin.rlp(arena)).map_err(malformed)?
    } else {
        origin.node(arena)
    };
    match node {
        RecordNode::Branch(branch) => {
            if depth >= KEY_NIBBLES {
                return Err(malformed("branch below the end of a key"));
            }
            let mask = branch.children().map_err(malformed)?;
            Ok(DecodedNode::Branch { mask, records: branch.records })
        }
        RecordNode::Extension(extension) => {
            let end = depth + extension.path.len();
            let key = extension.path.write(*key, depth).filter(|_| end < KEY_NIBBLES);
            let key = key.ok_or_else(|| malformed("path longer than a key"))?;
            Ok(DecodedNode::Extension { key, end })
        }
        RecordNode::Leaf(leaf) => {
            let key = leaf.path.write(*key, depth);
            let key = key.filter(|_| depth + leaf.path.len() == KEY_NIBBLES);
            let key = key.ok_or_else(|| malformed("leaf with a key of other than 32 bytes"))?;
            match (is_accounts, leaf.storage) {
                (true, Some(storage)) => {
                    let account = decode_account(&key, leaf.value)?;
                    check_storage(&account, storage).map_err(malformed)?;
                    Ok(DecodedNode::Account { key, account, storage })
                }
                (false, None) => {
                    Ok(DecodedNode::Slot { key, value: decode_slot(&key, leaf.value)? })
                }
                _ => Err(malformed("leaf of the wrong trie")),
            }
        }
    }
}
