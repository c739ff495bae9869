//! What a block's access list is worth: the same blocks, in turn, to an engine that knows no list,
//! to one that tells its trie workers, and to one that also runs transactions ahead.
//!
//! `cargo bench -p deponent-engine --bench access_lists`; run as a test (`cargo test --benches`),
//! it gives each a small block, and compares the witnesses.

use alloy_primitives::{Address, B256, Bytes, TxKind, U256};
use alloy_rpc_types_engine::{
    ExecutionPayload, ExecutionPayloadSidecar, ExecutionPayloadV4, PayloadAttributes,
};
use deponent_engine::{Engine, EngineOptions, Genesis, Payload, Verdict};
use execution::{ChainSpec, Transaction};
use state::{Database, MemoryDisk};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use testing::world::{self, Signer, StartAccount, system_contracts};

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

fn genesis(scale: &Scale) -> (ChainSpec, alloy_genesis::Genesis) {
    let config = world::config("amsterdam");
    let filled = || (0..scale.slots_count).map(|slot| (slot, slot + 1));
    let contracts = [
        (HASHER, StartAccount::contract(HASH)),
        (WRITER, StartAccount::contract(slots(&[0x55])).storage(filled())),
        (READER, StartAccount::contract(slots(&[0x54, 0x50, 0x50])).storage(filled())),
    ];
    let signers = (1..=SIGNERS).map(|n| (Signer::new(n).address(), StartAccount::rich()));
    let accounts = system_contracts().into_iter().chain(contracts).chain(signers);
    let alloc: BTreeMap<_, _> = accounts
        .map(|(address, account)| {
            let word = |(slot, value): (&U256, &U256)| (B256::from(*slot), B256::from(*value));
            let entry = alloy_genesis::GenesisAccount {
                nonce: Some(account.nonce),
                balance: account.balance,
                code: Some(account.code).filter(|code| !code.is_empty()),
                storage: Some(account.storage.iter().map(word).collect()),
                ..Default::default()
            };
            (address, entry)
        })
        .collect();
    let genesis = alloy_genesis::Genesis {
        config: config.clone(),
        gas_limit: 200_000_000,
        // So little that it stays below what the transactions offer.
        base_fee_per_gas: Some(7),
        alloc,
        ..Default::default()
    };
    (ChainSpec::from_config(&config).unwrap(), genesis)
}

fn engine(chain: &ChainSpec, genesis: &alloy_genesis::Genesis, options: EngineOptions) -> Engine {
    let database = Database::open(MemoryDisk::new(), &state::Options::default()).unwrap();
    let genesis = Genesis::new(genesis, chain).unwrap();
    Engine::open(chain.clone(), Some(genesis), database, options).unwrap()
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    Transfer,
    Hash,
    Write,
    Read,
}

fn transaction(kind: Kind, number: u64) -> Transaction {
    let signer = Signer::new(1 + (number % u64::from(SIGNERS)) as u8);
    let nonce = number / u64::from(SIGNERS);
    let seed = B256::from(U256::from(number));
    match kind {
        Kind::Transfer => {
            let to = Address::from_word(alloy_primitives::keccak256(seed));
            signer.transact(nonce, TxKind::Call(to), U256::from(1), Bytes::new())
        }
        Kind::Hash => signer.call(nonce, HASHER, seed),
        Kind::Write => signer.call(nonce, WRITER, seed),
        Kind::Read => signer.call(nonce, READER, seed),
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
fn measure(scale: &Scale, kind: Kind, transactions_count: usize) -> ([Vec<Duration>; 3], u64) {
    let (chain, genesis) = genesis(scale);
    let in_order = EngineOptions { ahead_gas: u64::MAX, ..EngineOptions::default() };
    let options =
        [in_order.clone(), in_order, EngineOptions { ahead_gas: 0, ..EngineOptions::default() }];
    let engines = options.map(|options| engine(&chain, &genesis, options));
    let builder = engine(&chain, &genesis, EngineOptions::default());
    let mut head = builder.heads().head;
    let mut times = [const { Vec::new() }; 3];
    let mut gas_used = 0;
    for number in 0..=scale.blocks_count {
        let first = (number * transactions_count) as u64;
        let numbers = first..first + transactions_count as u64;
        let transactions = numbers.map(|number| transaction(kind, number)).collect();
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
    let sidecar = ExecutionPayloadSidecar::from_block(&block);
    let execution = ExecutionPayloadV4::from_block_unchecked_with_bal(block.hash(), &block, list);
    let payload = Payload { execution: ExecutionPayload::V4(execution), sidecar };
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
    for kind in [Kind::Transfer, Kind::Hash, Kind::Write, Kind::Read] {
        for &count in scale.transactions {
            let (times, gas_used) = measure(&scale, kind, count);
            let [plain, tries, ahead] = times.map(|mut times| median(&mut times).as_secs_f64());
            println!(
                "{:<10}{count:>12}{gas_used:>10}{:>10.2}{:>8.2}{:>8.2}{:>8.2}{:>8.2}",
                format!("{kind:?}"),
                plain * 1e3,
                tries * 1e3,
                plain / tries,
                ahead * 1e3,
                plain / ahead,
            );
        }
    }
}
