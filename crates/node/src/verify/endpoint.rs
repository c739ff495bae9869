//! Blocks and witnesses from an endpoint of JSON-RPC, of any execution client.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

use alloy_genesis::ChainConfig;
use alloy_primitives::{B256, Bytes, U64};
use anyhow::{Context, anyhow, bail, ensure};
use client::{Endpoint, EndpointAddress};
use execution::{ChainSpec, SealedBlock, Transaction};
use rpc::{ClientError, quote, read_json, shown_address};
use serde_json::{Value, json};

use super::{GivenBlock, Outcome, VerifyArgs, chain, judge};
use crate::console::printed;
use crate::foreign_witness::ForeignWitness;
use crate::limits::{VERIFY_BLOCKS, VERIFY_CALL_TIME, VERIFY_FILE_BYTES, VERIFY_RANGE};

type Block = alloy_consensus::Block<Transaction>;

/// Verifies all blocks that are asked for, and hands the outcomes over in order.
pub(super) fn verify_all(
    args: &VerifyArgs,
    url: &str,
    print: &mut impl FnMut(&str, anyhow::Result<Outcome>) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    // Mistakes are found before anything is asked for.
    let mut wanted = Vec::new();
    for what in &args.what {
        match Wanted::parse(what) {
            Ok(blocks) => wanted.push(blocks),
            Err(error) => print(what, Err(error))?,
        }
    }
    if wanted.is_empty() {
        return Ok(());
    }
    let opened = parse_address(url, args.cacert.as_deref())
        .and_then(|address| Ok((open(args, url, &address, wanted)?, address)));
    let ((chain, blocks), address) = match opened {
        Ok(opened) => opened,
        Err(error) => return print(&shown_address(url), Err(error)),
    };
    // Workers take the next block each, and end when nobody takes outcomes any more.
    let next = AtomicUsize::new(0);
    let (sender, receiver) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..VERIFY_BLOCKS.min(blocks.len()) {
            let (sender, address, chain) = (sender.clone(), &address, &chain);
            let (next, blocks) = (&next, &blocks);
            scope.spawn(move || {
                let mut endpoint = None;
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(block) = blocks.get(index) else { break };
                    let outcome = verify_one(args, address, chain, &mut endpoint, block);
                    if sender.send((index, outcome)).is_err() {
                        break;
                    }
                }
            });
        }
        drop(sender);
        let (mut waiting, mut printed) = (BTreeMap::new(), 0);
        for (index, outcome) in receiver {
            waiting.insert(index, outcome);
            while let Some(outcome) = waiting.remove(&printed) {
                print(&blocks[printed].text(), outcome)?;
                printed += 1;
            }
        }
        Ok(())
    })
}

/// The rules of the endpoint's chain, and the blocks that are verified, each on its own.
fn open(
    args: &VerifyArgs,
    url: &str,
    address: &EndpointAddress,
    wanted: Vec<Wanted>,
) -> anyhow::Result<(ChainSpec, Vec<Task>)> {
    let mut endpoint = BlockSource::connect(address).map_err(|error| of_endpoint(url, error))?;
    let chain = endpoint.chain(args, url)?;
    let has_range = wanted.iter().any(|wanted| matches!(wanted, Wanted::Range(_)));
    let head = has_range.then(|| endpoint.head()).flatten();
    Ok((chain, wanted.into_iter().flat_map(|wanted| wanted.tasks(head)).collect()))
}

/// An error of an endpoint, with its URL, and with the words "no answer" where it gave none.
fn of_endpoint(url: &str, error: anyhow::Error) -> anyhow::Error {
    use ClientError::{Broken, Closed, Connect, Timeout};
    let is_silent = error.chain().any(|cause| {
        let fault = cause.downcast_ref();
        matches!(fault, Some(Broken { .. } | Closed { .. } | Connect { .. } | Timeout { .. }))
    });
    let url = shown_address(url);
    error.context(if is_silent { format!("no answer from {url}") } else { url })
}

/// Verifies a block over a connection that is opened where there is none, or the last call failed.
fn verify_one(
    args: &VerifyArgs,
    address: &EndpointAddress,
    chain: &ChainSpec,
    kept: &mut Option<BlockSource>,
    task: &Task,
) -> anyhow::Result<Outcome> {
    let id = match task {
        Task::Block(id) => id,
        Task::PastHead { head, .. } => bail!("the head of the endpoint is block {head}"),
    };
    let mut endpoint = match kept.take() {
        Some(endpoint) => endpoint,
        None => BlockSource::connect(address)?,
    };
    let block = endpoint.block(id)?;
    let given = endpoint.witness(&block)?;
    *kept = Some(endpoint);
    judge(args, chain, &block, &given)
}

/// Fetches one block and its witness.
pub(super) fn fetch(url: &str, cacert: Option<&Path>, block: &str) -> anyhow::Result<GivenBlock> {
    let (id, address) = (NamedBlock::parse(block)?, parse_address(url, cacert)?);
    let fetched = BlockSource::connect(&address).and_then(|mut endpoint| {
        let block = endpoint.block(&id)?;
        let given = endpoint.witness(&block)?;
        Ok(GivenBlock { block, given })
    });
    fetched.map_err(|error| of_endpoint(url, error))
}

/// An argument.
enum Wanted {
    Block(NamedBlock),
    Range(RangeInclusive<u64>),
}

impl Wanted {
    fn parse(text: &str) -> anyhow::Result<Self> {
        match range(text)? {
            Some(range) => Ok(Self::Range(range)),
            None => NamedBlock::parse(text).map(Self::Block),
        }
    }

    /// The blocks one by one; of a range, those behind the head together, where the head is known.
    fn tasks(self, head: Option<u64>) -> Vec<Task> {
        let range = match self {
            Self::Block(block) => return vec![Task::Block(block)],
            Self::Range(range) => range,
        };
        let (first, last) = range.into_inner();
        let head = head.unwrap_or(last);
        let there = (first..=last.min(head)).map(|number| Task::Block(NamedBlock::Number(number)));
        let first = first.max(head.saturating_add(1));
        let missing = (head < last).then_some(Task::PastHead { first, last, head });
        there.chain(missing).collect()
    }
}

/// A line of the output.
enum Task {
    Block(NamedBlock),
    /// The part of a range that the endpoint does not have yet.
    PastHead {
        first: u64,
        last: u64,
        head: u64,
    },
}

impl Task {
    fn text(&self) -> String {
        match self {
            Self::Block(block) => block.text(),
            Self::PastHead { first, last, .. } if first == last => first.to_string(),
            Self::PastHead { first, last, .. } => format!("{first}..{last}"),
        }
    }
}

/// The tags of blocks that have a witness.
const TAGS: [&str; 3] = ["latest", "safe", "finalized"];

/// A block as the caller names it.
enum NamedBlock {
    Number(u64),
    Hash(B256),
    Tag(&'static str),
}

impl NamedBlock {
    fn parse(text: &str) -> anyhow::Result<Self> {
        if let Some(number) = number(text) {
            return Ok(Self::Number(number));
        }
        if let Ok(hash) = text.parse() {
            return Ok(Self::Hash(hash));
        }
        let tag = TAGS.into_iter().find(|tag| *tag == text).with_context(|| {
            format!(
                "\"{}\" names no block: give a number (7 or 0x7), a hash (0x and 64 hex digits), \
                 latest, safe or finalized",
                quote(text)
            )
        })?;
        Ok(Self::Tag(tag))
    }

    fn text(&self) -> String {
        match self {
            Self::Number(number) => number.to_string(),
            Self::Hash(hash) => hash.to_string(),
            Self::Tag(tag) => (*tag).to_owned(),
        }
    }

    /// The parameter of JSON-RPC.
    fn param(&self) -> Value {
        match self {
            Self::Number(number) => json!(U64::from(*number)),
            Self::Hash(hash) => json!(hash),
            Self::Tag(tag) => json!(tag),
        }
    }
}

/// A number, decimal or as a quantity.
fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) if digits.len() <= 16 => u64::from_str_radix(digits, 16).ok(),
        Some(_) => None,
        None => text.parse().ok(),
    }
}

/// A range of numbers, both ends included.
fn range(text: &str) -> anyhow::Result<Option<RangeInclusive<u64>>> {
    let Some((first, last)) = text.split_once("..") else { return Ok(None) };
    let ends = number(first).zip(number(last));
    let (first, last) = ends.with_context(|| {
        format!("\"{}\" is no range: give FIRST..LAST, both numbers, both included", quote(text))
    })?;
    ensure!(first <= last, "the range ends before it begins");
    ensure!(
        last - first < VERIFY_RANGE,
        "the range has more than {VERIFY_RANGE} blocks: verify it in parts"
    );
    Ok(Some(first..=last))
}

/// Reads the URL of an endpoint.
fn parse_address(url: &str, cacert: Option<&Path>) -> anyhow::Result<EndpointAddress> {
    Ok(EndpointAddress::parse(url, cacert, None)?)
}

/// A connection to an endpoint.
pub(crate) struct BlockSource(Endpoint);

impl BlockSource {
    /// Of a connection whose bounds are the caller's.
    pub(crate) const fn new(endpoint: Endpoint) -> Self {
        Self(endpoint)
    }

    fn connect(address: &EndpointAddress) -> anyhow::Result<Self> {
        let answer_bytes = usize::try_from(VERIFY_FILE_BYTES).unwrap_or(usize::MAX);
        Ok(Self(address.connect(VERIFY_CALL_TIME, answer_bytes)?))
    }

    /// The result of a call; an error of the endpoint's is one that says the method.
    ///
    /// # Errors
    /// Also where the result is `null`.
    pub(crate) fn call(&mut self, method: &str, params: &Value) -> anyhow::Result<Bytes> {
        let result = self.0.call(method, params).with_context(|| method.to_owned())?;
        ensure!(result != b"null"[..], "{method}: there is no such block");
        Ok(result)
    }

    /// A quantity that a method without parameters answers.
    fn quantity(&mut self, method: &str) -> anyhow::Result<u64> {
        let answer = self.call(method, &json!([]))?;
        let quantity: U64 =
            read_json(std::str::from_utf8(&answer)?).with_context(|| method.to_owned())?;
        Ok(quantity.to())
    }

    /// The number of the head; `None` where the endpoint does not tell it.
    fn head(&mut self) -> Option<u64> {
        self.quantity("eth_blockNumber").ok()
    }

    /// The rules of the endpoint's chain.
    fn chain(&mut self, args: &VerifyArgs, url: &str) -> anyhow::Result<ChainSpec> {
        let id = self.quantity("eth_chainId").map_err(|error| of_endpoint(url, error))?;
        let known = chain(args, Some(id));
        if known.is_ok() || args.chain.is_some() {
            return known;
        }
        self.own_chain(id).map_err(|error| of_endpoint(url, error))
    }

    /// The rules that the endpoint tells of its chain.
    fn own_chain(&mut self, id: u64) -> anyhow::Result<ChainSpec> {
        let config = self.call("debug_chainConfig", &json!([])).with_context(|| {
            format!("the rules of chain {id} are not known: give --chain GENESIS")
        })?;
        let config: ChainConfig =
            read_json(std::str::from_utf8(&config)?).context("debug_chainConfig")?;
        ensure!(config.chain_id == id, "debug_chainConfig is of another chain");
        Ok(ChainSpec::from_config(&config)?)
    }

    /// The block with a hash, of whatever branch.
    ///
    /// # Errors
    /// If the endpoint does not have it, or gives another one.
    pub(crate) fn block_by_hash(&mut self, hash: B256) -> anyhow::Result<SealedBlock> {
        self.block(&NamedBlock::Hash(hash))
    }

    /// A block, as RLP where the endpoint has it so; its hash is computed from its fields.
    fn block(&mut self, id: &NamedBlock) -> anyhow::Result<SealedBlock> {
        let raw = self.call("debug_getRawBlock", &json!([id.param()])).and_then(|raw| {
            let raw: Bytes = read_json(std::str::from_utf8(&raw)?)?;
            Ok(execution::decode_block(&raw)?)
        });
        let block = match raw {
            Ok(block) => block,
            Err(first) => self
                .block_as_json(id)
                .map_err(|second| anyhow!("{}; {}", printed(&first), printed(&second)))?,
        };
        match id {
            NamedBlock::Number(number) if *number != block.header.number => {
                bail!("the endpoint gave block {} for {number}", block.header.number)
            }
            NamedBlock::Hash(hash) if *hash != block.hash() => {
                bail!("the endpoint gave block {} for {hash}", block.hash())
            }
            _ => Ok(block),
        }
    }

    fn block_as_json(&mut self, id: &NamedBlock) -> anyhow::Result<SealedBlock> {
        type Answer = alloy_rpc_types_eth::Block<alloy_rpc_types_eth::Transaction<Transaction>>;
        let method = match id {
            NamedBlock::Hash(_) => "eth_getBlockByHash",
            _ => "eth_getBlockByNumber",
        };
        let answer = self.call(method, &json!([id.param(), true]))?;
        let answer: Answer = read_json(std::str::from_utf8(&answer)?).context(method)?;
        let said = answer.header.hash;
        let block: Block =
            answer.map_transactions(|transaction| transaction.into_inner()).into_consensus();
        let block = SealedBlock::new(block);
        ensure!(block.hash() == said, "{method}: its fields have another hash than {said}");
        Ok(block)
    }

    fn witness(&mut self, block: &SealedBlock) -> anyhow::Result<ForeignWitness> {
        const METHOD: &str = "debug_executionWitness";
        let answer = self.call(METHOD, &json!([U64::from(block.header.number)]))?;
        let given = ForeignWitness::read(std::str::from_utf8(&answer)?);
        given.map_err(|fault| anyhow!("{METHOD}: {fault}"))
    }
}
