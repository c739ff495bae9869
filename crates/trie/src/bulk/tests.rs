use super::{OrderError, SpineError, StateBuilder};
use crate::{
    AccountChange, AccountInfo, StateChanges, StateTrie, by_hash, oracle,
    versioned::{self, MemoryRecords, NodeAddress, Records, Version, record},
};
use alloy_primitives::{B256, Bytes, U256, b256, map::B256Map};
use proptest::prelude::*;
use std::collections::BTreeMap;

type State = BTreeMap<B256, (AccountInfo, BTreeMap<B256, U256>)>;

fn info(nonce: u64) -> AccountInfo {
    AccountInfo { nonce, balance: U256::from(nonce) << 77, code_hash: B256::repeat_byte(0xc0) }
}

/// The state in bulk, and its records.
fn build(state: &State) -> (Version, MemoryRecords) {
    let mut records = MemoryRecords::default();
    let mut builder = StateBuilder::new(&mut records);
    for (hashed_address, (info, slots)) in state {
        builder.account(*hashed_address, *info).expect("in order");
        for (hashed_slot, value) in slots {
            builder.slot(*hashed_slot, *value).expect("in order");
        }
    }
    (builder.finish(), records)
}

/// The slow twin's root and nodes.
fn slow(state: &State) -> (B256, B256Map<Bytes>) {
    let accounts = state.iter().map(|(hashed_address, (info, slots))| AccountChange {
        hashed_address: *hashed_address,
        account: Some(*info),
        storage_wiped: false,
        storage: slots.iter().map(|(slot, value)| (*slot, *value)).collect(),
    });
    let changes = StateChanges { accounts: accounts.collect() };
    let mut trie = StateTrie::new(Version::EMPTY.root);
    let root = trie.apply(&changes, &B256Map::<Bytes>::default()).expect("nothing is blinded");
    let mut nodes = B256Map::default();
    trie.new_nodes(&mut |hash, rlp| drop(nodes.insert(hash, rlp)));
    (root, nodes)
}

/// The root is the slow twin's, the records hold the same nodes, children come before parents, and
/// everything is read again.
fn check(state: &State) {
    let (version, records) = build(state);
    let (root, nodes) = slow(state);
    assert_eq!(version.root, root);
    let written = (1..records.end().offset()).map(|offset| {
        let record = records.record(NodeAddress::new(offset)).expect("an address before the end");
        Bytes::copy_from_slice(record::parse(&record).expect("well formed").rlp())
    });
    assert_eq!(by_hash(written), nodes);
    if !version.address.is_none() {
        assert_eq!(version.address.offset() + 1, records.end().offset(), "the root comes last");
    }
    for (hashed_address, (info, slots)) in state {
        let found = versioned::account(&records, &version, hashed_address).expect("readable");
        let (account, storage) = found.expect("it was added");
        assert_eq!((account.nonce, account.balance), (info.nonce, info.balance));
        assert_eq!((account.code_hash, account.storage_root), (info.code_hash, storage.root));
        for (hashed_slot, value) in slots {
            assert_eq!(versioned::slot(&records, &storage, hashed_slot), Ok(*value));
        }
    }
    let absent = B256::repeat_byte(0x5a);
    let found = versioned::account(&records, &version, &absent).expect("readable");
    assert_eq!(found.is_some(), state.contains_key(&absent));
}

fn slots(slots: &[(B256, u64)]) -> BTreeMap<B256, U256> {
    slots.iter().map(|(slot, value)| (*slot, U256::from(*value))).collect()
}

/// Keys that share all but the last nibble.
fn twins() -> [B256; 2] {
    [B256::with_last_byte(0x10), B256::with_last_byte(0x1f)]
}

#[test]
fn nothing_is_the_empty_version() {
    let (version, records) = build(&State::new());
    assert_eq!(version, Version::EMPTY);
    assert_eq!(records.end(), NodeAddress::new(1));
}

#[test]
fn one_account_is_one_leaf() {
    let state = State::from([(B256::repeat_byte(7), (info(1), slots(&[])))]);
    check(&state);
    assert_eq!(build(&state).1.end(), NodeAddress::new(2));
}

#[test]
fn accounts_that_share_63_nibbles_have_an_extension() {
    check(&twins().map(|key| (key, (info(1), slots(&[])))).into());
    let mut more = twins().map(|key| (key, (info(1), slots(&[])))).to_vec();
    more.push((B256::repeat_byte(0xf0), (info(2), slots(&[]))));
    check(&more.into_iter().collect());
}

#[test]
fn a_storage_of_one_slot_is_one_leaf() {
    let key = b256!("00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff");
    check(&State::from([(key, (info(1), slots(&[(key, 0x80)])))]));
}

#[test]
fn short_nodes_are_embedded() {
    // Leaves and their branch are embedded in an extension, and in a branch.
    let [a, b] = twins();
    check(&State::from([(a, (info(1), slots(&[(a, 1), (b, 2)])))]));
    let far = B256::repeat_byte(0x42);
    check(&State::from([(a, (info(1), slots(&[(a, 1), (b, 2), (far, 3)])))]));
    // Of a branch at the last nibble but one, one leaf is embedded and one is not.
    let c = B256::with_last_byte(0x20);
    let mut storage = slots(&[(a, 1), (b, 2), (c, 3)]);
    check(&State::from([(a, (info(1), storage.clone()))]));
    storage.insert(c, U256::MAX);
    check(&State::from([(a, (info(1), storage))]));
}

#[test]
fn a_slot_of_value_zero_is_left_out() {
    let [a, b] = twins();
    let with_zero = State::from([(a, (info(1), slots(&[(a, 1), (b, 0)])))]);
    let without = State::from([(a, (info(1), slots(&[(a, 1)])))]);
    check(&with_zero);
    assert_eq!(build(&with_zero).0, build(&without).0);
}

#[test]
fn what_is_out_of_order_is_refused_and_changes_nothing() {
    let [a, b] = twins();
    let mut records = MemoryRecords::default();
    let mut builder = StateBuilder::new(&mut records);
    let refused = OrderError::SlotWithoutAccount { hashed_slot: a };
    assert_eq!(builder.slot(a, U256::ONE), Err(refused));
    builder.account(a, info(1)).expect("the first");
    let refused = OrderError::NotAscending { got: a, last: a };
    assert_eq!(builder.account(a, info(9)), Err(refused));
    builder.slot(b, U256::ZERO).expect("the first");
    let refused = OrderError::NotAscending { got: a, last: b };
    assert_eq!(builder.slot(a, U256::ONE), Err(refused));
    builder.account(b, info(2)).expect("in order");
    builder.slot(a, U256::ONE).expect("another account's slots begin again");
    let refused = OrderError::NotAscending { got: a, last: b };
    assert_eq!(builder.account(a, info(9)), Err(refused));
    let expected = [(a, (info(1), slots(&[]))), (b, (info(2), slots(&[(a, 1)])))];
    assert_eq!(builder.finish(), build(&State::from(expected)).0);
}

/// Slots come before their accounts, and the builder is written and read again after each entry for
/// which `stops` says so: the records and the version are the same.
fn check_stopped(state: &State, mut stops: impl FnMut() -> bool) {
    let (expected, whole) = build(state);
    let mut records = MemoryRecords::default();
    let mut spine = StateBuilder::new(&mut records).spine();
    let mut entries = state.iter().flat_map(|(key, (info, slots))| {
        let slots = slots.iter().map(|(slot, value)| (*slot, Err(*value)));
        slots.chain([(*key, Ok(*info))])
    });
    let version = loop {
        let mut builder = StateBuilder::resume(&mut records, &spine).expect("as it was written");
        assert_eq!(builder.spine(), spine);
        let went_on = entries.by_ref().any(|(key, entry)| {
            match entry {
                Err(value) => builder.next_slot(key, value).expect("in order"),
                Ok(info) => {
                    let storage = builder.end_storage();
                    builder.whole_account(key, info, storage).expect("in order");
                }
            }
            stops()
        });
        if !went_on {
            break builder.finish();
        }
        spine = builder.spine();
        assert!(spine.len() <= StateBuilder::<&mut MemoryRecords>::MAX_SPINE_BYTES);
        for cut in [0, 1, spine.len() / 2, spine.len() - 1] {
            let cut = StateBuilder::resume(&mut MemoryRecords::default(), &spine[..cut]).err();
            assert_eq!(cut, Some(SpineError));
        }
    };
    assert_eq!((version, records.end()), (expected, whole.end()));
    for offset in 1..whole.end().offset() {
        let at = NodeAddress::new(offset);
        let [got, expected] = [&records, &whole].map(|records| records.record(at).expect("there"));
        assert_eq!(got[..], expected[..]);
    }
}

#[test]
fn slots_that_are_dropped_leave_no_trace() {
    let [a, b] = twins();
    let mut records = MemoryRecords::default();
    let mut builder = StateBuilder::new(&mut records);
    builder.next_slot(a, U256::ONE).expect("the first");
    builder.next_slot(b, U256::ONE).expect("in order");
    assert_eq!(builder.last_slot(), Some(b));
    builder.drop_slots();
    builder.next_slot(a, U256::from(2)).expect("the first again");
    let refused = OrderError::NotAscending { got: a, last: a };
    assert_eq!(builder.next_slot(a, U256::ONE), Err(refused));
    let storage = builder.end_storage();
    builder.whole_account(b, info(1), storage).expect("the first");
    let refused = OrderError::NotAscending { got: a, last: b };
    assert_eq!(builder.whole_account(a, info(1), Version::EMPTY), Err(refused));
    assert_eq!(builder.last_account(), Some(b));
    let expected = State::from([(b, (info(1), slots(&[(a, 2)])))]);
    assert_eq!(builder.finish().root, slow(&expected).0);
}

#[test]
fn thousands_of_accounts_agree() {
    let key = |n: u64| alloy_primitives::keccak256(n.to_be_bytes());
    let accounts = (0..3000).map(|n| {
        let count = if n % 500 == 0 { 700 } else { n % 4 };
        let slots = (0..count).map(|slot| (key(slot << 32 | n), U256::from(slot + 1)));
        (key(n), (info(n), slots.collect()))
    });
    let state: State = accounts.collect();
    check(&state);
    let mut entries = 0;
    check_stopped(&state, || {
        entries += 1;
        entries % 97 == 0
    });
}

fn key() -> impl Strategy<Value = B256> + Clone {
    let random = proptest::array::uniform32(any::<u8>()).prop_map(B256::from);
    prop_oneof![oracle::deep_key().prop_map(|key| B256::from_slice(&key)), random]
}

fn storage() -> impl Strategy<Value = BTreeMap<B256, U256>> {
    let value = prop_oneof![
        (0..200u64).prop_map(U256::from),
        proptest::array::uniform32(any::<u8>()).prop_map(U256::from_be_bytes),
    ];
    prop::collection::btree_map(key(), value, 0..12)
}

proptest! {
    #[test]
    fn random_states_agree(
        accounts in prop::collection::btree_map(key(), (any::<u64>(), storage()), 0..24),
    ) {
        let accounts = accounts.into_iter();
        let state = accounts.map(|(key, (nonce, slots))| (key, (info(nonce), slots))).collect();
        check(&state);
        check_stopped(&state, || true);
    }
}
