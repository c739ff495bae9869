use super::*;
use crate::Engine;
use crate::samples::read;
use alloy_primitives::address;

/// A genesis file as operators write them, all forks but Amsterdam from a later time on.
const FILE: &str = include_str!("tests.json");

fn file() -> alloy_genesis::Genesis {
    serde_json::from_str(FILE).unwrap()
}

#[test]
fn a_file_gives_its_header_and_accounts() {
    let (chain, genesis) = read(&file());
    assert_eq!(chain.chain_id(), 7023);
    let header = &genesis.header;
    assert_eq!((header.number, header.timestamp, header.gas_limit), (0, 1_700_000_000, 30_000_000));
    assert_eq!(header.nonce, alloy_primitives::B64::from(0x1234u64));
    assert_eq!(header.extra_data, Bytes::from_static(b"coff"));
    assert_eq!(header.base_fee_per_gas, Some(7));
    assert_eq!(header.mix_hash, B256::with_last_byte(2));
    assert_eq!(header.beneficiary, Address::with_last_byte(1));
    assert!(header.withdrawals_root.is_some() && header.blob_gas_used.is_some());
    assert!(header.requests_hash.is_none());
    let contract = &genesis.alloc[&address!("0x00000000000000000000000000000000000000bb")];
    assert_eq!((contract.nonce, &contract.code), (Some(1), &Some([0x60, 1].into())));
    assert_eq!(genesis.alloc.len(), 2);
    Engine::new(chain, genesis).unwrap();
}

#[test]
fn the_state_root_is_that_of_a_trie_built_at_once() {
    let (_, genesis) = read(&file());
    let accounts = genesis.alloc.iter().map(|(address, account)| {
        let slots = account.storage.iter().flatten().filter(|(_, value)| !value.is_zero());
        let slots = slots.map(|(slot, value)| (*slot, U256::from_be_bytes(value.0)));
        let account = alloy_trie::TrieAccount {
            nonce: account.nonce.unwrap_or(0),
            balance: account.balance,
            storage_root: alloy_trie::root::storage_root_unhashed(slots),
            code_hash: account.code.as_ref().map_or(KECCAK256_EMPTY, keccak256),
        };
        (*address, account)
    });
    let expected = alloy_trie::root::state_root_unhashed(accounts);
    assert_eq!(genesis.header.state_root, expected);
}

#[test]
fn a_genesis_whose_root_is_not_that_of_its_accounts_is_refused() {
    let (chain, mut genesis) = read(&file());
    let right = std::mem::replace(&mut genesis.header.state_root, B256::repeat_byte(1));
    let error = Engine::new(chain, genesis).unwrap_err().to_string();
    let wrong = B256::repeat_byte(1);
    let expected = format!(
        "the chain cannot begin: state root {wrong} in the header, the accounts give {right}"
    );
    assert_eq!(error, expected);
}

/// As nodes of mainnet say what their rules are.
#[test]
fn a_chain_whose_merge_has_come_may_have_begun_before_london() {
    let begun = |difficulty, passed| {
        let mut file = file();
        (file.config.shanghai_time, file.config.cancun_time) = (Some(1 << 40), Some(1 << 40));
        (file.config.prague_time, file.config.osaka_time) = (None, None);
        file.config.london_block = Some(12_965_000);
        file.config.terminal_total_difficulty = Some(U256::from(difficulty));
        file.config.terminal_total_difficulty_passed = passed;
        file.config.merge_netsplit_block = Some(0);
        let (chain, genesis) = read(&file);
        Engine::new(chain, genesis).map(drop)
    };
    begun(58_750_000_000_000_000_u64, true).unwrap();
    begun(58_750_000_000_000_000, false).unwrap();
    let error = begun(0, true).unwrap_err().to_string();
    assert!(error.contains("londonBlock must not be after the first block"), "{error}");
}
