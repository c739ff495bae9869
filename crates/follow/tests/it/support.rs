//! A chain with branches, and an upstream over HTTP that has it and behaves as it is told.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use alloy_consensus::Header;
use alloy_hardforks::EthereumHardforks;
use alloy_primitives::{Address, B256, Bytes, U64};
use alloy_rpc_types_engine::{
    ExecutionPayload, ExecutionPayloadSidecar, ForkchoiceState, PayloadAttributes,
};
use deponent_follow::{Backfill, Upstream, UpstreamOptions};
use engine::{Engine, EngineOptions, Genesis, Payload, Verdict};
use execution::{ChainSpec, SealedBlock};
use serde_json::{Value, json};
use state::{Database, Disk, MemoryDisk};
use testing::world::{self, Signer, StartAccount};

/// How long a test waits for what is to happen.
const PATIENCE: Duration = Duration::from_secs(300);

/// A contract that asks for the hash of block 150.
pub(crate) const ASKER: Address = Address::repeat_byte(0xa5);

/// The genesis of all chains here; `tag` makes it another one.
pub(crate) fn genesis(tag: u8) -> alloy_genesis::Genesis {
    // The hash of block 150, in slot 0.
    let asker = StartAccount::contract(vec![0x60, 150, 0x40, 0x5f, 0x55]);
    let rich = (Signer::new(1).address(), StartAccount::rich());
    let alloc = world::genesis_alloc([rich, (ASKER, asker)]);
    alloy_genesis::Genesis {
        config: world::config("osaka"),
        gas_limit: 30_000_000,
        extra_data: Bytes::from(vec![tag]),
        alloc,
        ..Default::default()
    }
}

/// An engine on this genesis, in memory.
pub(crate) fn engine_of(tag: u8) -> Arc<Engine> {
    let file = genesis(tag);
    let chain = ChainSpec::from_config(&file.config).unwrap();
    let first = Genesis::new(&file, &chain).unwrap();
    Engine::new(chain, first).unwrap().into()
}

/// An engine on the chain on a disk.
pub(crate) fn engine_on(disk: impl Disk + 'static) -> Arc<Engine> {
    let file = genesis(0);
    let chain = ChainSpec::from_config(&file.config).unwrap();
    let first = Genesis::new(&file, &chain).unwrap();
    let database = Database::open(disk, &state::Options::default()).unwrap();
    Engine::open(chain, Some(first), database, EngineOptions::default()).unwrap().into()
}

pub(crate) fn engine() -> Arc<Engine> {
    engine_of(0)
}

/// As [`engine`], but from Amsterdam on, so that blocks have access lists, which help each.
pub(crate) fn listed_engine() -> Arc<Engine> {
    let file = alloy_genesis::Genesis { config: world::config("amsterdam"), ..genesis(0) };
    let chain = ChainSpec::from_config(&file.config).unwrap();
    let first = Genesis::new(&file, &chain).unwrap();
    let database = Database::open(MemoryDisk::default(), &state::Options::default()).unwrap();
    let options = EngineOptions { parallel_gas: 0, ..EngineOptions::default() };
    Engine::open(chain, Some(first), database, options).unwrap().into()
}

/// Extends a block by one with a transaction; `tag` makes it another one than its twins.
pub(crate) fn extend(maker: &Engine, parent: B256, tag: u8) -> SealedBlock {
    extend_with_call(maker, parent, tag, world::COINBASE)
}

/// The same with a call of this account.
pub(crate) fn extend_with_call(maker: &Engine, parent: B256, tag: u8, to: Address) -> SealedBlock {
    let record = maker.block(parent).unwrap().unwrap();
    let header = &record.block.header;
    let timestamp = header.timestamp + 12;
    assert!(maker.chain().is_cancun_active_at_timestamp(timestamp));
    let is_listed = maker.chain().is_amsterdam_active_at_timestamp(timestamp);
    let attributes = PayloadAttributes {
        timestamp,
        prev_randao: B256::repeat_byte(1),
        suggested_fee_recipient: world::COINBASE,
        withdrawals: Some(Vec::new()),
        parent_beacon_block_root: Some(B256::repeat_byte(2)),
        slot_number: is_listed.then_some(timestamp / 12),
        target_gas_limit: None,
    };
    let call = Signer::new(1).call(header.number, to, []);
    let block = maker.build(parent, attributes, vec![call], vec![tag].into()).unwrap().block;
    assert_eq!(maker.new_block(block.clone()).unwrap(), Verdict::Valid);
    block
}

/// So many blocks on another one.
pub(crate) fn branch(maker: &Engine, parent: B256, tag: u8, count: usize) -> Vec<SealedBlock> {
    let mut parent = parent;
    let mut blocks = Vec::new();
    for _ in 0..count {
        blocks.push(extend(maker, parent, tag));
        parent = blocks[blocks.len() - 1].hash();
    }
    blocks
}

/// So many blocks from the genesis on.
pub(crate) fn chain(count: usize) -> Vec<SealedBlock> {
    let maker = engine();
    branch(&maker, maker.heads().genesis, 0, count)
}

/// The block with another header, and the hash that belongs to it.
pub(crate) fn changed(
    block: &SealedBlock,
    change: impl FnOnce(&mut execution::Block),
) -> SealedBlock {
    let mut block = block.clone().into_block();
    change(&mut block);
    SealedBlock::new(block)
}

pub(crate) fn give(engine: &Engine, block: &SealedBlock) -> Verdict {
    let (execution, sidecar) = ExecutionPayload::from_block_unchecked(block.hash(), &**block);
    let sidecar: ExecutionPayloadSidecar = sidecar;
    engine.new_payload(Payload { execution, sidecar }).unwrap()
}

pub(crate) fn choose(engine: &Engine, head: B256) -> Verdict {
    let state = ForkchoiceState { head_block_hash: head, ..ForkchoiceState::default() };
    engine.forkchoice_updated(state, None).unwrap().verdict
}

/// Waits until it is so.
pub(crate) async fn until(what: &str, is_so: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < PATIENCE, "it never came to this: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Waits until a block is valid here.
pub(crate) async fn until_valid(engine: &Engine, block: &SealedBlock) {
    let hash = block.hash();
    until("the block is valid", || engine.number(&hash).unwrap().is_some()).await;
}

/// Waits until nothing is filled any more.
pub(crate) async fn until_idle(backfill: &Backfill) {
    until("no gap is filled", || backfill.progress().is_none()).await;
}

/// Waits until a gap cannot be filled for a reason with these words.
pub(crate) async fn until_given_up(backfill: &Backfill, words: &str) {
    let problem = || backfill.progress().and_then(|progress| progress.problem);
    until(words, || problem().is_some_and(|problem| problem.contains(words))).await;
}

/// Options with short times.
pub(crate) fn quick() -> UpstreamOptions {
    UpstreamOptions {
        request_time: Duration::from_secs(60),
        list_time: Duration::from_secs(60),
        first_pause: Duration::from_millis(20),
        most_pause: Duration::from_millis(200),
        ..UpstreamOptions::default()
    }
}

/// A backfill of an engine from these servers.
pub(crate) fn follow(engine: &Arc<Engine>, servers: &[&Server]) -> Backfill {
    follow_with(engine, servers, quick())
}

pub(crate) fn follow_with(
    engine: &Arc<Engine>,
    servers: &[&Server],
    options: UpstreamOptions,
) -> Backfill {
    let upstreams = servers.iter().map(|server| server.upstream(options)).collect();
    Backfill::start(engine.clone(), upstreams)
}

/// How a server answers.
pub(crate) enum Manner {
    Honest,
    /// It gives another block than the one asked for.
    WrongBlock,
    /// It gives the right header with the body of another block.
    WrongBody,
    /// It takes a request, and says nothing until it is told something else.
    Stall,
    /// It lets so many answers go, and then waits.
    Gated(usize),
    /// It ends the connection in the middle of an answer to a message with a method whose name
    /// begins so.
    Truncated(&'static str),
    /// Its answers are a string of so many bytes.
    Huge(usize),
    /// It ends each connection at once.
    Gone,
    /// It has no `debug_getRawBlock`.
    NoRaw,
    /// It answers no blocks by hash from this number on, until it is told something else.
    HeldFrom(u64),
    /// It answers no access lists, until it is told something else.
    HeldLists,
    /// It answers this to each call.
    Says(Says),
    /// It answers a batch of more calls than so many, or all messages with this method, with this
    /// status and body.
    Refuses(usize, &'static str, u16, Value),
}

/// The result of a method with its parameters; `None` is the true one.
type Says = Box<dyn Fn(&str, &Value) -> Option<Value> + Send + Sync>;

/// The blocks and the counters of a server.
struct Shared {
    manner: Mutex<(usize, Manner)>,
    changed: Condvar,
    by_hash: Mutex<BTreeMap<B256, SealedBlock>>,
    /// The chain that it has by number.
    by_number: Mutex<BTreeMap<u64, B256>>,
    /// The access lists that it has.
    lists: Mutex<BTreeMap<B256, Bytes>>,
    messages: AtomicUsize,
    headers: AtomicUsize,
    /// The hashes of the blocks that it was asked for whole.
    asked: Mutex<Vec<B256>>,
}

/// An upstream over HTTP.
pub(crate) struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
}

impl Server {
    /// Has these blocks, by hash and by number.
    pub(crate) fn with(blocks: &[SealedBlock]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("it listens");
        let shared = Arc::new(Shared {
            manner: Mutex::new((0, Manner::Honest)),
            changed: Condvar::new(),
            by_hash: Mutex::default(),
            by_number: Mutex::default(),
            lists: Mutex::default(),
            messages: AtomicUsize::new(0),
            headers: AtomicUsize::new(0),
            asked: Mutex::default(),
        });
        let server = Self { address, shared: shared.clone() };
        server.add(blocks);
        std::thread::spawn(move || {
            for connection in listener.incoming().map_while(Result::ok) {
                let shared = shared.clone();
                // A test ends without them.
                std::thread::spawn(move || shared.serve(connection).unwrap_or_default());
            }
        });
        server
    }

    pub(crate) fn and(self, manner: Manner) -> Self {
        self.be(manner);
        self
    }

    pub(crate) fn be(&self, manner: Manner) {
        let mut now = self.shared.manner();
        *now = (now.0 + 1, manner);
        self.shared.changed.notify_all();
    }

    /// Lets one answer more go, where it is gated.
    pub(crate) fn let_go(&self) {
        if let Manner::Gated(left) = &mut self.shared.manner().1 {
            *left += 1;
        }
        self.shared.changed.notify_all();
    }

    /// As [`let_go`](Self::let_go), and waits until that has gone, or `is_done`.
    pub(crate) async fn let_one(&self, is_done: impl Fn() -> bool) {
        self.let_go();
        until("an answer goes", || {
            is_done() || !matches!(self.shared.manner().1, Manner::Gated(1..))
        })
        .await;
    }

    /// Has these blocks too, and they are those of their numbers.
    pub(crate) fn add(&self, blocks: &[SealedBlock]) {
        for block in blocks {
            self.shared.by_hash.lock().unwrap().insert(block.hash(), block.clone());
            self.shared.by_number.lock().unwrap().insert(block.header.number, block.hash());
        }
    }

    /// Has the access lists of these blocks, out of the engine that made them.
    pub(crate) fn add_lists(&self, maker: &Engine, blocks: &[SealedBlock]) {
        for block in blocks {
            let record = maker.block(block.hash()).unwrap().expect("it was made there");
            self.shared
                .lists
                .lock()
                .unwrap()
                .extend(record.block_access_list.clone().map(|list| (block.hash(), list)));
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn upstream(&self, options: UpstreamOptions) -> Upstream {
        Upstream::parse(&self.url(), options).expect("an address")
    }

    /// Messages that came.
    pub(crate) fn messages(&self) -> usize {
        self.shared.messages.load(Ordering::Relaxed)
    }

    /// Headers that it was asked for.
    pub(crate) fn headers(&self) -> usize {
        self.shared.headers.load(Ordering::Relaxed)
    }

    /// Blocks that it was asked for.
    pub(crate) fn asked(&self) -> Vec<B256> {
        self.shared.asked.lock().unwrap().clone()
    }
}

impl Shared {
    fn manner(&self) -> MutexGuard<'_, (usize, Manner)> {
        self.manner.lock().expect("no panic")
    }

    fn serve(&self, connection: TcpStream) -> std::io::Result<()> {
        let mut reader = BufReader::new(connection.try_clone()?);
        let mut writer = connection;
        while let Some(message) = read_message(&mut reader)? {
            self.messages.fetch_add(1, Ordering::Relaxed);
            let message: Value = serde_json::from_slice(&message)?;
            if !self.passes(&writer)? {
                return Ok(());
            }
            let Some((status, answer)) = self.answer(&message) else { return Ok(()) };
            let method = message.get(0).unwrap_or(&message)["method"].as_str().unwrap_or_default();
            let is_truncated =
                matches!(self.manner().1, Manner::Truncated(start) if method.starts_with(start));
            let head = format!(
                "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\n\
                 content-length: {}\r\n\r\n",
                answer.len()
            );
            writer.write_all(head.as_bytes())?;
            if is_truncated {
                writer.write_all(&answer[..answer.len() / 2])?;
                return Ok(());
            }
            writer.write_all(&answer)?;
        }
        Ok(())
    }

    /// Waits at the gate. Whether the other side is still there.
    fn passes(&self, connection: &TcpStream) -> std::io::Result<bool> {
        loop {
            let manner = self.manner();
            let is_shut = |manner: &mut (usize, Manner)| matches!(manner.1, Manner::Gated(0));
            let look = Duration::from_millis(5);
            let mut manner =
                self.changed.wait_timeout_while(manner, look, is_shut).expect("no panic").0;
            connection.set_nonblocking(true)?;
            let is_gone = matches!(connection.peek(&mut [0]), Ok(0));
            connection.set_nonblocking(false)?;
            if is_gone {
                return Ok(false);
            }
            match &mut manner.1 {
                Manner::Gated(0) => {}
                Manner::Gated(left) => {
                    *left -= 1;
                    return Ok(true);
                }
                _ => return Ok(true),
            }
        }
    }

    /// The status and the bytes of an answer; `None` ends the connection.
    fn answer(&self, message: &Value) -> Option<(u16, Vec<u8>)> {
        match &self.manner().1 {
            Manner::Gone => return None,
            Manner::Huge(bytes) => {
                let long = "0".repeat(*bytes);
                return Some((200, format!("{{\"id\":1,\"result\":\"0x{long}\"}}").into_bytes()));
            }
            Manner::Refuses(calls, method, status, body) => {
                let first = message.get(0).unwrap_or(message);
                let is_long = message.as_array().is_some_and(|batch| batch.len() > *calls);
                if is_long || first["method"] == *method {
                    let mut body = body.clone();
                    if let Some(answer) = body.get_mut(0) {
                        answer["id"] = first["id"].clone();
                    }
                    return Some((*status, body.to_string().into_bytes()));
                }
            }
            _ => {}
        }
        self.wait_while(|manner| matches!(manner, Manner::Stall));
        let answer = match message {
            Value::Array(calls) => calls.iter().map(|call| self.call(call)).collect(),
            call => self.call(call),
        };
        Some((200, answer.to_string().into_bytes()))
    }

    fn wait_while(&self, is_so: impl Fn(&Manner) -> bool) {
        let manner = self.manner();
        drop(self.changed.wait_while(manner, |manner| is_so(&manner.1)).expect("no panic"));
    }

    fn call(&self, call: &Value) -> Value {
        let (method, params) = (call["method"].as_str().expect("a method"), &call["params"]);
        let result = match &self.manner().1 {
            Manner::Says(says) => says(method, params),
            _ => None,
        };
        let result = result.unwrap_or_else(|| self.result(method, params));
        match result.get("error") {
            Some(error) => json!({"jsonrpc": "2.0", "id": call["id"], "error": error}),
            None => json!({"jsonrpc": "2.0", "id": call["id"], "result": result}),
        }
    }

    fn result(&self, method: &str, params: &Value) -> Value {
        let hash_of =
            |param: &Value| -> Option<B256> { serde_json::from_value(param.clone()).ok() };
        let is_whole = params[1] == json!(true);
        match method {
            "debug_getRawBlock" => {
                if matches!(self.manner().1, Manner::NoRaw) {
                    return json!({"error": {"code": -32601, "message": "no such method"}});
                }
                match self.whole(hash_of(&params[0])) {
                    Some(block) => json!(Bytes::from(alloy_rlp::encode(&block))),
                    None => json!({"error": {"code": -32000, "message": "block not found"}}),
                }
            }
            "debug_getRawBlockAccessList" => {
                self.wait_while(|manner| matches!(manner, Manner::HeldLists));
                let hash = hash_of(&params[0]).expect("a hash");
                match self.lists.lock().unwrap().get(&hash) {
                    Some(list) => json!(list),
                    None => json!({"error": {"code": 4444, "message": "pruned"}}),
                }
            }
            "eth_getBlockByHash" if is_whole => {
                self.whole(hash_of(&params[0])).map_or(Value::Null, |block| shown(&block))
            }
            "eth_getBlockByHash" => {
                self.headers.fetch_add(1, Ordering::Relaxed);
                self.header(hash_of(&params[0]))
            }
            "eth_getBlockByNumber" => {
                self.headers.fetch_add(1, Ordering::Relaxed);
                let number = params[0].as_str().expect("a number");
                let by_number = self.by_number.lock().unwrap();
                let hash = match number {
                    "latest" => by_number.last_key_value().map(|(_, hash)| *hash),
                    "safe" | "finalized" => None,
                    _ => {
                        let number = u64::from_str_radix(&number[2..], 16).expect("a number");
                        by_number.get(&number).copied()
                    }
                };
                drop(by_number);
                self.header(hash)
            }
            "eth_chainId" => json!(U64::from(genesis(0).config.chain_id)),
            _ => json!({"error": {"code": -32601, "message": "no such method"}}),
        }
    }

    fn header(&self, hash: Option<B256>) -> Value {
        let by_hash = self.by_hash.lock().unwrap();
        let block = hash.and_then(|hash| by_hash.get(&hash));
        let block = match &self.manner().1 {
            Manner::WrongBlock => block.and_then(|block| by_hash.get(&block.header.parent_hash)),
            _ => block,
        };
        block.map_or(Value::Null, |block| shown_header(&block.header))
    }

    /// A block with its body, as this one gives it.
    fn whole(&self, hash: Option<B256>) -> Option<execution::Block> {
        self.asked.lock().unwrap().extend(hash);
        let by_hash = self.by_hash.lock().unwrap();
        let block = by_hash.get(&hash?)?.clone();
        let parent = by_hash.get(&block.header.parent_hash).cloned();
        drop(by_hash);
        let number = block.header.number;
        self.wait_while(|manner| matches!(manner, Manner::HeldFrom(from) if number >= *from));
        let block = block.into_block();
        Some(match &self.manner().1 {
            Manner::WrongBlock => parent?.into_block(),
            Manner::WrongBody => {
                let body = parent.map(|parent| parent.into_block().body).unwrap_or_default();
                execution::Block { header: block.header, body }
            }
            _ => block,
        })
    }
}

/// A header as `eth_getBlockByHash` shows it.
pub(crate) fn shown_header(header: &Header) -> Value {
    let shown = alloy_rpc_types_eth::Header::new(header.clone());
    serde_json::to_value(shown).expect("it has a JSON form")
}

/// A block with whole transactions.
fn shown(block: &execution::Block) -> Value {
    let mut shown = shown_header(&block.header);
    let transactions = block.body.transactions.iter().map(|transaction| {
        let mut shown = serde_json::to_value(transaction).expect("it has a JSON form");
        shown["from"] = json!(Signer::new(1).address());
        shown
    });
    shown["transactions"] = transactions.collect();
    shown["uncles"] = json!([]);
    if let Some(withdrawals) = &block.body.withdrawals {
        shown["withdrawals"] = serde_json::to_value(withdrawals).expect("it has a JSON form");
    }
    shown
}

/// The body of the next request; `None` at the end of the connection.
fn read_message(reader: &mut impl BufRead) -> std::io::Result<Option<Vec<u8>>> {
    let mut bytes = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        let line = line.trim_end();
        if line.is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            bytes = value.trim().parse().expect("a length");
        }
    }
    let mut body = vec![0; bytes];
    reader.read_exact(&mut body)?;
    Ok(Some(body))
}
