//! A chain on disk: `genesis.json`, and for each part a file with one call of `engine_newPayload`
//! a line: `{"method": "engine_newPayloadV4", "params": [..]}`.

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use alloy_primitives::{B256, U64};
use anyhow::Context;
use flate2::bufread::MultiGzDecoder;
use rpc::RawValue;
use ruzstd::decoding::{FrameDecoder, StreamingDecoder};
use serde::{Deserialize, Serialize};

use crate::world::World;

/// A stretch of a chain, each on top of the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Part {
    /// Makes the state; not measured.
    State,
    /// Blocks without transactions.
    Empty,
    /// Full blocks, on warm caches.
    Warm,
    /// Full blocks, after a restart and with the page cache dropped.
    Cold,
    /// Full blocks, each group of them twice: a branch that is left for the other.
    Reorgs,
}

impl Part {
    /// All, in the order of the chain.
    pub const ALL: [Self; 5] = [Self::State, Self::Empty, Self::Warm, Self::Cold, Self::Reorgs];

    /// All but the one that makes the state.
    pub const MEASURED: [Self; 4] = [Self::Empty, Self::Warm, Self::Cold, Self::Reorgs];

    /// As files and reports call it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::State => "state",
            Self::Warm => "warm",
            Self::Empty => "empty",
            Self::Cold => "cold",
            Self::Reorgs => "reorgs",
        }
    }
}

/// The folders of a chain.
#[derive(Clone, Debug)]
pub struct Chain {
    /// Where the genesis and the blocks that make the state lie.
    pub state: PathBuf,
    /// Where all further blocks lie.
    pub folder: PathBuf,
}

impl Chain {
    /// The chain of these sizes below `folder`, there or not.
    pub fn of(world: &World, folder: &Path) -> Self {
        Self { state: world.state_folder(folder), folder: world.folder(folder) }
    }

    /// The genesis, in geth's format.
    pub fn genesis(&self) -> PathBuf {
        self.state.join("genesis.json")
    }

    /// The file of a part.
    pub fn part(&self, part: Part) -> PathBuf {
        let folder = if part == Part::State { &self.state } else { &self.folder };
        folder.join(format!("{}.jsonl", part.name()))
    }

    /// Whether a part was made to its end.
    pub fn has(&self, part: Part) -> bool {
        self.part(part).is_file()
    }

    /// The payloads of a part, read one at a time.
    pub fn payloads(
        &self,
        part: Part,
    ) -> anyhow::Result<impl Iterator<Item = anyhow::Result<Payload>> + use<>> {
        let path = self.part(part);
        let file = File::open(&path).with_context(|| format!("no {}", path.display()))?;
        Ok(read_payloads(file))
    }

    /// How many payloads a part has.
    pub(crate) fn count(&self, part: Part) -> anyhow::Result<usize> {
        count_of(&[self.part(part)])
    }

    /// A part that is being made: it has its name once [`Writer::end`] is called.
    pub(crate) fn write(&self, part: Part) -> anyhow::Result<Writer> {
        Writer::create(self.part(part))
    }
}

/// The payloads of a file, read one at a time.
pub(crate) fn read_payloads(file: File) -> impl Iterator<Item = anyhow::Result<Payload>> {
    let lines = BufReader::with_capacity(1 << 20, file).lines();
    lines.map(|line| Payload::read(&line?))
}

/// The payloads of files, one after the other, which may be packed with gzip or zstd; errors name
/// the file and the line.
pub(crate) fn payloads_of(
    paths: &[PathBuf],
) -> anyhow::Result<impl Iterator<Item = anyhow::Result<Payload>> + use<>> {
    let sources = paths.iter().map(|path| Ok((path.clone(), unpacked(path)?)));
    let sources = sources.collect::<anyhow::Result<Vec<_>>>()?;
    Ok(sources.into_iter().flat_map(|(path, source)| {
        BufReader::with_capacity(1 << 20, source).lines().enumerate().map(move |(index, line)| {
            let place = || format!("{}, line {}", path.display(), index + 1);
            line.map_err(anyhow::Error::from)
                .and_then(|line| Payload::read(&line))
                .with_context(place)
        })
    }))
}

/// How many payloads files have.
pub(crate) fn count_of(paths: &[PathBuf]) -> anyhow::Result<usize> {
    let count = |path: &PathBuf| {
        let mut lines = BufReader::with_capacity(1 << 20, unpacked(path)?).split(b'\n');
        let count = lines.try_fold(0, |count, line| line.map(|_| count + 1));
        count.with_context(|| format!("cannot read {}", path.display()))
    };
    paths.iter().map(count).sum()
}

/// What a file holds, unpacked; gzip and zstd are told by their first bytes.
fn unpacked(path: &Path) -> anyhow::Result<Box<dyn Read>> {
    let place = || format!("cannot read {}", path.display());
    let mut file = BufReader::new(File::open(path).with_context(place)?);
    let kind = file.fill_buf().with_context(place)?.first_chunk::<4>().copied();
    Ok(match kind {
        Some([0x1f, 0x8b, ..]) => Box::new(MultiGzDecoder::new(file)),
        Some([0x28, 0xb5, 0x2f, 0xfd]) => Box::new(Zstd::Between(file)),
        _ => Box::new(file),
    })
}

/// The frames of a zstd file, one after the other.
enum Zstd {
    Between(BufReader<File>),
    Within(Box<StreamingDecoder<BufReader<File>, FrameDecoder>>),
    Ended,
}

impl Read for Zstd {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            *self = match std::mem::replace(self, Self::Ended) {
                Self::Between(mut file) => match file.fill_buf()?.is_empty() {
                    true => Self::Ended,
                    false => {
                        let decoder = StreamingDecoder::new(file).map_err(io::Error::other)?;
                        Self::Within(Box::new(decoder))
                    }
                },
                Self::Within(mut decoder) => match decoder.read(into)? {
                    0 => Self::Between(decoder.into_inner()),
                    count => {
                        *self = Self::Within(decoder);
                        return Ok(count);
                    }
                },
                Self::Ended => return Ok(0),
            };
        }
    }
}

/// A part that is being made.
#[derive(Debug)]
pub(crate) struct Writer {
    file: BufWriter<File>,
    unfinished: PathBuf,
    path: PathBuf,
}

impl Writer {
    pub(crate) fn create(path: PathBuf) -> anyhow::Result<Self> {
        let unfinished = path.with_extension("unfinished");
        let file = File::create(&unfinished)
            .with_context(|| format!("cannot make {}", unfinished.display()))?;
        Ok(Self { file: BufWriter::new(file), unfinished, path })
    }

    pub(crate) fn push(&mut self, payload: &Payload) -> anyhow::Result<()> {
        serde_json::to_writer(&mut self.file, &payload.line)?;
        Ok(self.file.write_all(b"\n")?)
    }

    pub(crate) fn end(mut self) -> anyhow::Result<()> {
        self.file.flush()?;
        std::fs::rename(&self.unfinished, &self.path)?;
        Ok(())
    }
}

/// A call of `engine_newPayload`, and what the benchmark wants to know of its block.
#[derive(Debug)]
pub struct Payload {
    line: Line,
    /// The block's number.
    pub number: u64,
    /// The block's hash.
    pub hash: B256,
    /// Its parent's hash.
    pub parent: B256,
    /// The state's root after it.
    pub state_root: B256,
    /// The most gas that it may use.
    pub gas_limit: u64,
    /// The gas that it uses.
    pub gas_used: u64,
    /// How many transactions it has.
    pub transactions: usize,
}

#[derive(Debug, Deserialize, Serialize)]
struct Line {
    method: String,
    params: Box<RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Fields {
    block_number: U64,
    block_hash: B256,
    parent_hash: B256,
    state_root: B256,
    gas_limit: U64,
    gas_used: U64,
    transactions: Vec<serde::de::IgnoredAny>,
}

impl Payload {
    fn read(line: &str) -> anyhow::Result<Self> {
        Self::new(serde_json::from_str(line).context("not a call of engine_newPayload")?)
    }

    /// A call of `method`, whose first parameter is the payload.
    pub(crate) fn of(method: &str, params: &impl Serialize) -> anyhow::Result<Self> {
        let params = serde_json::value::to_raw_value(params)?;
        Self::new(Line { method: method.into(), params })
    }

    fn new(line: Line) -> anyhow::Result<Self> {
        let params: Vec<&RawValue> = serde_json::from_str(line.params.get())?;
        let payload = params.first().context("a call without a payload")?;
        let fields: Fields = serde_json::from_str(payload.get()).context("not a payload")?;
        Ok(Self {
            number: fields.block_number.to(),
            hash: fields.block_hash,
            parent: fields.parent_hash,
            state_root: fields.state_root,
            gas_limit: fields.gas_limit.to(),
            gas_used: fields.gas_used.to(),
            transactions: fields.transactions.len(),
            line,
        })
    }

    /// The method, and the one that also asks for the witness.
    pub(crate) fn method(&self, with_witness: bool) -> String {
        match with_witness {
            false => self.line.method.clone(),
            true => self.line.method.replacen("newPayload", "newPayloadWithWitness", 1),
        }
    }

    pub(crate) fn params(&self) -> &str {
        self.line.params.get()
    }
}

/// Writes `genesis.json`, as a whole or not at all.
pub(crate) fn write_genesis(path: &Path, genesis: &impl Serialize) -> anyhow::Result<()> {
    let unfinished = path.with_extension("unfinished");
    let mut file = BufWriter::new(File::create(&unfinished)?);
    serde_json::to_writer(&mut file, genesis)?;
    file.flush()?;
    Ok(std::fs::rename(unfinished, path)?)
}
