//! Trie nodes in memory, and to and from RLP.

use crate::{limits::MAX_KEY_NIBBLES, nibbles::Nibbles};
use alloy_primitives::{B256, keccak256};
use alloy_rlp::{BufMut, EMPTY_STRING_CODE, Encodable, Header};

const WRONG_LENGTH: &str = "list of neither 2 nor 17 items";

/// The index of a node in its [`NodeArena`].
pub(crate) type NodeId = u32;

/// The child of a branch or an extension.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SparseChild {
    Empty,
    /// A node of the trie as it was opened, known by its hash only.
    Blinded(B256),
    Node(NodeId),
}

#[derive(Clone, Debug)]
pub(crate) enum SparseNode {
    Leaf { path: Nibbles, value: Vec<u8> },
    Extension { path: Nibbles, child: SparseChild },
    Branch(Box<SparseBranch>),
}

#[derive(Clone, Debug)]
pub(crate) struct SparseBranch {
    pub(crate) children: [SparseChild; 16],
    /// The value of the key that ends here.
    pub(crate) value: Option<Vec<u8>>,
}

impl SparseBranch {
    pub(crate) fn empty() -> Self {
        Self { children: [SparseChild::Empty; 16], value: None }
    }

    /// How many entries are occupied, children and value.
    pub(crate) fn occupied_count(&self) -> usize {
        let children =
            self.children.iter().filter(|child| !matches!(child, SparseChild::Empty)).count();
        children + usize::from(self.value.is_some())
    }
}

/// How a parent refers to a node, as RLP: the node's hash, or the node itself if that is shorter
/// than 32 bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SparseReference {
    len: u8,
    rlp: [u8; 33],
}

impl SparseReference {
    pub(crate) fn to_hash(hash: &B256) -> Self {
        let mut rlp = [0xa0; 33];
        rlp[1..].copy_from_slice(hash.as_slice());
        Self { len: 33, rlp }
    }

    /// The reference to the node with this RLP.
    pub(crate) fn to_node(rlp: &[u8]) -> Self {
        if rlp.len() >= 32 {
            return Self::to_hash(&keccak256(rlp));
        }
        let mut reference = Self { len: rlp.len() as u8, rlp: [0; 33] };
        reference.rlp[..rlp.len()].copy_from_slice(rlp);
        reference
    }

    pub(crate) fn as_rlp(&self) -> &[u8] {
        &self.rlp[..usize::from(self.len)]
    }

    /// The hash referred to, unless the node is embedded in its parent.
    pub(crate) fn hash(&self) -> Option<B256> {
        (self.len == 33).then(|| B256::from_slice(&self.rlp[1..]))
    }
}

/// A node with its reference and its state.
#[derive(Clone, Debug)]
pub(crate) struct ArenaSlot {
    pub(crate) node: SparseNode,
    /// The reference to this node; `None` while it or a node below has changed since hashing.
    pub(crate) reference: Option<SparseReference>,
    /// Whether the node was created or changed since it was last handed to a store.
    pub(crate) is_new: bool,
}

/// The position of a node, which restricts its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NodePosition {
    Root,
    BelowExtension,
    BelowBranch,
}

/// The nodes of one trie. Nodes that leave the trie stay in the arena, unreachable.
#[derive(Clone, Debug, Default)]
pub(crate) struct NodeArena {
    slots: Vec<ArenaSlot>,
    /// Whether all keys have the same length: no branch has a value then.
    pub(crate) has_equal_keys: bool,
}

impl NodeArena {
    pub(crate) fn slot(&self, id: NodeId) -> &ArenaSlot {
        &self.slots[id as usize]
    }

    pub(crate) fn slot_mut(&mut self, id: NodeId) -> &mut ArenaSlot {
        &mut self.slots[id as usize]
    }

    /// Adds a node that is not in the store yet.
    pub(crate) fn add(&mut self, node: SparseNode) -> NodeId {
        self.push(ArenaSlot { node, reference: None, is_new: true })
    }

    fn push(&mut self, slot: ArenaSlot) -> NodeId {
        let id = NodeId::try_from(self.slots.len()).expect("memory ends before the indices do");
        self.slots.push(slot);
        id
    }

    /// Decodes the node with this hash, and the nodes embedded in it, as found `depth` nibbles
    /// below the root.
    ///
    /// # Errors
    /// The reason why it is no node that can be in this position.
    pub(crate) fn decode(
        &mut self,
        rlp: &[u8],
        hash: &B256,
        depth: usize,
        place: NodePosition,
    ) -> Result<NodeId, &'static str> {
        if rlp.len() < 32 && place != NodePosition::Root {
            return Err("shorter than 32 bytes, but not embedded");
        }
        let known_len = self.slots.len();
        let decoded = self.decode_node(rlp, depth, place).map(|node| {
            let is_short = rlp.len() < 32;
            let reference = if is_short {
                SparseReference::to_node(rlp)
            } else {
                SparseReference::to_hash(hash)
            };
            self.push(ArenaSlot { node, reference: Some(reference), is_new: false })
        });
        if decoded.is_err() {
            self.slots.truncate(known_len);
        }
        decoded
    }

    fn decode_node(
        &mut self,
        mut rlp: &[u8],
        depth: usize,
        place: NodePosition,
    ) -> Result<SparseNode, &'static str> {
        let item = next_item(&mut rlp)?;
        if !rlp.is_empty() {
            return Err("trailing bytes");
        }
        if !item.is_list {
            return Err("not a list");
        }
        let node = if has_two_items(item.payload)? {
            self.decode_short(item.payload, depth)?
        } else {
            self.decode_branch(item.payload, depth)?
        };
        if place == NodePosition::BelowExtension && !matches!(node, SparseNode::Branch(_)) {
            return Err("extension to a node other than a branch");
        }
        Ok(node)
    }

    /// A leaf or an extension: a path, and a value or a child.
    fn decode_short(
        &mut self,
        mut payload: &[u8],
        depth: usize,
    ) -> Result<SparseNode, &'static str> {
        let (path, is_leaf) = Nibbles::from_hex_prefix(next_string(&mut payload)?)?;
        let depth = depth + path.len();
        if depth > MAX_KEY_NIBBLES {
            return Err("path longer than a key");
        }
        if is_leaf {
            let value = next_string(&mut payload)?.to_vec();
            if value.is_empty() {
                return Err("leaf with an empty value");
            }
            return Ok(SparseNode::Leaf { path, value });
        }
        if path.is_empty() {
            return Err("extension with an empty path");
        }
        match self.decode_child(&mut payload, depth, NodePosition::BelowExtension)? {
            SparseChild::Empty => Err("extension to nothing"),
            child => Ok(SparseNode::Extension { path, child }),
        }
    }

    fn decode_branch(
        &mut self,
        mut payload: &[u8],
        depth: usize,
    ) -> Result<SparseNode, &'static str> {
        if depth >= MAX_KEY_NIBBLES {
            return Err("path longer than a key");
        }
        let mut branch = Box::new(SparseBranch::empty());
        for child in &mut branch.children {
            if payload.is_empty() {
                return Err(WRONG_LENGTH);
            }
            *child = self.decode_child(&mut payload, depth + 1, NodePosition::BelowBranch)?;
        }
        if payload.is_empty() {
            return Err(WRONG_LENGTH);
        }
        let value = next_string(&mut payload)?;
        if !payload.is_empty() {
            return Err(WRONG_LENGTH);
        }
        if self.has_equal_keys && !value.is_empty() {
            return Err("branch with a value, where all keys have the same length");
        }
        branch.value = (!value.is_empty()).then(|| value.to_vec());
        if branch.occupied_count() < 2 {
            return Err("branch with fewer than two entries");
        }
        Ok(SparseNode::Branch(branch))
    }

    fn decode_child(
        &mut self,
        payload: &mut &[u8],
        depth: usize,
        place: NodePosition,
    ) -> Result<SparseChild, &'static str> {
        let item = next_item(payload)?;
        if item.is_list {
            if item.rlp.len() >= 32 {
                return Err("embedded node of 32 bytes or more");
            }
            let node = self.decode_node(item.rlp, depth, place)?;
            let reference = Some(SparseReference::to_node(item.rlp));
            return Ok(SparseChild::Node(self.push(ArenaSlot { node, reference, is_new: false })));
        }
        match item.payload.len() {
            0 => Ok(SparseChild::Empty),
            32 => Ok(SparseChild::Blinded(B256::from_slice(item.payload))),
            _ => Err("child that is neither a hash nor a node"),
        }
    }

    /// Replaces what is in `buffer` by the RLP of the node. The references to the nodes below it
    /// must be known.
    pub(crate) fn encode(&self, id: NodeId, buffer: &mut Vec<u8>) {
        buffer.clear();
        match &self.slot(id).node {
            SparseNode::Leaf { path, value } => {
                let (encoded, len) = path.to_hex_prefix(true);
                let path = &encoded[..len];
                list_header(path.length() + value.as_slice().length(), buffer);
                path.encode(buffer);
                value.as_slice().encode(buffer);
            }
            SparseNode::Extension { path, child } => {
                let (encoded, len) = path.to_hex_prefix(false);
                let path = &encoded[..len];
                list_header(path.length() + self.child_length(child), buffer);
                path.encode(buffer);
                self.encode_child(child, buffer);
            }
            SparseNode::Branch(branch) => {
                let value = branch.value.as_deref().unwrap_or_default();
                let children = branch.children.iter();
                let length = children.map(|child| self.child_length(child)).sum::<usize>();
                list_header(length + value.length(), buffer);
                for child in &branch.children {
                    self.encode_child(child, buffer);
                }
                value.encode(buffer);
            }
        }
    }

    fn child_length(&self, child: &SparseChild) -> usize {
        match child {
            SparseChild::Empty => 1,
            SparseChild::Blinded(_) => 33,
            SparseChild::Node(id) => self.reference(*id).as_rlp().len(),
        }
    }

    fn encode_child(&self, child: &SparseChild, buffer: &mut Vec<u8>) {
        match child {
            SparseChild::Empty => buffer.put_u8(EMPTY_STRING_CODE),
            SparseChild::Blinded(hash) => hash.encode(buffer),
            SparseChild::Node(id) => buffer.put_slice(self.reference(*id).as_rlp()),
        }
    }

    fn reference(&self, id: NodeId) -> &SparseReference {
        self.slot(id).reference.as_ref().expect("a node is encoded after the nodes below it")
    }
}

fn list_header(payload_length: usize, buffer: &mut Vec<u8>) {
    Header { list: true, payload_length }.encode(buffer);
}

struct RlpItem<'a> {
    is_list: bool,
    payload: &'a [u8],
    /// The whole item, header and payload.
    rlp: &'a [u8],
}

fn next_item<'a>(rest: &mut &'a [u8]) -> Result<RlpItem<'a>, &'static str> {
    let start = *rest;
    let header = Header::decode(rest).map_err(|_| "invalid RLP")?;
    let (payload, after) = rest.split_at_checked(header.payload_length).ok_or("invalid RLP")?;
    *rest = after;
    Ok(RlpItem { is_list: header.list, payload, rlp: &start[..start.len() - after.len()] })
}

fn next_string<'a>(rest: &mut &'a [u8]) -> Result<&'a [u8], &'static str> {
    match next_item(rest)? {
        RlpItem { is_list: false, payload, .. } => Ok(payload),
        _ => Err("list in the place of a path or a value"),
    }
}

/// Whether the payload of a list is exactly two items, as a leaf's and an extension's is.
fn has_two_items(mut payload: &[u8]) -> Result<bool, &'static str> {
    for _ in 0..2 {
        if payload.is_empty() {
            return Err(WRONG_LENGTH);
        }
        next_item(&mut payload)?;
    }
    Ok(payload.is_empty())
}
