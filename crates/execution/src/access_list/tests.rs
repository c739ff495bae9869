use super::AccessList;
use alloy_eip7928::{
    AccountChanges, BalanceChange, BlockAccessIndex, CodeChange, NonceChange, SlotChanges,
    StorageChange,
};
use alloy_primitives::{Address, KECCAK256_EMPTY, U256, keccak256};
use trie::AccountInfo;

const LOW: Address = Address::repeat_byte(1);
const HIGH: Address = Address::repeat_byte(2);

fn index(index: u64) -> BlockAccessIndex {
    BlockAccessIndex::new(index)
}

fn slot(slot: u64, changes: &[(u64, u64)]) -> SlotChanges {
    let change = |(at, value): &(u64, u64)| StorageChange::new(index(*at), U256::from(*value));
    SlotChanges::new(U256::from(slot), changes.iter().map(change).collect())
}

fn account(address: Address) -> AccountChanges {
    AccountChanges::new(address)
        .with_storage_change(slot(1, &[(1, 10), (3, 30)]))
        .with_storage_change(slot(4, &[(2, 0)]))
        .with_storage_read(U256::from(2))
        .with_storage_read(U256::from(3))
        .with_balance_change(BalanceChange::new(index(0), U256::from(7)))
        .with_balance_change(BalanceChange::new(index(2), U256::from(8)))
        .with_nonce_change(NonceChange::new(index(2), 5))
        .with_code_change(CodeChange::new(index(1), vec![1].into()))
        .with_code_change(CodeChange::new(index(2), vec![].into()))
}

fn decode(list: &[AccountChanges], gas_limit: u64) -> Option<AccessList> {
    AccessList::decode(&alloy_rlp::encode(list.to_vec()), gas_limit).expect("a list")
}

#[test]
fn a_transaction_finds_what_those_before_it_left() {
    let list = decode(&[account(LOW), account(HIGH)], 30_000_000).unwrap();
    let listed = list.account(&HIGH).unwrap();
    let before = AccountInfo::EMPTY;
    let info = |nonce, balance: u64, code_hash| {
        let balance = U256::from(balance);
        AccountInfo { nonce, balance, code_hash }
    };
    assert_eq!(listed.at(index(0), before), before);
    assert_eq!(listed.at(index(1), before), info(0, 7, KECCAK256_EMPTY));
    assert_eq!(listed.at(index(2), before), info(0, 7, keccak256([1])));
    assert_eq!(listed.at(index(3), before), info(5, 8, KECCAK256_EMPTY));
    assert_eq!(listed.after(before), Some(info(5, 8, KECCAK256_EMPTY)));
    assert_eq!(listed.after(info(5, 8, KECCAK256_EMPTY)), None);
    assert_eq!(listed.code(&keccak256([1])).unwrap()[..], [1]);
    assert_eq!(listed.code(&keccak256([2])), None);
    let values = |slot| (0..5).map(move |at| listed.slot_at(index(at), &U256::from(slot)));
    let known = |values: [Option<u64>; 5]| values.map(|value| value.map(U256::from)).to_vec();
    assert_eq!(values(1).collect::<Vec<_>>(), known([None, None, Some(10), Some(10), Some(30)]));
    assert_eq!(values(4).collect::<Vec<_>>(), known([None, None, None, Some(0), Some(0)]));
    assert_eq!(values(2).collect::<Vec<_>>(), known([None; 5]));
    assert!(list.account(&Address::ZERO).is_none());
}

#[test]
fn each_slot_has_a_place() {
    let list = decode(&[account(LOW), account(HIGH)], 30_000_000).unwrap();
    assert_eq!(list.slots_count(), 8);
    let places = list.accounts().iter().flat_map(|account| {
        account.slots().map(|slot| account.slot_place(&slot).unwrap()).collect::<Vec<_>>()
    });
    assert_eq!(places.collect::<Vec<_>>(), (0..8).collect::<Vec<_>>());
    assert_eq!(list.accounts()[0].slot_place(&U256::from(9)), None);
    let after: Vec<_> = list.accounts()[1].slots_after().collect();
    assert_eq!(after, [(U256::from(1), U256::from(30)), (U256::from(4), U256::ZERO)]);
}

#[test]
fn a_list_that_no_valid_block_has_is_none() {
    let slots = |changes: &[u64], reads: &[u64]| AccountChanges {
        storage_changes: changes.iter().map(|number| slot(*number, &[(1, 1)])).collect(),
        storage_reads: reads.iter().map(|number| U256::from(*number)).collect(),
        ..AccountChanges::new(LOW)
    };
    // Two accounts with four slots each are ten items.
    assert!(decode(&[account(LOW), account(HIGH)], 20_000).is_some());
    assert!(decode(&[account(LOW), account(HIGH)], 19_999).is_none());
    assert!(decode(&[account(HIGH), account(LOW)], 30_000_000).is_none());
    assert!(decode(&[account(LOW), account(LOW)], 30_000_000).is_none());
    assert!(decode(&[slots(&[1, 2], &[3, 4])], 30_000_000).is_some());
    assert!(decode(&[slots(&[2, 1], &[])], 30_000_000).is_none());
    assert!(decode(&[slots(&[1, 1], &[])], 30_000_000).is_none());
    assert!(decode(&[slots(&[], &[2, 1])], 30_000_000).is_none());
    let empty = AccountChanges::new(LOW).with_storage_change(slot(1, &[]));
    assert!(decode(&[empty], 30_000_000).is_none());
    let mut rlp = alloy_rlp::encode(vec![account(LOW)]);
    assert!(AccessList::decode(&rlp, 30_000_000).is_ok_and(|list| list.is_some()));
    for length in 0..rlp.len() {
        AccessList::decode(&rlp[..length], 30_000_000).expect_err("cut off");
    }
    rlp.push(0x80);
    AccessList::decode(&rlp, 30_000_000).expect_err("more behind the end");
}
