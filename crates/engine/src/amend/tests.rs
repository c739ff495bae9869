use super::*;
use crate::samples::*;
use crate::{HeaderChoice, Verdict, world};
use alloy_consensus::{Signed, Transaction as _, TxEip1559};
use alloy_primitives::{Signature, TxKind};
use execution::Transaction;
use state::MemoryDisk;

const WHO: Address = Address::repeat_byte(0x77);

fn dev_file() -> alloy_genesis::Genesis {
    let mut config = world::config("osaka");
    config.extra_fields.insert("deponentDev".into(), true.into());
    genesis_file(config)
}

/// A transaction that `WHO` did not sign.
fn unsigned(nonce: u64, to: Address) -> Transaction {
    let transaction = TxEip1559 {
        chain_id: world::CHAIN_ID,
        nonce,
        gas_limit: 100_000,
        max_fee_per_gas: world::GAS_PRICE,
        to: TxKind::Call(to),
        ..TxEip1559::default()
    };
    let signature = Signature::new(WHO.into_word().into(), U256::ZERO, false);
    Signed::new_unhashed(transaction, signature).into()
}

fn balance(engine: &Engine, hash: B256) -> Option<U256> {
    let account = engine.state(hash).unwrap().account(WHO).unwrap();
    account.map(|account| account.balance)
}

/// A block on `parent`, which is valid.
fn extend_with(engine: &Engine, parent: B256, transactions: Vec<Transaction>) -> B256 {
    let block = build(engine, parent, transactions, 0).block;
    let hash = block.hash();
    assert_eq!(engine.new_block(block).unwrap(), Verdict::Valid);
    hash
}

#[test]
fn amendments_are_seen_at_once_and_by_the_blocks_that_follow() {
    let engine = engine_from(&dev_file());
    let head = extend(&engine, engine.heads().genesis, 0);
    let before = engine.state_handle(head).unwrap();
    let (slot, value) = (U256::from(5), U256::from(6));
    // It stores the number of the block in the slot of that number, as the other contract.
    let code = Bytes::from_static(&[0x43, 0x43, 0x55]);
    let rich = U256::from(10u128.pow(20));
    let other = Address::repeat_byte(0x78);
    engine
        .amend(
            head,
            &[
                (WHO, Amendment::Balance(rich)),
                (WHO, Amendment::Nonce(3)),
                (other, Amendment::Code(code.clone())),
                (other, Amendment::Storage { slot, value }),
                (COUNTER, Amendment::Storage { slot: U256::from(1), value: U256::ZERO }),
            ],
        )
        .unwrap();
    let view = engine.state(head).unwrap();
    assert_eq!(view.account(WHO).unwrap().unwrap().nonce, 3);
    assert_eq!(balance(&engine, head), Some(rich));
    assert_eq!((view.code(other).unwrap(), view.storage(other, slot).unwrap()), (code, value));
    assert_eq!(view.storage(COUNTER, U256::from(1)).unwrap(), U256::ZERO);
    // The sender of an unsigned transaction, and the new contract that it calls.
    let next = extend_with(&engine, head, vec![unsigned(3, other)]);
    let view = engine.state(next).unwrap();
    assert_eq!(view.storage(other, U256::from(2)).unwrap(), U256::from(2));
    assert_eq!(view.account(WHO).unwrap().unwrap().nonce, 4);
    let record = engine.block(next).unwrap().unwrap();
    assert_eq!(record.senders, [WHO]);
    let (hash, again) = (record.block.body.transactions[0].tx_hash(), unsigned(3, other));
    assert_eq!(hash, again.tx_hash());
    assert!(engine.witness(next).unwrap().is_some());
    // Back, and the other way.
    engine.restore(&before).unwrap();
    assert_eq!(balance(&engine, head), None);
    assert_eq!(engine.state(head).unwrap().storage(COUNTER, U256::from(1)).unwrap(), U256::from(1));
    let other_next = extend(&engine, head, 1);
    assert_eq!(balance(&engine, other_next), None);
    assert!(balance(&engine, next).is_some());
}

#[test]
fn amendments_of_the_head_outlast_a_restart() {
    let (disk, file) = (MemoryDisk::new(), dev_file());
    let open = || open(disk.clone(), &file, &Default::default(), Default::default()).unwrap();
    let engine = open();
    let head = extend(&engine, engine.heads().genesis, 0);
    engine.reset_head(head).unwrap();
    engine.amend(head, &[(WHO, Amendment::Balance(U256::from(8)))]).unwrap();
    drop(engine);
    let engine = open();
    assert_eq!(engine.heads().head, head);
    assert_eq!(balance(&engine, head), Some(U256::from(8)));
    extend(&engine, head, 0);
}

#[test]
fn the_first_block_can_be_amended() {
    let engine = engine_from(&dev_file());
    let genesis = engine.heads().genesis;
    engine.amend(genesis, &[(WHO, Amendment::Balance(U256::from(8)))]).unwrap();
    let next = extend(&engine, genesis, 0);
    assert_eq!(balance(&engine, next), Some(U256::from(8)));
}

#[test]
fn base_fee_and_gas_limit_are_free_on_a_chain_for_tests_alone() {
    let choice =
        HeaderChoice { base_fee: Some(77), gas_limit: Some(99_000_000), ..Default::default() };
    let engine = engine_from(&dev_file());
    let parent = engine.heads().genesis;
    let built = engine.build_best(parent, attributes(&engine, parent), choice.clone()).unwrap();
    let header = &built.block.header;
    assert_eq!((header.base_fee_per_gas, header.gas_limit), (Some(77), 99_000_000));
    assert_eq!(engine.new_block(built.block.clone()).unwrap(), Verdict::Valid);
    let other = engine_of(world::config("osaka"));
    let parent = other.heads().genesis;
    other.build_best(parent, attributes(&other, parent), choice).unwrap_err();
    // Nor is an unsigned transaction one.
    let unsigned = unsigned(0, COUNTER);
    assert_eq!(unsigned.nonce(), 0);
    other.build(parent, attributes(&other, parent), vec![unsigned], Bytes::new()).unwrap_err();
}
