//! The chain for tests, as its users see it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use alloy_consensus::TxEip1559;
use alloy_hardforks::EthereumHardfork;
use alloy_primitives::{Address, B256, Bytes, TxKind, U256};
use deponent_dev::limits::{BALANCE, CHAIN_ID};
use deponent_dev::{DevChain, DevGenesis, Error, Mining, impersonated};
use engine::{Amendment, Engine};
use execution::Transaction;

const WHO: Address = Address::repeat_byte(0x11);
const OTHER: Address = Address::repeat_byte(0x22);

fn start_at(fork: EthereumHardfork, mining: Mining) -> Arc<DevChain> {
    let genesis = DevGenesis { fork, ..DevGenesis::default() }.rich(WHO, BALANCE);
    let genesis = genesis.build().expect("a configuration in order");
    let engine = Engine::new(genesis.chain, genesis.first).expect("a chain");
    DevChain::new(Arc::new(engine), mining).expect("a chain for tests")
}

fn start() -> Arc<DevChain> {
    start_at(EthereumHardfork::Osaka, Mining::default())
}

fn manual() -> Mining {
    Mining { is_automatic: false, interval: None }
}

fn transfer(from: Address, nonce: u64, tip: u128) -> Transaction {
    let transaction = TxEip1559 {
        chain_id: CHAIN_ID,
        nonce,
        // From Amsterdam on a new account costs more.
        gas_limit: 500_000,
        max_fee_per_gas: 10_000_000_000,
        max_priority_fee_per_gas: tip,
        to: TxKind::Call(OTHER),
        value: U256::from(7),
        ..TxEip1559::default()
    };
    impersonated(transaction.into(), from)
}

fn balance(chain: &DevChain, address: Address) -> U256 {
    let state = chain.engine().state(chain.engine().heads().head).expect("kept");
    state.account(address).expect("read").map_or(U256::ZERO, |account| account.balance)
}

fn height(chain: &DevChain) -> u64 {
    let engine = chain.engine();
    engine.number(&engine.heads().head).expect("read").expect("known")
}

fn time(chain: &DevChain) -> u64 {
    let engine = chain.engine();
    engine.block(engine.heads().head).expect("read").expect("known").block.header.timestamp
}

#[test]
fn ten_thousand_ether_are_what_they_are() {
    assert_eq!(BALANCE, U256::from(10u128.pow(22)));
}

/// A dump is the whole state, and another chain takes it.
#[test]
fn a_dump_is_loaded_by_another_chain() {
    let first = start();
    first.name_accounts([WHO]);
    // It stores the number of the block at the slot of the same number.
    let code = Bytes::from_static(&[0x43, 0x43, 0x55]);
    first.amend(&[(OTHER, Amendment::Code(code.clone()))]).expect("amended");
    let slot = Amendment::Storage { slot: U256::from(77), value: U256::from(78) };
    first.amend(&[(OTHER, slot)]).expect("amended");
    for nonce in 0..3 {
        first.send(transfer(WHO, nonce, 1)).expect("taken");
    }
    first.mine(2, None).expect("mined");
    let dumped = first.dump().expect("all names are known");
    let other = dumped.iter().find(|account| account.address == OTHER).expect("there");
    let stored = [(1, 1), (2, 2), (3, 3), (77, 78)];
    let stored = stored.map(|(slot, value)| (U256::from(slot), U256::from(value)));
    assert_eq!((&other.code, &other.storage), (&code, &stored.into()));
    assert_eq!(other.balance, U256::from(21));

    let second = start();
    second.name_accounts([WHO]);
    second.load(&dumped).expect("loaded");
    second.send(transfer(WHO, 3, 1)).expect("the nonce goes on");
    assert_eq!(balance(&second, OTHER), U256::from(28));
    let unnamed = start();
    assert_eq!(unnamed.dump(), Err(Error::Unnamed));
}

#[test]
fn a_block_is_mined_for_each_transaction_that_can_run_with_its_witness() {
    use EthereumHardfork::{Amsterdam, Cancun, Osaka, Paris, Prague, Shanghai};
    for fork in [Paris, Shanghai, Cancun, Prague, Osaka, Amsterdam] {
        let chain = start_at(fork, Mining::default());
        for nonce in 0..3 {
            let hash = chain.send(transfer(WHO, nonce, 1)).expect("taken");
            let head = chain.engine().heads().head;
            let record = chain.engine().block(head).expect("read").expect("known");
            assert_eq!(record.block.body.transactions[0].tx_hash(), &hash, "{fork}");
            assert_eq!((record.number(), record.senders[0]), (nonce + 1, WHO), "{fork}");
            let witness = chain.engine().witness(head).expect("kept").expect("there");
            execution::verify(chain.engine().chain(), &record.block, None, &witness)
                .expect("it verifies the block");
        }
        assert_eq!(balance(&chain, OTHER), U256::from(21), "{fork}");
        // One that has to wait for others changes nothing.
        chain.send(transfer(WHO, 5, 1)).expect("taken");
        assert_eq!((height(&chain), chain.pool().status().queued), (3, 1), "{fork}");
    }
}

#[test]
fn a_transaction_that_no_block_can_have_is_refused_where_blocks_are_mined_for_them_alone() {
    let priced = |nonce: u64, fee: u128| {
        let transaction = TxEip1559 {
            chain_id: CHAIN_ID,
            nonce,
            gas_limit: 21_000,
            max_fee_per_gas: fee,
            to: TxKind::Call(OTHER),
            ..TxEip1559::default()
        };
        impersonated(transaction.into(), WHO)
    };
    let chain = start();
    // The base fee is 875,000,000 wei in the first block after one of 1,000,000,000 without gas.
    let refused = chain.send(priced(0, 874_999_999)).expect_err("too little");
    let words = "less than block base fee: it offers 874999999 wei, and 875000000 is due";
    assert!(refused.to_string().contains(words), "{refused}");
    assert_eq!((height(&chain), chain.pool().status().pending), (0, 0));
    chain.send(priced(0, 875_000_000)).expect("enough");
    chain.set_next_base_fee(5);
    chain.send(priced(1, 5)).expect("enough for a block whose fee was said");
    assert_eq!(height(&chain), 2);
    // Blocks that come by themselves cost less and less, and it may wait for one.
    for mining in [manual(), Mining { is_automatic: true, interval: Some(Duration::MAX) }] {
        let chain = start_at(EthereumHardfork::Osaka, mining);
        chain.send(priced(0, 1)).expect("it waits");
        assert_eq!(chain.pool().status().pending, 1);
    }
}

#[test]
fn blocks_are_mined_on_demand_and_have_what_waits_best_first() {
    let chain = start_at(EthereumHardfork::Osaka, manual());
    for (nonce, tip) in [(0, 1), (1, 9)] {
        chain.send(transfer(WHO, nonce, tip)).expect("taken");
    }
    assert_eq!((height(&chain), chain.pool().status().pending), (0, 2));
    let mined = chain.mine(3, Some(100)).expect("mined");
    assert_eq!((mined.len(), height(&chain)), (3, 3));
    let first = chain.engine().block(mined[0]).expect("read").expect("known");
    let last = chain.engine().block(mined[2]).expect("read").expect("known");
    assert_eq!(first.block.body.transactions.len(), 2);
    assert_eq!(last.block.header.timestamp, first.block.header.timestamp + 200);
    assert_eq!(chain.pool().status().pending, 0);
    let refused = chain.mine(100_001, None).expect_err("too many");
    assert!(matches!(refused, Error::TooManyBlocks { .. }), "{refused}");
    chain.set_automatic(true);
    chain.send(transfer(WHO, 2, 1)).expect("taken");
    assert_eq!(height(&chain), 4);
}

#[test]
fn blocks_come_at_intervals_until_there_is_none() {
    let interval = Some(Duration::from_millis(20));
    let chain = start_at(EthereumHardfork::Osaka, Mining { is_automatic: false, interval });
    let start = Instant::now();
    while height(&chain) < 3 {
        assert!(start.elapsed() < Duration::from_secs(60), "no blocks come");
        std::thread::sleep(Duration::from_millis(5));
    }
    chain.set_interval(None);
    assert_eq!(chain.interval(), None);
}

#[test]
fn the_clock_can_be_moved() {
    let chain = start_at(EthereumHardfork::Osaka, manual());
    chain.mine(1, None).expect("mined");
    let begun = time(&chain);
    chain.set_next_time(begun + 1000).expect("later");
    chain.mine(1, None).expect("mined");
    assert_eq!(time(&chain), begun + 1000);
    // The clock goes on from there.
    chain.mine(1, None).expect("mined");
    let next = time(&chain);
    assert!((begun + 1001..begun + 1100).contains(&next), "{next}, {begun}");
    assert!(chain.increase_time(500) >= 1490);
    chain.mine(1, None).expect("mined");
    assert!(time(&chain) >= begun + 1500);
    let late = chain.set_next_time(begun).expect_err("past");
    assert!(late.to_string().starts_with("Timestamp error: "), "{late}");
    assert_eq!(chain.set_time_between(Some(7)), None);
    let before = time(&chain);
    chain.mine(2, None).expect("mined");
    assert_eq!(time(&chain), before + 14);
    assert_eq!(chain.set_time_between(None), Some(7));
    let far = time(&chain) + 10_000;
    chain.mine_at(far).expect("mined");
    assert_eq!(time(&chain), far);
}

#[test]
fn a_snapshot_brings_back_head_state_clock_and_pool() {
    let chain = start();
    chain.send(transfer(WHO, 0, 1)).expect("taken");
    chain.send(transfer(WHO, 4, 1)).expect("taken");
    let (head, money) = (chain.engine().heads().head, balance(&chain, WHO));
    let first = chain.snapshot().expect("made");
    chain.amend(&[(OTHER, Amendment::Balance(U256::from(1)))]).expect("amended");
    let second = chain.snapshot().expect("made");
    assert_eq!((first, second), (0, 1));
    chain.send(transfer(WHO, 1, 1)).expect("taken");
    chain.increase_time(1000);
    assert_eq!(balance(&chain, OTHER), U256::from(8));
    assert!(chain.revert(second).expect("reverted"));
    assert_eq!((height(&chain), balance(&chain, OTHER)), (1, U256::from(1)));
    assert!(chain.revert(first).expect("reverted"));
    assert_eq!(chain.engine().heads().head, head);
    assert_eq!((balance(&chain, OTHER), balance(&chain, WHO)), (U256::from(7), money));
    assert_eq!(chain.pool().status().queued, 1);
    // Each is gone once it, or an earlier one, was reverted to.
    assert!(!chain.revert(first).expect("answered"));
    assert!(!chain.revert(second).expect("answered"));
    // The chain goes on, and the same transaction can be sent again.
    chain.send(transfer(WHO, 1, 1)).expect("taken");
    assert_eq!(height(&chain), 2);
}

#[test]
fn amended_accounts_send_at_once() {
    let chain = start();
    let poor = Address::repeat_byte(0x33);
    let refused = chain.send(transfer(poor, 0, 1)).expect_err("no money");
    assert!(refused.to_string().contains("insufficient funds"), "{refused}");
    let rich = [(poor, Amendment::Balance(BALANCE)), (poor, Amendment::Nonce(9))];
    chain.amend(&rich).expect("amended");
    // A contract may send, too.
    chain.amend(&[(poor, Amendment::Code(Bytes::from_static(&[0])))]).expect("amended");
    chain.send(transfer(poor, 9, 1)).expect("taken");
    assert_eq!(height(&chain), 1);
    chain.add_balance(OTHER, U256::from(3)).expect("added");
    assert_eq!(balance(&chain, OTHER), U256::from(10));
}

#[test]
fn the_next_header_is_as_it_was_said() {
    let chain = start();
    chain.set_next_base_fee(77);
    chain.set_gas_limit(12_345_678).expect("a gas limit");
    chain.set_coinbase(OTHER);
    chain.set_prev_randao(B256::repeat_byte(5));
    let mined = chain.mine(2, None).expect("mined");
    let header =
        |hash: B256| chain.engine().block(hash).expect("read").expect("known").block.header.clone();
    let [first, second] = [header(mined[0]), header(mined[1])];
    assert_eq!((first.base_fee_per_gas, first.gas_limit), (Some(77), 12_345_678));
    assert_eq!((first.beneficiary, first.mix_hash), (OTHER, B256::repeat_byte(5)));
    assert!(second.base_fee_per_gas < Some(77) && second.gas_limit == 12_345_678);
    assert_ne!(second.mix_hash, B256::repeat_byte(5));
    for given in [0, 4_999, 1 << 63, u64::MAX] {
        assert_eq!(chain.set_gas_limit(given), Err(Error::GasLimit { given }));
    }
    chain.mine(1, None).expect("mined as before");
}

#[test]
fn blocks_are_taken_back_and_put_in_the_place_of_others() {
    let chain = start();
    let mined = chain.mine(70, None).expect("mined");
    let heads = chain.engine().heads();
    assert_eq!((heads.safe, heads.finalized), (Some(mined[37]), Some(mined[5])));
    chain.roll_back(68).expect("rolled back");
    assert_eq!((height(&chain), chain.engine().heads().head), (2, mined[1]));
    let refused = chain.roll_back(3).expect_err("too deep");
    assert_eq!(refused, Error::TooDeep { depth: 3, height: 2 });
    let other = chain.reorganise(2, vec![(transfer(WHO, 0, 1), 1)], Ok::<_, Error>);
    let other = other.expect("mined");
    assert_eq!((height(&chain), other.len()), (2, 2));
    let record = chain.engine().block(other[1]).expect("read").expect("known");
    assert_eq!(record.block.body.transactions.len(), 1);
    assert_eq!(record.block.header.parent_hash, other[0]);
    chain.reset().expect("reset");
    assert_eq!(height(&chain), 0);
}

#[test]
fn a_reorganisation_that_fails_leaves_the_chain_as_it_is() {
    let chain = start();
    for nonce in 0..3 {
        chain.send(transfer(WHO, nonce, 1)).expect("mined");
    }
    chain.set_automatic(false);
    chain.send(transfer(WHO, 3, 1)).expect("waits");
    chain.set_next_base_fee(99);
    let head = chain.engine().heads().head;
    let beyond = chain.reorganise(2, vec![(transfer(WHO, 1, 2), 2)], Ok::<_, Error>);
    assert_eq!(beyond, Err(Error::BeyondDepth { index: 2, depth: 2 }));
    // The second one has a nonce that is used by then.
    let transactions = vec![(transfer(WHO, 1, 2), 0), (transfer(WHO, 1, 3), 1)];
    let refused = chain.reorganise(2, transactions, Ok::<_, Error>);
    assert!(matches!(refused, Err(Error::Refused(_))), "{refused:?}");
    assert_eq!(chain.engine().heads().head, head);
    assert_eq!(chain.pool().status(), pool::Status { pending: 1, queued: 0 });
    chain.mine(1, None).expect("mined");
    let head = chain.engine().heads().head;
    let record = chain.engine().block(head).expect("read").expect("known");
    assert_eq!(record.block.header.base_fee_per_gas, Some(99));
    assert_eq!(record.block.body.transactions.len(), 1);
}

#[test]
fn the_first_block_is_safe_and_finalized_from_the_start() {
    let chain = start();
    let heads = || chain.engine().heads();
    let first = Some(heads().genesis);
    assert_eq!((heads().safe, heads().finalized), (first, first));
    let mined = chain.mine(33, None).expect("mined");
    assert_eq!((heads().safe, heads().finalized), (Some(mined[0]), first));
    chain.roll_back(20).expect("rolled back");
    assert_eq!((heads().safe, heads().finalized), (first, first));
    chain.reset().expect("reset");
    assert_eq!((heads().safe, heads().finalized), (first, first));
}

#[test]
fn waiting_transactions_are_dropped() {
    let chain = start_at(EthereumHardfork::Osaka, manual());
    let hash = chain.send(transfer(WHO, 0, 1)).expect("taken");
    chain.send(transfer(WHO, 1, 1)).expect("taken");
    assert_eq!(chain.drop_transaction(hash), Some(hash));
    assert_eq!(chain.drop_transaction(hash), None);
    chain.drop_transactions(Some(WHO));
    assert_eq!(chain.pool().status(), pool::Status::default());
}

#[test]
fn a_chain_before_the_merge_is_refused() {
    let genesis = DevGenesis { fork: EthereumHardfork::London, ..DevGenesis::default() };
    let refused = genesis.build().expect_err("before the merge");
    assert!(refused.to_string().contains("before the merge"), "{refused}");
}
