//! The index finds the same as a walk over all blocks: in memory, on disk, after reorganisations,
//! and in a database that an earlier version wrote.

use std::sync::Arc;
use std::time::Instant;

use alloy_eips::eip2718::Encodable2718;
use alloy_primitives::{Address, B256, Bytes, hex};
use alloy_rpc_types_engine::{ForkchoiceState, PayloadAttributes};
use engine::{BlockRecord, Engine, EngineOptions, Genesis, Verdict};
use execution::{ChainSpec, Transaction};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use rpc::{Handler, RawValue};
use serde_json::{Value, json};
use state::{Database, MemoryDisk, Options};
use testing::world::{self, Signer, StartAccount};

use super::super::Api;
use super::super::log_filter::LogFilter;
use super::{LOG_ANSWER_BYTES, LOG_BLOCK_BYTES, LOG_READ_BYTES, LOGS, LogAnswer};
use crate::logs::block_logs;

/// Contracts that log the first word of their input, with the words of it as topics: two, one and
/// none.
const LOGGERS: [(u8, [u8; 9]); 4] = [
    (0xa0, hex!("6020355f3560205fa2")),
    (0xa1, hex!("6020355f3560205fa2")),
    (0xa2, hex!("5f3560205fa1000000")),
    (0xa3, hex!("60205fa00000000000")),
];

/// A contract that makes 500 logs.
pub(in crate::api) const MANY: Address = Address::repeat_byte(0xa4);

pub(in crate::api) struct Chain {
    disk: MemoryDisk,
    genesis: alloy_genesis::Genesis,
    engine: Option<Arc<Engine>>,
    pub(in crate::api) random: StdRng,
}

impl Chain {
    pub(in crate::api) fn new(seed: u64) -> Self {
        let loggers = LOGGERS.map(|(byte, code)| {
            (Address::repeat_byte(byte), StartAccount::contract(code.to_vec()))
        });
        let many = (MANY, StartAccount::contract(hex!("5f5fa0").repeat(500)));
        let rich = [(Signer::new(1).address(), StartAccount::rich())];
        let alloc = world::genesis_alloc(rich.into_iter().chain(loggers).chain([many]));
        let config = world::config("osaka");
        let genesis =
            alloy_genesis::Genesis { config, gas_limit: 30_000_000, alloc, ..Default::default() };
        let random = StdRng::seed_from_u64(seed);
        let mut chain = Self { disk: MemoryDisk::new(), genesis, engine: None, random };
        chain.open();
        chain
    }

    /// Blocks wait for a call of `persist`, or for a stop.
    fn open(&mut self) {
        let chain = ChainSpec::from_config(&self.genesis.config).expect("a chain");
        let genesis = Genesis::new(&self.genesis, &chain).expect("a genesis");
        let options = EngineOptions { persistence_threshold: 100_000, ..EngineOptions::default() };
        let engine = Engine::open(chain, Some(genesis), self.database(), options);
        self.engine = Some(Arc::new(engine.expect("it opens")));
    }

    fn database(&self) -> Database {
        let options = Options { journal: state::JournalMode::Off, ..Options::default() };
        Database::open(self.disk.clone(), &options).expect("memory")
    }

    fn restart(&mut self) {
        self.engine = None;
        self.open();
    }

    pub(in crate::api) fn engine(&self) -> &Arc<Engine> {
        self.engine.as_ref().expect("open")
    }

    pub(in crate::api) fn record(&self, hash: B256) -> Arc<BlockRecord> {
        self.engine().block(hash).expect("memory").expect("it is valid")
    }

    fn topic(&mut self) -> B256 {
        B256::repeat_byte(self.random.random_range(1..4))
    }

    fn logger(&mut self) -> Address {
        Address::repeat_byte(LOGGERS.choose(&mut self.random).expect("some").0)
    }

    fn transactions(&mut self, nonce: u64) -> Vec<Transaction> {
        let count = self.random.random_range(0..4);
        let one = |nonce| {
            // The third word makes each transaction another, on branches with the same nonces too.
            let input = [self.topic(), self.topic(), B256::from(self.random.random::<[u8; 32]>())];
            let input: Bytes = input.concat().into();
            Signer::new(1).call(nonce, self.logger(), input)
        };
        (nonce..nonce + count).map(one).collect()
    }

    /// Adds valid blocks on `parent`, with what `transactions` makes of a nonce.
    pub(in crate::api) fn branch(
        &mut self,
        parent: B256,
        length: usize,
        transactions: impl Fn(&mut Self, u64) -> Vec<Transaction>,
    ) -> B256 {
        let mut parent = parent;
        let state = self.engine().state(parent).expect("it is kept");
        let account = state.account(Signer::new(1).address()).expect("memory");
        let mut nonce = account.map_or(0, |account| account.nonce);
        for _ in 0..length {
            let attributes = PayloadAttributes {
                timestamp: self.record(parent).block.header.timestamp + 12,
                prev_randao: B256::from(self.random.random::<[u8; 32]>()),
                suggested_fee_recipient: world::COINBASE,
                withdrawals: Some(Vec::new()),
                parent_beacon_block_root: Some(B256::ZERO),
                ..Default::default()
            };
            let transactions = transactions(self, nonce);
            nonce += transactions.len() as u64;
            let built = self.engine().build(parent, attributes, transactions, Bytes::new());
            let block = built.expect("built").block.clone();
            parent = block.hash();
            assert_eq!(self.engine().new_block(block).expect("memory"), Verdict::Valid);
        }
        parent
    }

    pub(in crate::api) fn choose(&self, head: B256) {
        let state = ForkchoiceState { head_block_hash: head, ..Default::default() };
        let outcome = self.engine().forkchoice_updated(state, None).expect("memory");
        assert_eq!(outcome.verdict, Verdict::Valid);
    }

    fn answer(&self, method: &str, params: &Value) -> Result<Value, rpc::Error> {
        let api = Api::public_port(self.engine().clone());
        let params: Box<RawValue> = serde_json::value::to_raw_value(params).expect("JSON");
        let answer = api.call(method, Some(&params))?;
        Ok(serde_json::from_slice(&answer.to_vec()).expect("JSON"))
    }

    fn ok(&self, method: &str, params: &Value) -> Value {
        self.answer(method, params).unwrap_or_else(|error| panic!("{method}{params}: {error}"))
    }

    /// The canonical blocks from the first on.
    pub(in crate::api) fn canonical(&self) -> Vec<Arc<BlockRecord>> {
        let hashes = self.engine().canonical_range(0, u64::MAX).expect("memory");
        hashes.into_iter().map(|hash| self.record(hash.expect("from genesis on"))).collect()
    }

    /// A filter, and a range of a chain with this head.
    pub(in crate::api) fn query(&mut self, head: u64) -> Value {
        let (from, to) = (self.random.random_range(0..=head), self.random.random_range(0..=head));
        let (from, to) = (from.min(to), from.max(to));
        let mut query = json!({"fromBlock": format!("{from:#x}"), "toBlock": format!("{to:#x}")});
        if self.random.random_bool(0.6) {
            query["address"] = match self.random.random_bool(0.5) {
                true => json!(self.logger()),
                false => json!([self.logger(), self.logger()]),
            };
        }
        let count = self.random.random_range(0..3);
        let topics = (0..count).map(|_| match self.random.random_range(0..3) {
            0 => Value::Null,
            1 => json!(self.topic()),
            _ => json!([self.topic(), self.topic()]),
        });
        query["topics"] = topics.collect();
        query
    }

    /// Queries are answered as a walk over all blocks answers them, and each transaction is found.
    fn check(&mut self, context: &str) {
        let canonical = self.canonical();
        let head = canonical.len() as u64 - 1;
        let mut found = 0;
        for _ in 0..40 {
            let query = self.query(head);
            let expected = slow_logs(&canonical, &query);
            assert_eq!(self.ok("eth_getLogs", &json!([query])), expected, "{context}: {query}");
            found += expected.as_array().expect("a list").len();
        }
        assert!(found > 40, "{context}: {found} logs");
        for record in &canonical {
            let block = json!(format!("{:#x}", record.number()));
            let receipts = self.ok("eth_getBlockReceipts", &json!([block]));
            for (index, transaction) in record.block.body.transactions.iter().enumerate() {
                let hash = json!([transaction.hash()]);
                let place = json!([block, format!("{index:#x}")]);
                assert_eq!(
                    self.ok("eth_getTransactionByHash", &hash),
                    self.ok("eth_getTransactionByBlockNumberAndIndex", &place),
                    "{context}"
                );
                assert_eq!(self.ok("eth_getTransactionReceipt", &hash), receipts[index]);
                let raw = Bytes::from(transaction.encoded_2718());
                assert_eq!(self.ok("debug_getRawTransaction", &hash), json!(raw));
            }
        }
    }

    /// The transactions of a block that is not canonical are nowhere else, so there are none.
    fn check_left(&self, hash: B256) {
        for transaction in &self.record(hash).block.body.transactions {
            let hash = json!([transaction.hash()]);
            assert_eq!(self.ok("eth_getTransactionByHash", &hash), Value::Null);
            assert_eq!(self.ok("eth_getTransactionReceipt", &hash), Value::Null);
            assert_eq!(self.ok("debug_getRawTransaction", &hash), "0x");
        }
    }
}

/// The slow twin: every log of every block, one after the other.
fn slow_logs(canonical: &[Arc<BlockRecord>], query: &Value) -> Value {
    let filter = LogFilter::new(&query["address"], &query["topics"]).expect("a filter");
    let number = |name: &str| {
        let text = query[name].as_str().expect("a quantity");
        usize::from_str_radix(&text[2..], 16).expect("hex")
    };
    let blocks = &canonical[number("fromBlock")..=number("toBlock")];
    let logs = blocks.iter().flat_map(|record| block_logs(record));
    logs.filter(|log| filter.matches(&log.inner)).map(|log| json!(log)).collect()
}

pub(in crate::api) fn random(chain: &mut Chain, nonce: u64) -> Vec<Transaction> {
    chain.transactions(nonce)
}

#[test]
fn the_index_finds_what_a_walk_over_all_blocks_finds() {
    let mut chain = Chain::new(testing::seed());
    let genesis = chain.engine().heads().genesis;
    let trunk = chain.branch(genesis, 20, random);
    let head = chain.branch(trunk, 10, random);
    chain.choose(head);
    chain.check("in memory");
    chain.engine().persist().expect("memory");
    chain.check("persisted");
    // Shorter, so that numbers lose their blocks too; the next nonces are the same.
    let other = chain.branch(trunk, 6, random);
    chain.choose(other);
    chain.check("reorganised in memory");
    chain.check_left(head);
    chain.restart();
    chain.check("reorganised, from the disk");
    chain.check_left(head);
    chain.choose(head);
    let head = chain.branch(head, 3, random);
    chain.choose(head);
    chain.check("back, the newest in memory");
    chain.check_left(other);
    for hash in [head, other] {
        let record = chain.record(hash);
        let expected: Value = block_logs(&record).into_iter().map(|log| json!(log)).collect();
        assert_eq!(chain.ok("eth_getLogs", &json!([{"blockHash": hash}])), expected);
    }
    assert_eq!(
        chain.ok("eth_capabilities", &json!([]))["logs"],
        json!({"disabled": false, "oldestBlock": "0x0"})
    );
}

#[test]
fn what_an_earlier_version_wrote_is_named_until_it_is_indexed() {
    let mut chain = Chain::new(testing::seed());
    let genesis = chain.engine().heads().genesis;
    let old = chain.branch(genesis, 12, random);
    chain.choose(old);
    chain.engine = None;
    // Such a version has no index.
    chain.database().drop_lookup().expect("memory");
    chain.open();
    let refused = |chain: &Chain, method: &str, params: Value, from: u64| {
        let error = chain.answer(method, &params).expect_err("it is not indexed");
        assert_eq!(error.code, -32000);
        let words = format!("blocks before {from} are not in the index of transactions and logs");
        assert!(error.message.contains(&words), "{error}");
        assert!(error.message.contains("deponent db index"), "{error}");
    };
    let logs = |from: u64| json!([{"fromBlock": format!("{from:#x}")}]);
    refused(&chain, "eth_getLogs", logs(12), 13);
    refused(&chain, "eth_getTransactionByHash", json!([B256::ZERO]), 13);
    assert_eq!(chain.ok("eth_capabilities", &json!([]))["tx"], json!({"disabled": true}));
    let new = chain.branch(old, 4, random);
    chain.choose(new);
    for is_persisted in [false, true] {
        if is_persisted {
            chain.engine().persist().expect("memory");
        }
        chain.ok("eth_getLogs", &logs(13));
        refused(&chain, "eth_getLogs", logs(12), 13);
        for transaction in &chain.record(new).block.body.transactions {
            chain.ok("eth_getTransactionReceipt", &json!([transaction.hash()]));
        }
        refused(&chain, "debug_getRawTransaction", json!([B256::ZERO]), 13);
    }
    let capabilities = chain.ok("eth_capabilities", &json!([]));
    assert_eq!(capabilities["tx"], json!({"disabled": false, "oldestBlock": "0xd"}));
    // One block is named, and needs no index.
    chain.ok("eth_getLogs", &json!([{"blockHash": old}]));
    chain.engine = None;
    let mut told = Vec::new();
    let done = engine::index_old_blocks(&chain.database(), &mut |done, of| told.push((done, of)));
    assert_eq!((done, told), (Ok(13), vec![(13, 13)]));
    assert_eq!(engine::index_old_blocks(&chain.database(), &mut |_, _| ()), Ok(0));
    chain.open();
    chain.check("indexed");
}

#[test]
fn what_is_wrong_with_a_query_is_said() {
    let mut chain = Chain::new(1);
    let genesis = chain.engine().heads().genesis;
    let head = chain.branch(genesis, 3, random);
    chain.choose(head);
    // A fresh chain is no error.
    let fresh = json!([{"fromBlock": "0x0", "toBlock": "latest", "address": Address::ZERO}]);
    assert_eq!(chain.ok("eth_getLogs", &fresh), json!([]));
    let refused = |query: Value, code: i64, words: &str| {
        let error = chain.answer("eth_getLogs", &json!([query])).expect_err(words);
        assert_eq!(error.code, code, "{error}");
        assert!(error.message.contains(words), "{error} instead of {words}");
    };
    let range = |from: &str, to: &str| json!({"fromBlock": from, "toBlock": to});
    refused(range("0x3", "0x2"), -32602, "invalid block range params");
    refused(range("latest", "0x2"), -32602, "invalid block range params");
    refused(range("0x3", "0x4"), -32602, "block range extends beyond current head block");
    refused(range("pending", "pending"), -32602, "pending logs are not supported");
    refused(range("safe", "latest"), -32000, "safe header not found");
    refused(json!({"blockHash": B256::ZERO}), -32000, "unknown block");
    for end in ["fromBlock", "toBlock"] {
        refused(json!({"blockHash": head, end: "0x2"}), -32602, "cannot specify both");
    }
    refused(json!({"blockhash": head}), -32602, "blockhash");
    refused(json!({"topics": [[], [], [], [], []]}), -32602, "at most 4");
    let error = chain.answer("eth_getLogs", &json!([])).expect_err("no filter");
    assert_eq!(error.code, -32602);
}

#[test]
fn a_filter_that_matches_too_much_is_told_the_range_to_retry_with() {
    let mut chain = Chain::new(2);
    let genesis = chain.engine().heads().genesis;
    let full = |_: &mut Chain, nonce| vec![Signer::new(1).call(nonce, MANY, Bytes::new())];
    let head = chain.branch(genesis, 42, full);
    chain.choose(head);
    let query = |from: u64, to: u64| {
        let (from, to) = (format!("{from:#x}"), format!("{to:#x}"));
        chain.answer("eth_getLogs", &json!([{"fromBlock": from, "toBlock": to}]))
    };
    assert_eq!(query(1, 40).expect("20,000 logs").as_array().expect("a list").len(), 20_000);
    let error = query(0, 42).expect_err("21,000 logs");
    assert_eq!(error.code, -32602);
    assert!(error.message.contains("retry with the range 0x0 to 0x28"), "{error}");
}

#[test]
fn one_block_alone_is_answered_however_many_logs_it_has() {
    let mut chain = Chain::new(4);
    let genesis = chain.engine().heads().genesis;
    let full = |_: &mut Chain, nonce: u64| -> Vec<_> {
        (nonce..nonce + 41).map(|nonce| Signer::new(1).call(nonce, MANY, Bytes::new())).collect()
    };
    let head = chain.branch(genesis, 2, full);
    chain.choose(head);
    let query = |from: &str, to: &str| {
        chain.answer("eth_getLogs", &json!([{"fromBlock": from, "toBlock": to}]))
    };
    for block in ["0x1", "0x2"] {
        let logs = query(block, block).expect("20,500 logs");
        assert_eq!(logs.as_array().expect("a list").len(), 20_500);
    }
    // The range begins with it.
    let error = query("0x1", "0x2").expect_err("more than one block");
    assert!(error.message.contains("retry with the range 0x1 to 0x1"), "{error}");
}

#[test]
fn an_answer_is_too_large_by_its_logs_by_its_bytes_and_by_what_was_read() {
    let is_too_large = |count, bytes, read_bytes| {
        let piece = vec![0; bytes];
        LogAnswer { count, piece, read_bytes, ..LogAnswer::of_range() }.is_too_large()
    };
    assert!(!is_too_large(LOGS, LOG_ANSWER_BYTES, LOG_READ_BYTES));
    assert!(is_too_large(LOGS + 1, 0, 0));
    assert!(is_too_large(0, LOG_ANSWER_BYTES + 1, 0));
    assert!(is_too_large(0, 0, LOG_READ_BYTES + 1));
    // A block that is in memory counts as one that is read.
    let chain = Chain::new(5);
    let (api, genesis) = (Api::public_port(chain.engine().clone()), chain.engine().heads().genesis);
    let mut answer = LogAnswer::of_range();
    for _ in 0..2 {
        assert!(answer.add(&api, genesis, &LogFilter::default()).expect("memory"));
    }
    assert!(answer.read_bytes >= 2 * LOG_BLOCK_BYTES, "{}", answer.read_bytes);
}

/// Prints how long a search over 10,000 blocks takes, of which every hundredth has such a log.
#[test]
fn a_search_over_many_blocks_reads_few_of_them() {
    let blocks = testing::rounds("DEPONENT_BLOCKS", 300, 10_000) as usize;
    let mut chain = Chain::new(3);
    let genesis = chain.engine().heads().genesis;
    let topic = B256::repeat_byte(9);
    let wanted = |_: &mut Chain, nonce: u64| {
        let (byte, words) = match nonce % 100 {
            0 => (0xa0, [topic, topic]),
            _ => (0xa1, [B256::ZERO, B256::from(alloy_primitives::U256::from(nonce))]),
        };
        vec![Signer::new(1).call(nonce, Address::repeat_byte(byte), Bytes::from(words.concat()))]
    };
    let head = chain.branch(genesis, blocks, wanted);
    chain.choose(head);
    chain.restart();
    let query =
        json!([{"fromBlock": "0x1", "address": Address::repeat_byte(0xa0), "topics": [topic]}]);
    for _ in 0..3 {
        let started = Instant::now();
        let found = chain.ok("eth_getLogs", &query);
        println!("{blocks} blocks: {:?}", started.elapsed());
        assert_eq!(found.as_array().expect("a list").len(), blocks.div_ceil(100));
    }
}
