//! The content of a witness, and whose it is.

use crate::index::Links;
use crate::{Account, Items, Witness};
use alloy_primitives::map::{B256Map, Entry};
use alloy_primitives::{B256, KECCAK256_EMPTY, U256, keccak256};
use alloy_rlp::Decodable;
use trie::{TrieWalk, WalkedNode};

/// Each item of a witness, with what it is there for.
///
/// The tries are walked from the state root in the header of the block's parent, and each node is
/// gone into once: one that is in several storages counts for the first, in the order of hashed
/// addresses. An item that the walk does not come by is [unreached](NodeUse::Unreached); a block
/// that runs on the witness cannot read it.
///
/// ```
/// use alloy_consensus::Header;
/// use deponent_witness::{Inspection, InspectedKind, Witness};
///
/// let header = alloy_rlp::encode(Header::default());
/// let hash = alloy_primitives::keccak256(&header);
/// let witness = Witness {
///     state: vec![vec![0xc0; 40].into()].into(),
///     headers: vec![header.clone().into()],
///     ..Witness::default()
/// };
/// let inspection = Inspection::new(&witness, hash);
/// let kinds = inspection.kinds();
/// assert_eq!(kinds[InspectedKind::Headers as usize].bytes, header.len());
/// assert_eq!(kinds[InspectedKind::Unreached as usize].items, 1);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Inspection {
    /// The root of the state before the block; `None` where the parent's header is missing, and
    /// then nothing is reached.
    pub state_root: Option<B256>,
    /// The nodes, in the order of the witness.
    pub nodes: Vec<InspectedNode>,
    /// The codes, in the order of the witness.
    pub codes: Vec<InspectedCode>,
    /// The headers, in the order of the witness.
    pub headers: Vec<InspectedHeader>,
    /// The accounts whose leaves are there, by hashed address.
    pub accounts: Vec<InspectedAccount>,
    /// The values of all slots whose leaves are there.
    pub slot_values: Vec<U256>,
}

/// A node, and whose it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InspectedNode {
    /// Its keccak-256 hash.
    pub hash: B256,
    /// Bytes of its RLP.
    pub bytes: usize,
    /// Its use.
    pub usage: NodeUse,
    /// How many nodes are above it in its trie; 0 where it is in none.
    pub depth: usize,
    /// The nibbles from the root of its trie to it, in hex.
    pub path: String,
}

/// The use of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeUse {
    /// It is on the path of accounts; of this one alone where it holds its leaf.
    AccountTrie {
        /// The hashed address of the account whose leaf it is.
        leaf: Option<B256>,
    },
    /// It is in the storage of the account with this hashed address.
    Storage(B256),
    /// It is where a reference leads to, and no node of a trie.
    Malformed(&'static str),
    /// It is there once more.
    Repeated,
    /// No path leads to it.
    Unreached,
}

/// A code, and whose it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InspectedCode {
    /// Its keccak-256 hash.
    pub hash: B256,
    /// Its bytes.
    pub bytes: usize,
    /// How many accounts in the witness have it; 0 where it is unreached, or repeated.
    pub accounts: usize,
    /// The first of them, a hashed address.
    pub first: Option<B256>,
    /// Whether it is there once more.
    pub is_repeated: bool,
}

/// A header, and whether it is of an ancestor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InspectedHeader {
    /// Its keccak-256 hash.
    pub hash: B256,
    /// Bytes of its RLP.
    pub bytes: usize,
    /// The block's number; `None` where it is no header.
    pub number: Option<u64>,
    /// Whether the parents from the block on lead to it, and it is not repeated.
    pub is_ancestor: bool,
}

/// An account whose leaf is in a witness.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InspectedAccount {
    /// The keccak-256 hash of its address.
    pub hashed_address: B256,
    /// The account before the block.
    pub account: Account,
    /// Bytes of the node that its leaf is.
    pub leaf_bytes: usize,
    /// The nodes of its storage, but for those that count for an account before it.
    pub storage: ItemCount,
    /// References in its storage to nodes that count for an account before it, as does what is
    /// below them.
    pub shared_nodes: usize,
    /// The depth of its storage: how many nodes are above the lowest.
    pub storage_depth: usize,
    /// Bytes of its code, where it is there and counts for no account before it.
    pub code_bytes: usize,
}

impl InspectedAccount {
    /// All bytes that count for the account: leaf, storage and code.
    pub const fn bytes(&self) -> usize {
        self.leaf_bytes + self.storage.bytes + self.code_bytes
    }
}

/// A number of items, and their bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ItemCount {
    /// How many.
    pub items: usize,
    /// Their bytes, without any encoding.
    pub bytes: usize,
}

impl ItemCount {
    const fn add(&mut self, bytes: usize) {
        self.items += 1;
        self.bytes += bytes;
    }
}

/// The kinds of items, each the index of its count in [`Inspection::kinds`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InspectedKind {
    /// Nodes of the account trie.
    AccountNodes,
    /// Nodes of storages.
    StorageNodes,
    /// Codes of accounts.
    Codes,
    /// Headers of ancestors.
    Headers,
    /// All others: unreached, malformed or repeated.
    Unreached,
}

impl Inspection {
    /// Looks at the witness of a block whose parent has this hash.
    ///
    /// It takes time and memory in proportion to the witness, whatever is in it.
    pub fn new(witness: &Witness, parent_hash: B256) -> Self {
        let mut inspection = Self::default();
        inspection.headers(&witness.headers, parent_hash);
        let mut nodes = NodesByHash::new(witness);
        if let Some(root) = inspection.state_root {
            inspection.accounts = nodes.accounts(root);
            for account in &mut inspection.accounts {
                nodes.storage(account, &mut inspection.slot_values);
            }
        }
        inspection.nodes = nodes.inspected;
        inspection.codes(&witness.codes);
        inspection
    }

    /// The count of each kind, in the order of [`InspectedKind`]. The sum of the bytes is
    /// [`Witness::content_bytes`].
    pub fn kinds(&self) -> [ItemCount; 5] {
        let mut kinds = [ItemCount::default(); 5];
        let nodes = self.nodes.iter().map(|node| (node.kind(), node.bytes));
        let codes = self.codes.iter().map(|code| (code.kind(), code.bytes));
        let headers = self.headers.iter().map(|header| (header.kind(), header.bytes));
        for (kind, bytes) in nodes.chain(codes).chain(headers) {
            kinds[kind as usize].add(bytes);
        }
        kinds
    }

    /// Nodes by how many are above them, from the root on: those of the account trie, and those of
    /// all storages.
    pub fn depths(&self) -> [Vec<ItemCount>; 2] {
        let mut depths = [Vec::new(), Vec::new()];
        for node in &self.nodes {
            let of_kind = match node.kind() {
                InspectedKind::AccountNodes => &mut depths[0],
                InspectedKind::StorageNodes => &mut depths[1],
                _ => continue,
            };
            if of_kind.len() <= node.depth {
                of_kind.resize(node.depth + 1, ItemCount::default());
            }
            of_kind[node.depth].add(node.bytes);
        }
        depths
    }

    /// Follows the parents from the block on.
    fn headers(&mut self, headers: &[alloy_primitives::Bytes], parent_hash: B256) {
        let mut by_hash = B256Map::<usize>::default();
        let read: Vec<_> = headers.iter().map(|rlp| Links::decode(rlp).ok()).collect();
        for (index, (rlp, links)) in headers.iter().zip(&read).enumerate() {
            let (hash, number) = (keccak256(rlp), links.as_ref().map(|links| links.number));
            by_hash.entry(hash).or_insert(index);
            let bytes = rlp.len();
            self.headers.push(InspectedHeader { hash, bytes, number, is_ancestor: false });
        }
        let mut next = parent_hash;
        while let Some(index) = by_hash.remove(&next) {
            let Some(links) = &read[index] else { break };
            self.state_root.get_or_insert(links.state_root);
            self.headers[index].is_ancestor = true;
            next = links.parent_hash;
        }
    }

    fn codes(&mut self, codes: &[alloy_primitives::Bytes]) {
        let mut by_hash = B256Map::<usize>::default();
        for (index, code) in codes.iter().enumerate() {
            let hash = keccak256(code);
            let is_repeated = by_hash.contains_key(&hash);
            by_hash.entry(hash).or_insert(index);
            let bytes = code.len();
            self.codes.push(InspectedCode { hash, bytes, accounts: 0, first: None, is_repeated });
        }
        let have_code =
            |account: &&mut InspectedAccount| account.account.code_hash != KECCAK256_EMPTY;
        for account in self.accounts.iter_mut().filter(have_code) {
            let Some(index) = by_hash.get(&account.account.code_hash) else { continue };
            let code = &mut self.codes[*index];
            code.accounts += 1;
            if code.first.is_none() {
                code.first = Some(account.hashed_address);
                account.code_bytes = code.bytes;
            }
        }
    }
}

impl InspectedNode {
    /// Its kind.
    pub const fn kind(&self) -> InspectedKind {
        match self.usage {
            NodeUse::AccountTrie { .. } => InspectedKind::AccountNodes,
            NodeUse::Storage(_) => InspectedKind::StorageNodes,
            NodeUse::Malformed(_) | NodeUse::Repeated | NodeUse::Unreached => {
                InspectedKind::Unreached
            }
        }
    }
}

impl InspectedCode {
    /// Its kind.
    pub const fn kind(&self) -> InspectedKind {
        if self.accounts > 0 { InspectedKind::Codes } else { InspectedKind::Unreached }
    }
}

impl InspectedHeader {
    /// Its kind.
    pub const fn kind(&self) -> InspectedKind {
        if self.is_ancestor { InspectedKind::Headers } else { InspectedKind::Unreached }
    }
}

/// The nodes of a witness, while tries are walked.
struct NodesByHash<'a> {
    items: Items<'a>,
    /// Their places in the witness.
    places: B256Map<usize>,
    inspected: Vec<InspectedNode>,
}

impl<'a> NodesByHash<'a> {
    fn new(witness: &'a Witness) -> Self {
        let items = Items::from(&witness.state);
        let mut places = B256Map::default();
        let inspected = items.iter().enumerate().map(|(index, rlp)| {
            let hash = keccak256(rlp);
            let usage = match places.entry(hash) {
                Entry::Occupied(_) => NodeUse::Repeated,
                Entry::Vacant(entry) => {
                    entry.insert(index);
                    NodeUse::Unreached
                }
            };
            InspectedNode { hash, bytes: rlp.len(), usage, depth: 0, path: String::new() }
        });
        let inspected = inspected.collect();
        Self { items, places, inspected }
    }

    /// Walks the account trie.
    fn accounts(&mut self, root: B256) -> Vec<InspectedAccount> {
        let (mut walk, mut accounts) = (TrieWalk::new(root), Vec::new());
        while let Some(node) = walk.next() {
            let Some((index, rlp)) = self.take(&node) else { continue };
            let read = walk.enter(&node, rlp).and_then(|values| {
                let read = values.into_iter().map(|(key, value)| {
                    let account = Account::from_rlp(&value).map_err(|_| "leaf without account")?;
                    Ok((key, account))
                });
                read.collect::<Result<Vec<_>, _>>()
            });
            let leaf_bytes = rlp.len();
            let found = &mut self.inspected[index];
            match read {
                Err(reason) => found.usage = NodeUse::Malformed(reason),
                Ok(read) => {
                    // An account is too long to be embedded: there is one at most.
                    let leaf = read.first().map(|(key, _)| *key);
                    found.usage = NodeUse::AccountTrie { leaf };
                    accounts.extend(read.into_iter().map(|(hashed_address, account)| {
                        InspectedAccount {
                            hashed_address,
                            account,
                            leaf_bytes,
                            storage: ItemCount::default(),
                            shared_nodes: 0,
                            storage_depth: 0,
                            code_bytes: 0,
                        }
                    }));
                }
            }
        }
        accounts
    }

    /// Walks the storage of an account.
    fn storage(&mut self, account: &mut InspectedAccount, slot_values: &mut Vec<U256>) {
        let mut walk = TrieWalk::new(account.account.storage_root);
        while let Some(node) = walk.next() {
            let Some((index, rlp)) = self.take(&node) else {
                account.shared_nodes += usize::from(self.places.contains_key(&node.hash));
                continue;
            };
            let read = walk.enter(&node, rlp).and_then(|values| {
                let read = values.into_iter().map(|(_, value)| U256::decode(&mut &value[..]));
                read.collect::<Result<Vec<_>, _>>().map_err(|_| "leaf without value of a slot")
            });
            let found = &mut self.inspected[index];
            match read {
                Err(reason) => found.usage = NodeUse::Malformed(reason),
                Ok(values) => {
                    found.usage = NodeUse::Storage(account.hashed_address);
                    account.storage.add(rlp.len());
                    account.storage_depth = account.storage_depth.max(node.depth);
                    slot_values.extend(values);
                }
            }
        }
    }

    /// The node that a reference leads to, where it is there and no walk has come by it before.
    fn take(&mut self, node: &WalkedNode) -> Option<(usize, &'a [u8])> {
        let index = *self.places.get(&node.hash)?;
        let found = &mut self.inspected[index];
        if found.usage != NodeUse::Unreached {
            return None;
        }
        found.depth = node.depth;
        let digits = node.path().iter().map(|nibble| HEX[usize::from(*nibble)]);
        found.path = digits.map(char::from).collect();
        Some((index, self.items.get(index).expect("it is one of them")))
    }
}

const HEX: [u8; 16] = *b"0123456789abcdef";

#[cfg(test)]
mod tests;
