//! The content of a witness, summed up: the JSON of the command and of the page's method.

use alloy_primitives::{Address, B256, KECCAK256_EMPTY};
use execution::SealedBlock;
use serde::Serialize;
use witness::{
    InspectedAccount, InspectedCode, InspectedHeader, InspectedKind, InspectedNode, Inspection,
    ItemCount, NodeUse,
};

use super::names::AccountNames;

/// A witness, summed up. The bytes are those of content, without an encoding.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Summary {
    pub(super) number: u64,
    pub(super) hash: B256,
    /// The root of the state before the block.
    pub(super) state_root: Option<B256>,
    pub(super) transactions: usize,
    pub(super) gas_used: u64,
    #[serde(flatten)]
    pub(super) all: Count,
    pub(super) kinds: Kinds,
    pub(super) depths: Depths,
    pub(super) accounts: Accounts,
    /// The largest items, the largest first.
    pub(super) largest: Vec<Item>,
    /// Items that are unreached, malformed or repeated.
    pub(super) left_over: Vec<Item>,
}

/// How many items, and their bytes.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub(crate) struct Count {
    pub(super) items: usize,
    pub(super) bytes: usize,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Kinds {
    pub(super) account_nodes: Count,
    pub(super) storage_nodes: Count,
    pub(super) codes: Count,
    pub(super) headers: Count,
    pub(super) unreached: Count,
}

/// Nodes by how many are above them, from the root on.
#[derive(Debug, Serialize)]
pub(super) struct Depths {
    pub(super) account: Vec<Count>,
    pub(super) storage: Vec<Count>,
}

/// The accounts whose leaves are in the witness.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Accounts {
    pub(super) total: usize,
    pub(super) with_storage: usize,
    pub(super) with_code: usize,
    /// Of how many the address is known.
    pub(super) named: usize,
    /// Nodes of the account trie above the leaves, which belong to no account alone.
    pub(super) upper_nodes: Count,
    /// Those with the most bytes, the largest first.
    pub(super) list: Vec<AccountSummary>,
    /// All others together: how many, and their bytes.
    pub(super) others: Count,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AccountSummary {
    pub(super) hashed_address: B256,
    pub(super) address: Option<Address>,
    /// Of leaf, storage and code.
    pub(super) bytes: usize,
    pub(super) leaf_bytes: usize,
    pub(super) storage_nodes: usize,
    pub(super) storage_bytes: usize,
    pub(super) storage_depth: usize,
    /// References to nodes that count for another account.
    pub(super) shared_nodes: usize,
    pub(super) code_hash: Option<B256>,
    /// 0 where the code is not there, or counts for another account.
    pub(super) code_bytes: usize,
}

/// An item of a witness, and whose it is.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Item {
    pub(super) kind: &'static str,
    pub(super) hash: B256,
    pub(super) bytes: usize,
    /// The hashed address of the account that it is of, and the address, where it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) account: Option<B256>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) address: Option<Address>,
    /// The nibbles from the root of its trie to a node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) path: Option<String>,
    /// The number of a header.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) number: Option<u64>,
    /// Of how many accounts a code is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) accounts: Option<usize>,
    /// Why it is left over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) left_over: Option<&'static str>,
}

/// How many rows a summary has at most.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rows {
    pub(crate) accounts: usize,
    pub(crate) items: usize,
}

impl Summary {
    /// Sums up a witness of a block.
    pub(crate) fn new(
        block: &SealedBlock,
        inspection: &Inspection,
        names: &AccountNames,
        rows: Rows,
    ) -> Self {
        let kinds = inspection.kinds().map(Count::from);
        let all = kinds.iter().fold(Count::default(), |sum, kind| sum.and(*kind));
        let [account_nodes, storage_nodes, codes, headers, unreached] = kinds;
        let [account, storage] =
            inspection.depths().map(|depths| depths.into_iter().map(Count::from).collect());
        let items = items(inspection, names);
        let left_over = items.filter(|item| item.left_over.is_some()).take(rows.items).collect();
        Self {
            number: block.header.number,
            hash: block.hash(),
            state_root: inspection.state_root,
            transactions: block.body.transactions.len(),
            gas_used: block.header.gas_used,
            all,
            kinds: Kinds { account_nodes, storage_nodes, codes, headers, unreached },
            depths: Depths { account, storage },
            accounts: Accounts::new(inspection, names, rows.accounts),
            largest: largest(inspection, names, rows.items),
            left_over,
        }
    }
}

impl Accounts {
    fn new(inspection: &Inspection, names: &AccountNames, rows: usize) -> Self {
        let accounts = &inspection.accounts;
        let is_leaf =
            |node: &&InspectedNode| matches!(node.usage, NodeUse::AccountTrie { leaf: Some(_) });
        let leaves = inspection.nodes.iter().filter(is_leaf);
        let leaves = leaves.fold(Count::default(), |sum, leaf| sum.and_bytes(leaf.bytes));
        let of_trie = inspection.kinds()[InspectedKind::AccountNodes as usize];
        let count = |has: fn(&InspectedAccount) -> bool| accounts.iter().filter(|a| has(a)).count();
        let mut sorted: Vec<_> = accounts.iter().collect();
        sorted.sort_by(|a, b| {
            b.bytes().cmp(&a.bytes()).then(a.hashed_address.cmp(&b.hashed_address))
        });
        let (listed, others) = sorted.split_at(rows.min(sorted.len()));
        Self {
            total: accounts.len(),
            with_storage: count(|account| account.storage.items > 0 || account.shared_nodes > 0),
            with_code: count(|account| account.account.code_hash != KECCAK256_EMPTY),
            named: names.len(),
            upper_nodes: Count {
                items: of_trie.items - leaves.items,
                bytes: of_trie.bytes - leaves.bytes,
            },
            list: listed.iter().map(|account| AccountSummary::new(account, names)).collect(),
            others: others.iter().fold(Count::default(), |sum, one| sum.and_bytes(one.bytes())),
        }
    }
}

impl AccountSummary {
    fn new(account: &InspectedAccount, names: &AccountNames) -> Self {
        let code_hash = account.account.code_hash;
        Self {
            hashed_address: account.hashed_address,
            address: names.get(&account.hashed_address),
            bytes: account.bytes(),
            leaf_bytes: account.leaf_bytes,
            storage_nodes: account.storage.items,
            storage_bytes: account.storage.bytes,
            storage_depth: account.storage_depth,
            shared_nodes: account.shared_nodes,
            code_hash: (code_hash != KECCAK256_EMPTY).then_some(code_hash),
            code_bytes: account.code_bytes,
        }
    }
}

/// All items of a witness, in its order. Each is made when it is reached: all together take three
/// times the memory of what was inspected.
pub(super) fn items(inspection: &Inspection, names: &AccountNames) -> impl Iterator<Item = Item> {
    inspected(inspection).map(|item| item.shown(names))
}

/// The largest items, the largest first.
fn largest(inspection: &Inspection, names: &AccountNames, most: usize) -> Vec<Item> {
    let mut all: Vec<_> = inspected(inspection).collect();
    all.sort_by(|a, b| b.bytes().cmp(&a.bytes()).then_with(|| a.hash().cmp(b.hash())));
    all.into_iter().take(most).map(|item| item.shown(names)).collect()
}

fn inspected(inspection: &Inspection) -> impl Iterator<Item = InspectedItem<'_>> {
    let nodes = inspection.nodes.iter().map(InspectedItem::Node);
    let codes = inspection.codes.iter().map(InspectedItem::Code);
    nodes.chain(codes).chain(inspection.headers.iter().map(InspectedItem::Header))
}

/// An item that was inspected.
#[derive(Clone, Copy)]
enum InspectedItem<'a> {
    Node(&'a InspectedNode),
    Code(&'a InspectedCode),
    Header(&'a InspectedHeader),
}

impl<'a> InspectedItem<'a> {
    const fn bytes(self) -> usize {
        match self {
            Self::Node(node) => node.bytes,
            Self::Code(code) => code.bytes,
            Self::Header(header) => header.bytes,
        }
    }

    const fn hash(self) -> &'a B256 {
        match self {
            Self::Node(node) => &node.hash,
            Self::Code(code) => &code.hash,
            Self::Header(header) => &header.hash,
        }
    }

    fn shown(self, names: &AccountNames) -> Item {
        match self {
            Self::Node(node) => Item::of_node(node, names),
            Self::Code(code) => Item::of_code(code, names),
            Self::Header(header) => Item::of_header(header),
        }
    }
}

impl Item {
    fn new(kind: &'static str, hash: B256, bytes: usize) -> Self {
        let (account, address, path, number) = (None, None, None, None);
        Self { kind, hash, bytes, account, address, path, number, accounts: None, left_over: None }
    }

    fn of(self, account: Option<B256>, names: &AccountNames) -> Self {
        let address = account.and_then(|account| names.get(&account));
        Self { account, address, ..self }
    }

    fn of_node(node: &InspectedNode, names: &AccountNames) -> Self {
        let InspectedNode { hash, bytes, usage, path, .. } = node;
        let path = Some(path.clone());
        let left = |reason| Self { left_over: Some(reason), ..Self::new("node", *hash, *bytes) };
        match *usage {
            NodeUse::AccountTrie { leaf } => {
                Self { path, ..Self::new("account node", *hash, *bytes) }.of(leaf, names)
            }
            NodeUse::Storage(account) => {
                Self { path, ..Self::new("storage node", *hash, *bytes) }.of(Some(account), names)
            }
            NodeUse::Malformed(reason) => Self { path, ..left(reason) },
            NodeUse::Repeated => left("given twice"),
            NodeUse::Unreached => left("no path leads to it"),
        }
    }

    fn of_code(code: &InspectedCode, names: &AccountNames) -> Self {
        let item = Self::new("code", code.hash, code.bytes).of(code.first, names);
        match (code.is_repeated, code.accounts) {
            (true, _) => Self { left_over: Some("given twice"), ..item },
            (false, 0) => Self { left_over: Some("of no account in the witness"), ..item },
            (false, accounts) => Self { accounts: Some(accounts), ..item },
        }
    }

    fn of_header(header: &InspectedHeader) -> Self {
        let item = Self::new("header", header.hash, header.bytes);
        let left_over = match (header.is_ancestor, header.number) {
            (true, _) => None,
            (false, Some(_)) => Some("no ancestor's, or given twice"),
            (false, None) => Some("no header"),
        };
        Self { number: header.number, left_over, ..item }
    }

    /// Whose it is, in words.
    pub(super) fn whose(&self) -> String {
        let account = account_name(self.account, self.address);
        let path = self.path.as_deref().map(|path| if path.is_empty() { "root" } else { path });
        let number = self.number.map(|number| format!("block {number}"));
        let others = match self.accounts {
            Some(2..) => self.accounts.map(|count| format!("and of {} more", count - 1)),
            _ => None,
        };
        let left_over = self.left_over.map(str::to_owned);
        let path = path.map(|path| format!("at {path}"));
        let parts = [account, others, path, number, left_over];
        parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
    }
}

/// The address of an account, or its hash where that is not known.
pub(super) fn account_name(hashed: Option<B256>, address: Option<Address>) -> Option<String> {
    match (hashed, address) {
        (_, Some(address)) => Some(address.to_string()),
        (Some(hashed), None) => Some(format!("hashed {hashed}")),
        (None, None) => None,
    }
}

impl Count {
    pub(super) const fn and(self, other: Self) -> Self {
        Self { items: self.items + other.items, bytes: self.bytes + other.bytes }
    }

    pub(super) const fn and_bytes(self, bytes: usize) -> Self {
        self.and(Self { items: 1, bytes })
    }
}

impl From<ItemCount> for Count {
    fn from(ItemCount { items, bytes }: ItemCount) -> Self {
        Self { items, bytes }
    }
}
