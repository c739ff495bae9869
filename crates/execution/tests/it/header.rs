//! The rules that a header is held to.

use alloy_consensus::Header;
use alloy_consensus::constants::EMPTY_WITHDRAWALS;
use alloy_eips::eip1559::INITIAL_BASE_FEE;
use alloy_eips::eip4844::DATA_GAS_PER_BLOB;
use alloy_eips::eip7685::EMPTY_REQUESTS_HASH;
use alloy_primitives::{B64, B256, Bytes, U256, keccak256};
use deponent_execution::*;
use testing::world::{self, World};
use trie::EMPTY_ROOT_HASH;

/// The valid header of `fork` with a change, and the rule that it breaks then.
fn check(fork: &str, change: impl Fn(&mut Header), expected: Result<(), InvalidBlock>) {
    let world = World::new(world::chain(fork), []);
    let mut header = world.draft(Vec::new(), Vec::new()).header;
    change(&mut header);
    let parent = world.parent();
    assert_eq!(validate_header(&world.chain, &header, parent, parent.hash_slow()), expected);
}

fn refused(fork: &str, change: impl Fn(&mut Header), expected: InvalidBlock) {
    check(fork, change, Err(expected));
}

const FORKS: [&str; 6] = ["paris", "shanghai", "cancun", "prague", "osaka", "amsterdam"];
/// The parent of these tests.
const GAS_LIMIT: u64 = 100_000_000;

#[test]
fn a_header_in_order_is_accepted() {
    for fork in FORKS {
        check(fork, |_| {}, Ok(()));
        check(fork, |header| header.extra_data = vec![1; 32].into(), Ok(()));
        check(fork, |header| header.timestamp = 1_000_000, Ok(()));
        check(fork, |header| header.gas_used = header.gas_limit, Ok(()));
    }
}

#[test]
fn a_header_follows_its_parent() {
    let world = World::new(world::chain("osaka"), []);
    let expected = world.parent().hash_slow();
    let got = B256::repeat_byte(1);
    let error = InvalidBlock::ParentHash { got, expected };
    refused("osaka", |header| header.parent_hash = got, error);
    for got in [0, 2, u64::MAX] {
        let error = InvalidBlock::Number { got, parent: 0 };
        refused("osaka", |header| header.number = got, error);
    }
    let error = InvalidBlock::Timestamp { got: 0, parent: 0 };
    refused("osaka", |header| header.timestamp = 0, error);
}

#[test]
fn a_parent_from_which_no_number_can_be_computed_has_no_child() {
    type Change = fn(&mut Header);
    let changes: [(&str, Change); 5] = [
        ("number", |parent| parent.number = u64::MAX),
        ("gas used", |parent| parent.gas_used = u64::MAX),
        ("base fee per gas", |parent| parent.base_fee_per_gas = Some(u64::MAX)),
        ("blob gas used", |parent| parent.blob_gas_used = Some(u64::MAX)),
        ("excess blob gas", |parent| parent.excess_blob_gas = Some(u64::MAX)),
    ];
    for (field, change) in changes {
        let world = World::new(world::chain("osaka"), []);
        let mut parent = world.parent().clone();
        change(&mut parent);
        let parent_hash = parent.hash_slow();
        let header = Header { parent_hash, ..world.draft(Vec::new(), Vec::new()).header };
        let expected = InvalidBlock::ParentField { field, got: u64::MAX };
        assert_eq!(validate_header(&world.chain, &header, &parent, parent_hash), Err(expected));
    }
}

#[test]
fn fields_of_proof_of_work_are_fixed() {
    let wrong = |field, expected| InvalidBlock::ProofOfWorkField { field, expected };
    for fork in FORKS {
        let error = wrong("difficulty", "zero");
        refused(fork, |header| header.difficulty = U256::ONE, error);
        refused(fork, |header| header.nonce = B64::with_last_byte(1), wrong("nonce", "zero"));
        let error = wrong("ommers hash", "that of an empty list");
        refused(fork, |header| header.ommers_hash = B256::ZERO, error);
    }
}

#[test]
fn extra_data_is_short() {
    let data = Bytes::from(vec![0; 33]);
    refused("osaka", |header| header.extra_data = data.clone(), InvalidBlock::ExtraData(33));
}

#[test]
fn the_gas_limit_moves_slowly_and_gas_stays_under_it() {
    let step = GAS_LIMIT / 1024;
    for limit in [GAS_LIMIT - step + 1, GAS_LIMIT + step - 1] {
        check("osaka", |header| header.gas_limit = limit, Ok(()));
    }
    for got in [GAS_LIMIT - step, GAS_LIMIT + step, 0, 4999, u64::MAX] {
        let error = InvalidBlock::GasLimit { got, parent: GAS_LIMIT };
        refused("osaka", |header| header.gas_limit = got, error);
    }
    let (gas_used, gas_limit) = (GAS_LIMIT + 1, GAS_LIMIT);
    let error = InvalidBlock::GasUsedOverLimit { gas_used, gas_limit };
    refused("osaka", |header| header.gas_used = gas_used, error);
}

#[test]
fn the_gas_limit_has_a_floor_and_a_ceiling() {
    for (parent_limit, got) in [(5001, 4999), (5001, 4998), (1 << 63, 1 << 63)] {
        let world = World::new(world::chain("osaka"), []);
        let parent = Header { gas_limit: parent_limit, gas_used: 0, ..world.parent().clone() };
        let parent_hash = parent.hash_slow();
        let header = world.draft(Vec::new(), Vec::new()).header;
        let header = Header { parent_hash, gas_limit: got, ..header };
        let expected = InvalidBlock::GasLimit { got, parent: parent_limit };
        assert_eq!(validate_header(&world.chain, &header, &parent, parent_hash), Err(expected));
    }
}

#[test]
fn the_base_fee_follows_from_the_parent() {
    let world = World::new(world::chain("osaka"), []);
    let expected = next_base_fee(world.parent());
    for got in [None, Some(0), Some(expected - 1), Some(expected + 1), Some(u64::MAX)] {
        let error = InvalidBlock::BaseFee { got, expected };
        refused("osaka", |header| header.base_fee_per_gas = got, error);
    }
}

#[test]
fn a_header_has_just_the_fields_of_its_fork() {
    type Change = fn(&mut Header, bool);
    let fields: [(&str, &str, Change); 7] = [
        ("withdrawals root", "shanghai", |header, there| {
            header.withdrawals_root = there.then_some(B256::ZERO);
        }),
        ("blob gas used", "cancun", |header, there| header.blob_gas_used = there.then_some(0)),
        ("excess blob gas", "cancun", |header, there| header.excess_blob_gas = there.then_some(0)),
        ("parent beacon block root", "cancun", |header, there| {
            header.parent_beacon_block_root = there.then_some(B256::ZERO);
        }),
        ("requests hash", "prague", |header, there| {
            header.requests_hash = there.then_some(B256::ZERO);
        }),
        ("block access list hash", "amsterdam", |header, there| {
            header.block_access_list_hash = there.then_some(B256::ZERO);
        }),
        ("slot number", "amsterdam", |header, there| header.slot_number = there.then_some(1)),
    ];
    let timestamp = 12;
    for (field, since, change) in fields {
        let since = FORKS.iter().position(|fork| *fork == since).unwrap();
        for fork in &FORKS[..since] {
            let error = InvalidBlock::UnexpectedField { field, timestamp };
            refused(fork, |header| change(header, true), error);
        }
        for fork in &FORKS[since..] {
            let error = InvalidBlock::MissingField { field, timestamp };
            refused(fork, |header| change(header, false), error);
        }
    }
}

#[test]
fn blob_gas_is_whole_blobs_under_the_limit_and_the_excess_follows() {
    for (fork, blobs) in [("cancun", 6), ("prague", 9), ("osaka", 9)] {
        let limit = blobs * DATA_GAS_PER_BLOB;
        check(fork, |header| header.blob_gas_used = Some(limit), Ok(()));
        for got in [1, DATA_GAS_PER_BLOB - 1, limit + DATA_GAS_PER_BLOB, limit + 1] {
            let error = InvalidBlock::BlobGasLimit { got, limit };
            refused(fork, |header| header.blob_gas_used = Some(got), error);
        }
        let error = InvalidBlock::ExcessBlobGas { got: 1, expected: 0 };
        refused(fork, |header| header.excess_blob_gas = Some(1), error);
    }
}

#[test]
fn a_first_header_has_the_fields_of_the_fork_it_begins_with() {
    let genesis = alloy_genesis::Genesis::default();
    for (index, fork) in FORKS.into_iter().enumerate() {
        let header = first_header(&genesis, &world::chain(fork), EMPTY_ROOT_HASH).unwrap();
        assert_eq!(header.base_fee_per_gas, Some(INITIAL_BASE_FEE));
        assert_eq!(header.withdrawals_root, (index >= 1).then_some(EMPTY_WITHDRAWALS), "{fork}");
        assert_eq!(header.blob_gas_used, (index >= 2).then_some(0), "{fork}");
        assert_eq!(header.excess_blob_gas, (index >= 2).then_some(0), "{fork}");
        let beacon_root = header.parent_beacon_block_root;
        assert_eq!(beacon_root, (index >= 2).then_some(B256::ZERO), "{fork}");
        assert_eq!(header.requests_hash, (index >= 3).then_some(EMPTY_REQUESTS_HASH), "{fork}");
        let list = header.block_access_list_hash;
        assert_eq!(list, (index >= 5).then(|| keccak256([0xc0])), "{fork}");
        assert_eq!(header.slot_number, (index >= 5).then_some(0), "{fork}");
    }
    let genesis = alloy_genesis::Genesis { base_fee_per_gas: Some(1 << 64), ..genesis };
    let error = first_header(&genesis, &world::chain("osaka"), EMPTY_ROOT_HASH).unwrap_err();
    assert_eq!(error.to_string(), "baseFeePerGas 18446744073709551616 is over 64 bits");
}
