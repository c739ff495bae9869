//! What a block's access list is worth: the same blocks, in turn, to an engine that knows no list,
//! to one that tells its trie workers, and to one that also runs transactions ahead.
//!
//! `cargo bench -p deponent-engine --bench access_lists`; run as a test (`cargo test --benches`),
//! it gives each a small block, and compares the witnesses.

use alloy_primitives::{Address, B256, Bytes, TxKind, U256};
use alloy_rpc_types_engine::{ExecutionPayload, PayloadAttributes};
use deponent_engine::{Engine, EngineOptions, Genesis, Payload, Verdict};
use execution::{ChainSpec, Transaction};
use state::{Database, MemoryDisk};
use std::time::{Duration, Instant};
use testing::world::{self, Signer, StartAccount, genesis_alloc};

const HASHER: Address = Address::repeat_byte(0xa1);
const WRITER: Address = Address::repeat_byte(0xa2);
const READER: Address = Address::repeat_byte(0xa3);
const SIGNERS: u8 = 200;

/// Hashes until its gas is nearly gone.
const HASH: [u8; 14] = *b"\x5b\x60\x20\x5f\x20\x50\x61\x27\x10\x5a\x11\x5f\x57\0";

/// Puts the input into memory, then hashes it again and again, and takes each hash for a slot, of
/// 2^16, to write or to read, until its gas is nearly gone.
fn slots(op: &[u8]) -> Bytes {
    let start = b"\x5f\x35\x5f\x52\x5b\x60\x20\x5f\x20\x80\x5f\x52\x80\x61\xff\xff\x16";
    let end = b"\x61\x75\x30\x5a\x11\x60\x04\x57\0";
    [&start[..], op, end].concat().into()
}

struct Scale {
    slots_count: u64,
    /// Blocks measured, after one that is not.
    blocks_count: usize,
    transactions: &'static [usize],
}

fn genesis(scale: &Scale) -> alloy_genesis::Genesis {
    let filled = || (0..scale.slots_count).map(|slot| (slot, slot + 1));
    let contracts = [
        (HASHER, StartAccount::contract(HASH)),
        (WRITER, StartAccount::contract(slots(&[0x55])).storage(filled())),
        (READER, StartAccount::contract(slots(&[0x54, 0x50, 0x50])).storage(filled())),
    ];
    let signers = (1..=SIGNERS).map(|n| (Signer::new(n).address(), StartAccount::rich()));
    alloy_genesis::Genesis {
        config: world::config("amsterdam"),
        gas_limit: 200_000_000,
        // So little that it stays below what the transactions offer.
        base_fee_per_gas: Some(7),
        alloc: genesis_alloc(contracts.into_iter().chain(signers)),
        ..Default::default()
    }
}

fn engine(genesis: &alloy_genesis::Genesis, ahead_gas: u64) -> Engine {
    let chain = ChainSpec::from_config(&genesis.config).unwrap();
    let database = Database::open(MemoryDisk::new(), &state::Options::default()).unwrap();
    let genesis = Genesis::new(genesis, &chain).unwrap();
    let options = EngineOptions { ahead_gas, ..EngineOptions::default() };
    Engine::open(chain, Some(genesis), database, options).unwrap()
}

/// A call of a contract, or a transfer.
fn transaction(contract: Option<Address>, number: u64) -> Transaction {
    let signer = Signer::new(1 + (number % u64::from(SIGNERS)) as u8);
    let nonce = number / u64::from(SIGNERS);
    let seed = B256::from(U256::from(number));
    match contract {
        Some(contract) => signer.call(nonce, contract, seed),
        None => {
            let to = Address::from_word(alloy_primitives::keccak256(seed));
            signer.transact(nonce, TxKind::Call(to), U256::from(1), Bytes::new())
        }
    }
}

fn attributes(timestamp: u64) -> PayloadAttributes {
    PayloadAttributes {
        timestamp,
        prev_randao: B256::repeat_byte(1),
        suggested_fee_recipient: world::COINBASE,
        withdrawals: Some(Vec::new()),
        parent_beacon_block_root: Some(B256::repeat_byte(2)),
        slot_number: Some(timestamp / 12),
        target_gas_limit: None,
    }
}

/// Gives blocks of one kind to the three engines; what each took, and the gas of a block.
fn measure(
    scale: &Scale,
    contract: Option<Address>,
    transactions_count: usize,
) -> ([Vec<Duration>; 3], u64) {
    let genesis = genesis(scale);
    let engines = [u64::MAX, u64::MAX, 0].map(|ahead_gas| engine(&genesis, ahead_gas));
    let builder = engine(&genesis, u64::MAX);
    let mut head = builder.heads().head;
    let mut times = [const { Vec::new() }; 3];
    let mut gas_used = 0;
    for number in 0..=scale.blocks_count {
        let first = (number * transactions_count) as u64;
        let numbers = first..first + transactions_count as u64;
        let transactions = numbers.map(|number| transaction(contract, number)).collect();
        let attributes = attributes(12 * (1 + number as u64));
        let built = builder.build(head, attributes, transactions, Bytes::new()).unwrap();
        head = built.block.hash();
        give(&builder, false, &built);
        gas_used = built.block.header.gas_used;
        for turn in 0..engines.len() {
            let which = (number + turn) % engines.len();
            let took = give(&engines[which], which > 0, &built);
            if number > 0 {
                times[which].push(took);
            }
            assert_eq!(*engines[which].witness(head).unwrap().unwrap(), built.witness);
            engines[which].persist().unwrap();
        }
    }
    (times, gas_used)
}

fn give(engine: &Engine, with_list: bool, built: &deponent_engine::Built) -> Duration {
    let (block, list) = (built.block.clone(), built.block_access_list.clone().unwrap());
    let (execution, sidecar) =
        ExecutionPayload::from_block_unchecked_with_bal(block.hash(), &block, list);
    let payload = Payload { execution, sidecar };
    let start = Instant::now();
    let verdict = if with_list { engine.new_payload(payload) } else { engine.new_block(block) };
    let took = start.elapsed();
    assert_eq!(verdict.unwrap(), Verdict::Valid);
    took
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

fn main() {
    let is_bench = std::env::args().any(|argument| argument == "--bench");
    let scale = if is_bench {
        Scale { slots_count: 1 << 16, blocks_count: 9, transactions: &[2, 8, 40, 120] }
    } else {
        Scale { slots_count: 1 << 8, blocks_count: 1, transactions: &[3] }
    };
    println!("kind      transactions       gas   no list   tries   ratio   ahead   ratio");
    let contracts = [None, Some(HASHER), Some(WRITER), Some(READER)];
    for (kind, contract) in ["Transfer", "Hash", "Write", "Read"].into_iter().zip(contracts) {
        for &count in scale.transactions {
            let (times, gas_used) = measure(&scale, contract, count);
            let [plain, tries, ahead] = times.map(|mut times| median(&mut times).as_secs_f64());
            println!(
                "{kind:<10}{count:>12}{gas_used:>10}{:>10.2}{:>8.2}{:>8.2}{:>8.2}{:>8.2}",
                plain * 1e3,
                tries * 1e3,
                plain / tries,
                ahead * 1e3,
                plain / ahead,
            );
        }
    }
}
