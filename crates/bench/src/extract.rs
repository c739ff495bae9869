//! Payload files from any JSON-RPC endpoint: `extract`.
//!
//! A block comes in one call, as RLP or as JSON, whichever the endpoint gives; each is turned into
//! the call of `engine_newPayload` that brought it. Roots and hashes are computed again, so that
//! what is written is what the chain has, whoever was asked.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Seek, SeekFrom, Write};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use alloy_consensus::constants::EMPTY_OMMER_ROOT_HASH;
use alloy_eips::eip7685::Requests;
use alloy_primitives::{B256, Bytes, U64};
use alloy_rpc_types_engine::{
    ExecutionPayload, ExecutionPayloadV1, ExecutionPayloadV2, ExecutionPayloadV3,
    ExecutionPayloadV4,
};
use anyhow::{Context, bail, ensure};
use engine_api::NewPayload;
use files::SealedBlock;
use rpc::RawValue;
use serde_json::json;

use crate::chain::format::{About, Payload, Writer, payloads_of};
use crate::fault::Fault;
use crate::load::{Caller, CallerArgs};
use crate::progress;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    endpoint: CallerArgs,
    /// The first block.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..))]
    from: u64,
    /// The last block.
    #[arg(long, value_name = "NUMBER")]
    to: u64,
    /// Where the payloads go; packed with zstd if its name ends in .zst. Until all are there they
    /// are in FILE.part, and the same command goes on with it.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
}

/// Writes the file.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let Args { from, to, out, .. } = args;
    ensure!(from <= to, "block {from} comes after block {to}");
    ensure!(!out.exists(), "{} is there", out.display());
    let mut source = Source::new(Caller::new(&args.endpoint)?)?;
    let mut part = PartialFile::open(out, *from..=*to, source.chain_id)?;
    let bar = progress::bar("extract", (to - from + 1) as usize);
    bar.set_position(part.next - from);
    if part.next > *from {
        eprintln!("{} goes on with block {}", part.path.display(), part.next);
    }
    while part.next <= *to {
        let number = part.next;
        let payload = source.payload(number).with_context(|| format!("block {number}"))?;
        part.push(&payload, source.chain_id)?;
        bar.inc(1);
    }
    // The others are its ancestors.
    let last = part.head.context("there is a block")?;
    let now = source.hash_of(*to)?;
    ensure!(
        now == last,
        "block {to} is {now} now, and was {last}: the chain was reorganized; remove {}",
        part.path.display()
    );
    let blocks = part.end(out)?;
    eprintln!("{} has {blocks} blocks of chain {}", out.display(), source.chain_id);
    Ok(())
}

/// A file that is not whole: lines as they are, from the first block on.
struct PartialFile {
    path: PathBuf,
    file: File,
    numbers: RangeInclusive<u64>,
    /// The block that comes next, and the hash of the one before, if it is there.
    next: u64,
    head: Option<B256>,
}

impl PartialFile {
    /// Opens what an earlier run has left, or begins.
    fn open(out: &Path, numbers: RangeInclusive<u64>, chain_id: u64) -> anyhow::Result<Self> {
        let mut path = out.as_os_str().to_owned();
        path.push(".part");
        let path = PathBuf::from(path);
        let place = || format!("cannot use {}", path.display());
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let file = options.open(&path).with_context(place)?;
        let mut lines = BufReader::new(&file);
        let (mut whole, mut line) = (0, Vec::new());
        let (mut first, mut last) = (None, None);
        // A line that was cut short is written again.
        while lines.read_until(b'\n', &mut line).with_context(place)? > 0 && line.ends_with(b"\n") {
            whole += line.len() as u64;
            match first {
                None => first = Some(std::mem::take(&mut line)),
                Some(_) => last = Some(std::mem::take(&mut line)),
            }
        }
        let (mut next, mut head) = (*numbers.start(), None);
        if let Some(first) = first {
            let about = About::read(&String::from_utf8_lossy(&first)).with_context(place)?;
            let same = |about: &About| {
                (about.chain_id, about.from..=about.to) == (chain_id, numbers.clone())
            };
            ensure!(
                about.as_ref().is_some_and(same),
                "{} is of other blocks or of another chain: remove it, or write elsewhere",
                path.display()
            );
            head = about.map(|about| about.parent);
        }
        if let Some(last) = last {
            let payload = Payload::read(&String::from_utf8_lossy(&last)).with_context(place)?;
            (next, head) = (payload.number + 1, Some(payload.hash));
        }
        file.set_len(whole).with_context(place)?;
        (&file).seek(SeekFrom::End(0)).with_context(place)?;
        Ok(Self { path, file, numbers, next, head })
    }

    fn push(&mut self, payload: &Payload, chain_id: u64) -> anyhow::Result<()> {
        let mut text = Vec::new();
        let head = *self.head.get_or_insert(payload.parent);
        if self.file.stream_position()? == 0 {
            let (from, to) = (self.numbers.start(), self.numbers.end());
            let command = format!("deponent bench extract --rpc URL --from {from} --to {to}");
            let about = About::new(chain_id, head, self.numbers.clone(), None, &command);
            serde_json::to_writer(&mut text, &about)?;
            text.push(b'\n');
        }
        let number = payload.number;
        ensure!(number == self.next, "block {number} was given for block {}", self.next);
        ensure!(
            payload.parent == head,
            "the parent of block {number} is {}, not {head}: the chain was reorganized; remove {}",
            payload.parent,
            self.path.display()
        );
        serde_json::to_writer(&mut text, payload.line())?;
        text.push(b'\n');
        self.file.write_all(&text).with_context(|| format!("{}", self.path.display()))?;
        (self.next, self.head) = (number + 1, Some(payload.hash));
        Ok(())
    }

    /// Makes the whole file; how many blocks it has.
    fn end(self, out: &Path) -> anyhow::Result<usize> {
        self.file.sync_all()?;
        let about = About::of(&self.path)?.context("it begins with what it is")?;
        let mut writer = Writer::create(out.to_owned())?;
        writer.about(&about)?;
        let mut blocks = 0;
        for payload in payloads_of(std::slice::from_ref(&self.path))? {
            writer.push(&payload?)?;
            blocks += 1;
        }
        writer.end()?;
        std::fs::remove_file(&self.path)?;
        Ok(blocks)
    }
}

/// The methods that give a block in one call: as RLP, and as JSON with whole transactions.
const RLP_BLOCK: &str = "debug_getRawBlock";
const JSON_BLOCK: &str = "eth_getBlockByNumber";

struct Source {
    caller: Caller,
    chain_id: u64,
    /// The methods for blocks that the endpoint did not refuse.
    methods: Vec<&'static str>,
}

impl Source {
    fn new(mut caller: Caller) -> anyhow::Result<Self> {
        let chain_id: U64 = serde_json::from_str(caller.call("eth_chainId", "[]")?.get())?;
        Ok(Self { caller, chain_id: chain_id.to(), methods: vec![RLP_BLOCK, JSON_BLOCK] })
    }

    /// The call that brought a block.
    fn payload(&mut self, number: u64) -> anyhow::Result<Payload> {
        let block = self.block(number)?;
        let requests = match block.header.requests_hash {
            None => None,
            Some(hash) => {
                let found = files::rpc_requests(number, hash, |method, params| {
                    self.caller.call(method, params)
                });
                Some(found.context("it has execution requests, which no JSON-RPC method tells")?)
            }
        };
        let list = files::rpc_access_list(&block, |method, params| {
            let answer = self.caller.call(method, params);
            answer.context("it has a block access list: an engine port is needed")
        })?;
        new_payload(&block, requests, list)
    }

    /// A block with the roots that its header says.
    fn block(&mut self, number: u64) -> anyhow::Result<SealedBlock> {
        let mut reasons = Vec::new();
        for method in self.methods.clone() {
            let block = if method == RLP_BLOCK { self.rlp(number) } else { self.json(number) };
            match block.and_then(|block| block.context("there is no such block")) {
                Ok(block) => return Ok(block),
                Err(error) => {
                    // Asked for another block, it would say the same.
                    if Fault::of(&error) == Some(Fault::Refusing) && self.methods.len() > 1 {
                        self.methods.retain(|other| *other != method);
                    }
                    reasons.push(format!("{method}: {}", rpc::on_one_line(error.as_ref())));
                }
            }
        }
        bail!("{}", reasons.join("; "))
    }

    fn rlp(&mut self, number: u64) -> anyhow::Result<Option<SealedBlock>> {
        let raw = self.caller.call(RLP_BLOCK, &json!([hex(number)]).to_string())?;
        Ok(files::raw_block(raw.get())?)
    }

    fn json(&mut self, number: u64) -> anyhow::Result<Option<SealedBlock>> {
        Ok(files::rpc_block(self.answer(number, true)?.get())?)
    }

    fn answer(&mut self, number: u64, whole: bool) -> anyhow::Result<Box<RawValue>> {
        self.caller.call(JSON_BLOCK, &json!([hex(number), whole]).to_string())
    }

    fn hash_of(&mut self, number: u64) -> anyhow::Result<B256> {
        let answer = self.answer(number, false)?;
        let hash = rpc::response::field(answer.get(), "hash")?;
        Ok(serde_json::from_str(hash)?)
    }
}

fn hex(number: u64) -> String {
    format!("{number:#x}")
}

/// The call of `engine_newPayload` of the version that the block's fork has.
fn new_payload(
    block: &SealedBlock,
    requests: Option<Requests>,
    access_list: Option<Bytes>,
) -> anyhow::Result<Payload> {
    let header = &block.header;
    let is_mined = !header.difficulty.is_zero() || header.ommers_hash != EMPTY_OMMER_ROOT_HASH;
    ensure!(!is_mined, "it is of proof of work, which no payload describes");
    let hash = block.hash();
    let payload = if header.withdrawals_root.is_none() {
        ExecutionPayload::V1(ExecutionPayloadV1::from_block_unchecked(hash, block))
    } else if header.blob_gas_used.is_none() {
        ExecutionPayload::V2(ExecutionPayloadV2::from_block_unchecked(hash, block))
    } else {
        let payload_inner = ExecutionPayloadV3::from_block_unchecked(hash, block);
        header.parent_beacon_block_root.context("it has no parent beacon block root")?;
        match access_list {
            None => ExecutionPayload::V3(payload_inner),
            Some(block_access_list) => ExecutionPayload::V4(ExecutionPayloadV4 {
                payload_inner,
                block_access_list,
                slot_number: header.slot_number.context("it has no slot number")?,
            }),
        }
    };
    Payload::sending(&NewPayload {
        payload,
        versioned_hashes: block.body.blob_versioned_hashes_iter().copied().collect(),
        parent_beacon_block_root: header.parent_beacon_block_root,
        execution_requests: requests.map(|requests| requests.iter().cloned().collect()),
    })
}
