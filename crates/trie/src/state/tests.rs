use super::*;
use crate::{
    by_hash,
    oracle::{Entries, NaiveTrie, deep_key, expected_revealed},
    verify_proof,
};
use alloy_primitives::{KECCAK256_EMPTY, keccak256};
use alloy_rlp::{Encodable, Header};
use alloy_trie::TrieAccount;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

pub(crate) type Store = B256Map<Bytes>;
pub(crate) type Slots = BTreeMap<B256, U256>;

/// The state as flat maps.
#[derive(Clone, Debug, Default)]
pub(crate) struct Flat(pub(crate) BTreeMap<B256, (AccountInfo, Slots)>);

/// The accesses of a block to one account.
#[derive(Clone, Debug)]
pub(crate) struct Access {
    pub(crate) change: Option<AccountChange>,
    pub(crate) slots_read: BTreeSet<B256>,
}

pub(crate) type Block = BTreeMap<B256, Access>;

impl Flat {
    fn storage_root(slots: &Slots) -> B256 {
        alloy_trie::root::storage_root(slots.iter().map(|(slot, value)| (*slot, *value)))
    }

    fn trie_account(info: &AccountInfo, slots: &Slots) -> TrieAccount {
        TrieAccount {
            nonce: info.nonce,
            balance: info.balance,
            storage_root: Self::storage_root(slots),
            code_hash: info.code_hash,
        }
    }

    /// The root by alloy, from nothing but the flat maps.
    pub(crate) fn root(&self) -> B256 {
        let accounts = self.0.iter();
        alloy_trie::root::state_root(
            accounts.map(|(address, (info, slots))| (*address, Self::trie_account(info, slots))),
        )
    }

    pub(crate) fn account(&self, address: &B256) -> Option<Account> {
        self.0.get(address).map(|(info, slots)| Account {
            nonce: info.nonce,
            balance: info.balance,
            storage_root: Self::storage_root(slots),
            code_hash: info.code_hash,
        })
    }

    pub(crate) fn slot(&self, address: &B256, slot: &B256) -> U256 {
        let slots = self.0.get(address).map(|(_, slots)| slots);
        slots.and_then(|slots| slots.get(slot)).copied().unwrap_or_default()
    }

    fn account_entries(&self) -> Entries {
        let accounts = self.0.iter();
        accounts
            .map(|(address, (info, slots))| {
                (address.to_vec(), alloy_rlp::encode(Self::trie_account(info, slots)))
            })
            .collect()
    }

    fn storage_entries(&self, address: &B256) -> Entries {
        let slots = self.0.get(address).map(|(_, slots)| slots.iter()).into_iter().flatten();
        slots.map(|(slot, value)| (slot.to_vec(), alloy_rlp::encode(value))).collect()
    }

    pub(crate) fn after(&self, changes: &StateChanges) -> Self {
        let mut after = self.clone();
        for change in &changes.accounts {
            let Some(info) = change.account else {
                after.0.remove(&change.hashed_address);
                continue;
            };
            let account = after.0.entry(change.hashed_address).or_insert((info, Slots::new()));
            account.0 = info;
            if change.storage_wiped {
                account.1.clear();
            }
            account.1.extend(change.storage.iter().copied());
            account.1.retain(|_, value| !value.is_zero());
        }
        after
    }
}

/// Hashes from so few that blocks meet the accounts and slots of earlier blocks, and others.
pub(crate) fn hash() -> impl Strategy<Value = B256> + Clone {
    let few = prop::sample::select(&[0x00, 0x01, 0x02, 0x10, 0x20, 0x21][..]);
    let deep = deep_key().prop_map(|key| B256::from_slice(&key));
    prop_oneof![3 => few.prop_map(B256::repeat_byte), 1 => deep]
}

pub(crate) fn info() -> impl Strategy<Value = AccountInfo> {
    (0..3u64, 0..3u64, any::<bool>()).prop_map(|(nonce, balance, has_code)| AccountInfo {
        nonce,
        balance: U256::from(balance),
        code_hash: if has_code { B256::repeat_byte(0xc0) } else { KECCAK256_EMPTY },
    })
}

pub(crate) fn slot_value() -> impl Strategy<Value = U256> {
    prop_oneof![
        2 => Just(U256::ZERO),
        2 => (1..3u64).prop_map(U256::from),
        1 => any::<[u8; 32]>().prop_map(U256::from_be_bytes),
    ]
}

pub(crate) fn access() -> impl Strategy<Value = Access> {
    let slots = prop_oneof![
        2 => Just(BTreeMap::new()),
        3 => prop::collection::btree_map(hash(), slot_value(), 0..12),
    ];
    // Kinds: 0 is read only, 1 deletes, 2 wipes, the others write.
    let slots_read = prop::collection::btree_set(hash(), 0..4);
    (0..8u8, info(), slots, slots_read).prop_map(|(kind, info, slots, slots_read)| {
        let change = (kind > 0).then(|| AccountChange {
            hashed_address: B256::ZERO,
            account: (kind != 1).then_some(info),
            storage_wiped: kind == 2,
            storage: slots.into_iter().collect(),
        });
        Access { change, slots_read }
    })
}

pub(crate) fn blocks() -> impl Strategy<Value = Vec<Block>> {
    prop::collection::vec(prop::collection::btree_map(hash(), access(), 0..12), 1..5).prop_map(
        |mut blocks| {
            for (address, access) in blocks.iter_mut().flatten() {
                if let Some(change) = &mut access.change {
                    change.hashed_address = *address;
                }
            }
            blocks
        },
    )
}

pub(crate) fn changes(block: &Block) -> StateChanges {
    StateChanges { accounts: block.values().filter_map(|access| access.change.clone()).collect() }
}

/// Reads and then applies a block.
fn perform(
    trie: &mut StateTrie,
    block: &Block,
    before: &Flat,
    nodes: &Store,
) -> Result<B256, Error> {
    read(trie, block, before, nodes)?;
    trie.apply(&changes(block), nodes)
}

/// Reads all that a block reads, and compares each value.
pub(crate) fn read(
    trie: &mut StateTrie,
    block: &Block,
    before: &Flat,
    nodes: &Store,
) -> Result<(), Error> {
    for (address, access) in block {
        assert_eq!(trie.account(*address, nodes)?, before.account(address));
        for slot in &access.slots_read {
            assert_eq!(trie.storage(*address, *slot, nodes)?, before.slot(address, slot));
        }
    }
    Ok(())
}

/// The witness told from the flat maps, trie by trie.
fn expected_witness(before: &Flat, block: &Block, after: &Flat) -> Vec<Bytes> {
    let touched = block.keys().map(|address| address.to_vec()).collect();
    let mut nodes =
        expected_revealed(&before.account_entries(), &touched, &after.account_entries());
    for (address, access) in block {
        let mut touched: BTreeSet<_> = access.slots_read.iter().map(|slot| slot.to_vec()).collect();
        let entries = before.storage_entries(address);
        let written = access.change.as_ref().filter(|c| c.account.is_some() && !c.storage_wiped);
        let after = match written {
            Some(change) => {
                touched.extend(change.storage.iter().map(|(slot, _)| slot.to_vec()));
                after.storage_entries(address)
            }
            None => entries.clone(),
        };
        // Where no slot is touched the storage trie is not opened.
        if !touched.is_empty() {
            nodes.extend(expected_revealed(&entries, &touched, &after));
        }
    }
    nodes.sort();
    nodes.dedup();
    nodes
}

fn check_blocks(blocks: &[Block]) {
    let mut store = Store::default();
    let mut kept = StateTrie::new(EMPTY_ROOT_HASH);
    let mut flat = Flat::default();
    for block in blocks {
        let before = flat.root();
        let after = flat.after(&changes(block));
        let mut trie = StateTrie::new(before);
        assert_eq!(perform(&mut trie, block, &flat, &store), Ok(after.root()));
        let witness = trie.take_witness_nodes();
        assert_eq!(witness, expected_witness(&flat, block, &after));
        check_witness(&flat, block, &witness, after.root());
        // A trie that is kept needs no source.
        assert_eq!(perform(&mut kept, block, &flat, &Store::default()), Ok(after.root()));
        for (address, access) in block {
            assert_eq!(trie.account(*address, &store), Ok(after.account(address)));
            for slot in &access.slots_read {
                let value = trie.storage(*address, *slot, &store);
                assert_eq!(value, Ok(after.slot(address, slot)));
            }
        }
        trie.new_nodes(&mut |hash, rlp| {
            assert_eq!(keccak256(&rlp), hash);
            store.insert(hash, rlp);
        });
        flat = after;
    }
    let mut kept_store = Store::default();
    kept.new_nodes(&mut |hash, rlp| drop(kept_store.insert(hash, rlp)));
    for store in [&store, &kept_store] {
        check_complete(&flat, store);
    }
}

/// The store has each node of the state.
fn check_complete(flat: &Flat, store: &Store) {
    let storages = flat.0.keys().map(|address| flat.storage_entries(address));
    for entries in storages.chain([flat.account_entries()]) {
        for (hash, rlp) in NaiveTrie::new(&entries).store() {
            assert_eq!(store.get(&hash), Some(&rlp));
        }
    }
}

/// The witness suffices, in any order of the changes; without one of its nodes it does not; and
/// missing nodes can be brought one by one.
fn check_witness(before: &Flat, block: &Block, witness: &[Bytes], root: B256) {
    let mut nodes = by_hash(witness.to_vec());
    let mut reversed = changes(block);
    reversed.accounts.reverse();
    reversed.accounts.iter_mut().for_each(|change| change.storage.reverse());
    let mut trie = StateTrie::new(before.root());
    assert_eq!(trie.apply(&reversed, &nodes), Ok(root));

    let mut found = Store::default();
    let mut trie = StateTrie::new(before.root());
    let mut again = |action: &mut dyn FnMut(&mut StateTrie, &Store) -> Result<(), Error>| {
        while let Err(error) = action(&mut trie, &found) {
            let Error::MissingNode { hash } = error else { panic!("{error}") };
            found.insert(hash, nodes[&hash].clone());
        }
    };
    again(&mut |trie, found| read(trie, block, before, found));
    again(&mut |trie, found| {
        assert_eq!(trie.apply(&changes(block), found)?, root);
        Ok(())
    });
    assert_eq!(trie.take_witness_nodes(), witness);

    for rlp in witness {
        let hash = keccak256(rlp);
        nodes.remove(&hash);
        let result = perform(&mut StateTrie::new(before.root()), block, before, &nodes);
        assert_eq!(result, Err(Error::MissingNode { hash }));
        nodes.insert(hash, rlp.clone());
    }
}

proptest! {
    #[test]
    fn states_agree_with_flat_maps(blocks in blocks()) {
        check_blocks(&blocks);
    }
}

fn address(byte: u8) -> B256 {
    B256::repeat_byte(byte)
}

fn written(byte: u8, storage: Vec<(B256, U256)>) -> AccountChange {
    let account = AccountInfo { nonce: 1, balance: U256::from(byte), code_hash: KECCAK256_EMPTY };
    AccountChange {
        hashed_address: address(byte),
        account: Some(account),
        storage_wiped: false,
        storage,
    }
}

/// A state of three accounts, of which the first has three slots, and its nodes.
fn some_state() -> (B256, Store) {
    let storage = (1..4).map(|byte| (address(byte), U256::from(byte))).collect();
    let accounts = vec![written(1, storage), written(2, vec![]), written(0x21, vec![])];
    let mut trie = StateTrie::new(EMPTY_ROOT_HASH);
    let root = trie.apply(&StateChanges { accounts }, &Store::default()).unwrap();
    let mut store = Store::default();
    trie.new_nodes(&mut |hash, rlp| drop(store.insert(hash, rlp)));
    (root, store)
}

fn revealed_by(change: AccountChange) -> Vec<Bytes> {
    let (root, store) = some_state();
    let mut trie = StateTrie::new(root);
    trie.apply(&StateChanges { accounts: vec![change] }, &store).unwrap();
    trie.take_witness_nodes()
}

#[test]
fn storage_is_revealed_only_where_slots_are_touched() {
    let (root, store) = some_state();
    let mut trie = StateTrie::new(root);
    trie.account(address(1), &store).unwrap();
    let account_nodes = trie.take_witness_nodes();

    assert_eq!(revealed_by(written(1, vec![])), account_nodes);
    let wiped =
        AccountChange { storage_wiped: true, ..written(1, vec![(address(9), U256::from(9))]) };
    assert_eq!(revealed_by(wiped), account_nodes);
    let touched = revealed_by(written(1, vec![(address(1), U256::from(1))]));
    // The extension, the branch and one leaf.
    assert_eq!(touched.len(), account_nodes.len() + 3);
}

#[test]
fn a_slot_set_keeps_the_sibling_of_slots_removed_blinded() {
    let removed = vec![(address(2), U256::ZERO), (address(3), U256::ZERO)];
    let alone = revealed_by(written(1, removed.clone()));
    let set = vec![(address(4), U256::from(4))];
    let accompanied = revealed_by(written(1, [removed, set].concat()));
    assert_eq!(accompanied.len() + 1, alone.len());
    assert!(accompanied.iter().all(|node| alone.contains(node)));
}

#[test]
fn slots_read_before_a_wipe_or_deletion_stay_in_the_witness() {
    let (root, store) = some_state();
    let change = written(1, vec![]);
    for change in [
        AccountChange { storage_wiped: true, ..change.clone() },
        AccountChange { account: None, ..change },
    ] {
        let mut trie = StateTrie::new(root);
        assert_eq!(trie.storage(address(1), address(2), &store), Ok(U256::from(2)));
        let mut read = trie.clone().take_witness_nodes();
        trie.apply(&StateChanges { accounts: vec![change] }, &store).unwrap();
        let witness = trie.take_witness_nodes();
        read.retain(|node| !witness.contains(node));
        assert_eq!(read, [] as [Bytes; 0]);
        assert_eq!(trie.storage(address(1), address(2), &store), Ok(U256::ZERO));
    }
}

#[test]
fn emptied_storage_has_the_empty_root() {
    let (root, store) = some_state();
    let mut trie = StateTrie::new(root);
    let storage = (1..4).map(|byte| (address(byte), U256::ZERO)).collect();
    trie.apply(&StateChanges { accounts: vec![written(1, storage)] }, &store).unwrap();
    let account = trie.account(address(1), &store).unwrap().unwrap();
    assert_eq!(account.storage_root, EMPTY_ROOT_HASH);
}

#[test]
fn account_proofs_verify_against_the_state_root() {
    let (root, store) = some_state();
    let mut trie = StateTrie::new(root);
    let slots = [address(1), address(9)];
    let proven = trie.account_proof(address(1), &slots, &store).unwrap();
    let account = proven.account.unwrap();
    let value = verify_proof(root, address(1).as_slice(), &proven.proof).unwrap();
    assert_eq!(value, Some(account.to_rlp()));
    assert_eq!(proven.storage.len(), 2);
    for (slot, expected) in proven.storage.iter().zip([1, 0]) {
        let key = slot.hashed_slot.as_slice();
        let value = verify_proof(account.storage_root, key, &slot.proof).unwrap();
        assert_eq!(slot.value, U256::from(expected));
        assert_eq!(value, (expected > 0).then(|| alloy_rlp::encode(slot.value)));
    }

    let absent = trie.account_proof(address(7), &slots, &store).unwrap();
    assert_eq!(absent.account, None);
    assert_eq!(verify_proof(root, address(7).as_slice(), &absent.proof), Ok(None));
    assert!(absent.storage.iter().all(|slot| slot.value.is_zero() && slot.proof.is_empty()));
}

#[test]
fn values_that_are_no_accounts_or_slots_are_errors() {
    let key = address(1);
    let open = |value: &[u8]| {
        let naive = NaiveTrie::new(&Entries::from([(key.to_vec(), value.to_vec())]));
        (naive.root, naive.store())
    };
    let good = Account::default().to_rlp();
    let with_trailing_byte = [good.as_slice(), &[0]].concat();
    let mut with_leading_zero = good.clone();
    with_leading_zero[2] = 0x00; // The nonce, which as zero is 0x80.
    for value in [&[1][..], &good[..40], &with_trailing_byte, &with_leading_zero] {
        let (root, store) = open(value);
        let result = StateTrie::new(root).account(key, &store);
        assert!(matches!(result, Err(Error::MalformedValue { .. })), "{result:?}");
    }
    let (root, store) = open(&good);
    assert_eq!(StateTrie::new(root).account(key, &store), Ok(Some(Account::default())));

    for value in [&[0x80][..], &[0x00], &[0x82, 0x00, 0x01], &[0x01, 0x01], &[0xc0]] {
        let (storage_root, mut store) = open(value);
        let account = Account { storage_root, ..Account::default() };
        let (root, accounts) = open(&account.to_rlp());
        store.extend(accounts);
        let result = StateTrie::new(root).storage(key, key, &store);
        assert!(matches!(result, Err(Error::MalformedValue { .. })), "{value:?}: {result:?}");
    }
}

/// A branch whose value is `value`: with a child on every path, and so on the path of each key.
fn branch_with_value(value: &[u8]) -> (B256, Store) {
    let mut rlp = Vec::new();
    let payload_length = 16 * 33 + value.length();
    Header { list: true, payload_length }.encode(&mut rlp);
    (0..16).for_each(|child| B256::repeat_byte(child + 1).encode(&mut rlp));
    value.encode(&mut rlp);
    (keccak256(&rlp), by_hash([rlp.into()]))
}

#[test]
fn a_branch_with_a_value_is_malformed_when_it_is_reached() {
    let key = address(1);
    let malformed = |result: Result<(), Error>| {
        assert!(matches!(result, Err(Error::MalformedNode { .. })), "{result:?}");
    };
    let (root, nodes) = branch_with_value(&[1]);
    malformed(StateTrie::new(root).account(key, &nodes).map(drop));
    // In a trie of other keys it is a node like any other.
    let result = SparseTrie::new(root).get(key.as_slice(), &nodes).map(drop);
    assert!(matches!(result, Err(Error::MissingNode { .. })), "{result:?}");
    let (good, nodes_of_good) = branch_with_value(&[]);
    let result = StateTrie::new(good).account(key, &nodes_of_good);
    assert!(matches!(result, Err(Error::MissingNode { .. })), "{result:?}");

    // The same of storage: not before a slot is read.
    let account = Account { storage_root: root, ..Account::default() };
    let accounts = NaiveTrie::new(&Entries::from([(key.to_vec(), account.to_rlp())]));
    let mut store = accounts.store();
    store.extend(nodes);
    let mut trie = StateTrie::new(accounts.root);
    assert_eq!(trie.account(key, &store), Ok(Some(account)));
    malformed(trie.storage(key, key, &store).map(drop));
}

#[test]
#[should_panic(expected = "an account is changed at most once")]
fn an_account_changed_twice_is_refused() {
    let accounts = vec![written(1, vec![]), written(1, vec![])];
    let _ = StateTrie::new(EMPTY_ROOT_HASH).apply(&StateChanges { accounts }, &Store::default());
}
