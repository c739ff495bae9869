//! States as maps, as files, and as roots: the slow twin of reading and sorting.

use std::collections::BTreeMap;

use alloy_primitives::{Address, B256, Bytes, KECCAK256_EMPTY, U256, hex, keccak256};
use alloy_trie::{EMPTY_ROOT_HASH, HashBuilder, Nibbles, TrieAccount};
use deponent_files::{SortedEntry, SortedState};
use serde_json::{Map, Value, json};

use testing::Random;

/// An account in a map.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) nonce: u64,
    pub(crate) balance: U256,
    pub(crate) code: Bytes,
    pub(crate) storage: BTreeMap<B256, U256>,
}

pub(crate) type State = BTreeMap<Address, Held>;

/// A state with accounts of all kinds.
pub(crate) fn state(random: &mut Random, accounts: usize, most_slots: usize) -> State {
    let codes: Vec<Bytes> = (1..9_u8).map(|i| vec![i; 7 * usize::from(i)].into()).collect();
    let account = |random: &mut Random| Held {
        nonce: random.number() >> random.below(64),
        balance: U256::from(random.number()) << random.below(192),
        code: match random.below(3) {
            0 => codes[random.below(codes.len())].clone(),
            _ => Bytes::new(),
        },
        storage: match random.below(4) {
            0 => (0..random.below(most_slots + 1)).map(|_| slot(random)).collect(),
            _ => BTreeMap::new(),
        },
    };
    (0..accounts).map(|_| (Address::from_slice(&word(random)[12..]), account(random))).collect()
}

pub(crate) fn word(random: &mut Random) -> B256 {
    keccak256(random.number().to_le_bytes())
}

pub(crate) fn slot(random: &mut Random) -> (B256, U256) {
    let slot = match random.below(2) {
        0 => B256::from(U256::from(random.below(1 << 20))),
        _ => word(random),
    };
    (slot, (U256::from(random.number()) << random.below(192)) + U256::from(1))
}

/// The forms of a state file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// `geth dump --iterative`.
    Geth,
    /// `reth init-state`.
    Reth,
    /// `geth dump`.
    GethObject,
    /// A genesis.
    Genesis,
}

pub(crate) const DIALECTS: [Dialect; 4] =
    [Dialect::Geth, Dialect::Reth, Dialect::GethObject, Dialect::Genesis];

/// A state as a file.
pub(crate) fn file(state: &State, dialect: Dialect) -> String {
    let root = root(state);
    match dialect {
        Dialect::Geth | Dialect::Reth => {
            let mut lines = vec![json!({"root": root}).to_string()];
            lines.extend(state.iter().map(|(address, held)| line(address, held, dialect)));
            lines.join("\n") + "\n"
        }
        Dialect::GethObject => {
            let account = |(address, held): (&Address, &Held)| {
                let line = line(address, held, Dialect::Geth);
                (address.to_string(), serde_json::from_str(&line).expect("JSON"))
            };
            let accounts: Map<String, Value> = state.iter().map(account).collect();
            format!("{:#}", json!({"root": hex::encode(root), "accounts": accounts}))
        }
        Dialect::Genesis => {
            let account = |(address, held): (&Address, &Held)| {
                let Held { nonce, balance, code, storage } = held;
                let mut account = json!({"balance": balance, "nonce": format!("{nonce:#x}")});
                if !code.is_empty() {
                    account["code"] = json!(code);
                }
                if !storage.is_empty() {
                    let storage = storage.iter().map(|(slot, value)| (*slot, B256::from(*value)));
                    account["storage"] = json!(storage.collect::<BTreeMap<_, _>>());
                }
                (hex::encode(address), account)
            };
            let alloc: Map<String, Value> = state.iter().map(account).collect();
            let config = json!({"chainId": 9});
            let zero = "0x0";
            json!({"config": config, "alloc": alloc, "gasLimit": "0x10", "difficulty": zero})
                .to_string()
        }
    }
}

/// An account as a line, its members in the order in which the client writes them.
pub(crate) fn line(address: &Address, held: &Held, dialect: Dialect) -> String {
    let Held { nonce, balance, code, storage } = held;
    let mut members: Vec<(&str, Value)> = Vec::new();
    if dialect == Dialect::Reth {
        members.push(("balance", json!(format!("{balance:#x}"))));
        members.push(("nonce", json!(nonce)));
        if !code.is_empty() {
            members.push(("code", json!(code)));
        }
        let storage = storage.iter().map(|(slot, value)| (*slot, B256::from(*value)));
        members.push(("storage", json!(storage.collect::<BTreeMap<_, _>>())));
        members.push(("address", json!(address)));
    } else {
        let code_hash = if code.is_empty() { KECCAK256_EMPTY } else { keccak256(code) };
        members.push(("balance", json!(balance.to_string())));
        members.push(("nonce", json!(nonce)));
        members.push(("root", json!(storage_root(storage))));
        members.push(("codeHash", json!(code_hash)));
        if !code.is_empty() {
            members.push(("code", json!(code)));
        }
        if !storage.is_empty() {
            let trimmed = |value: &U256| hex::encode(value.to_be_bytes_trimmed_vec());
            let storage = storage.iter().map(|(slot, value)| (*slot, trimmed(value)));
            members.push(("storage", json!(storage.collect::<BTreeMap<_, _>>())));
        }
        members.push(("address", json!(address)));
        members.push(("key", json!(keccak256(address))));
    }
    let members: Vec<String> =
        members.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
    format!("{{{}}}", members.join(","))
}

/// A state as lines of `geth snapshot dump`, the root's first: by hashed keys, in their order.
pub(crate) fn hashed_lines(state: &State) -> Vec<String> {
    let hashed: BTreeMap<B256, &Held> =
        state.iter().map(|(address, held)| (keccak256(address), held)).collect();
    let mut lines = vec![json!({"root": root(state)}).to_string()];
    for (key, Held { nonce, balance, code, storage }) in hashed {
        let code_hash = if code.is_empty() { KECCAK256_EMPTY } else { keccak256(code) };
        let root = storage_root(storage);
        let mut line = format!(
            r#"{{"balance":"{balance}","nonce":{nonce},"root":"{root}","codeHash":"{code_hash}","#
        );
        if !code.is_empty() {
            line += &format!("\"code\":\"{code}\",");
        }
        let slots: Vec<String> = hashed_storage(storage)
            .into_iter()
            .map(|(slot, value)| {
                format!("\"{slot}\":\"{}\"", hex::encode(alloy_rlp::encode(value)))
            })
            .collect();
        if !slots.is_empty() {
            line += &format!("\"storage\":{{{}}},", slots.join(","));
        }
        lines.push(format!("{line}\"key\":\"{key}\"}}"));
    }
    lines
}

/// The state in the order of the trie, by a map.
pub(crate) fn entries(state: &State, with_roots: bool) -> Vec<SortedEntry> {
    let hashed: BTreeMap<B256, &Held> =
        state.iter().map(|(address, held)| (keccak256(address), held)).collect();
    let mut entries = Vec::new();
    for (hashed_address, held) in hashed {
        let Held { nonce, balance, code, storage } = held;
        entries.push(SortedEntry::Account {
            hashed_address,
            nonce: *nonce,
            balance: *balance,
            code_hash: if code.is_empty() { KECCAK256_EMPTY } else { keccak256(code) },
            storage_root: with_roots.then(|| storage_root(storage)),
        });
        entries.extend(
            hashed_storage(storage)
                .into_iter()
                .map(|(hashed_slot, value)| SortedEntry::Slot { hashed_slot, value }),
        );
    }
    entries
}

fn hashed_storage(storage: &BTreeMap<B256, U256>) -> BTreeMap<B256, U256> {
    let slots = storage.iter().filter(|(_, value)| !value.is_zero());
    slots.map(|(slot, value)| (keccak256(slot), *value)).collect()
}

pub(crate) fn storage_root(storage: &BTreeMap<B256, U256>) -> B256 {
    let mut builder = HashBuilder::default();
    for (slot, value) in hashed_storage(storage) {
        builder.add_leaf(Nibbles::unpack(slot), &alloy_rlp::encode(value));
    }
    builder.root()
}

pub(crate) fn root(state: &State) -> B256 {
    root_of(entries(state, false).into_iter())
}

/// The root of a state that comes in the order of the trie.
pub(crate) fn root_of(entries: impl Iterator<Item = SortedEntry>) -> B256 {
    let mut accounts = HashBuilder::default();
    let mut open: Option<(B256, TrieAccount, HashBuilder)> = None;
    let mut close = |open: Option<(B256, TrieAccount, HashBuilder)>| {
        if let Some((key, mut account, mut storage)) = open {
            account.storage_root = storage.root();
            accounts.add_leaf(Nibbles::unpack(key), &alloy_rlp::encode(account));
        }
    };
    for entry in entries {
        match entry {
            SortedEntry::Account { hashed_address, nonce, balance, code_hash, .. } => {
                let storage_root = EMPTY_ROOT_HASH;
                let account = TrieAccount { nonce, balance, storage_root, code_hash };
                close(open.replace((hashed_address, account, HashBuilder::default())));
            }
            SortedEntry::Slot { hashed_slot, value } => {
                let (.., storage) = open.as_mut().expect("an account comes first");
                storage.add_leaf(Nibbles::unpack(hashed_slot), &alloy_rlp::encode(value));
            }
        }
    }
    close(open);
    accounts.root()
}

#[track_caller]
pub(crate) fn sorted_entries(sorted: &SortedState) -> Vec<SortedEntry> {
    let entries = sorted.entries().unwrap_or_else(|error| panic!("{error}"));
    entries.map(|entry| entry.unwrap_or_else(|error| panic!("{error}"))).collect()
}
