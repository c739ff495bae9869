//! A chain on disk: `genesis.json`, and for each part a file with one call of `engine_newPayload`
//! a line: `{"method": "engine_newPayloadV4", "params": [..]}`. The first line may be an [`About`].

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Read, Write};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use alloy_primitives::{B256, U64, keccak256};
use anyhow::{Context, ensure};
use engine_api::{EngineMethod, NewPayload};
use flate2::bufread::MultiGzDecoder;
use rpc::RawValue;
use serde::{Deserialize, Serialize};

use crate::chain::world::World;

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
    /// Full blocks, of each group of them two branches: one that is left for the other. On warm
    /// caches too, so that it can be compared with the part before.
    Reorgs,
    /// Full blocks, after a restart and with the page cache dropped.
    Cold,
}

impl Part {
    /// All, in the order of the chain.
    pub const ALL: [Self; 5] = [Self::State, Self::Empty, Self::Warm, Self::Reorgs, Self::Cold];

    /// All but the one that makes the state.
    pub const MEASURED: [Self; 4] = [Self::Empty, Self::Warm, Self::Reorgs, Self::Cold];

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

    /// A description in a few words.
    pub(crate) const fn about(self) -> &'static str {
        match self {
            Self::State => "makes the state",
            Self::Empty => "no transactions",
            Self::Warm => "full blocks, for warm caches",
            Self::Cold => "full blocks, for after a restart",
            Self::Reorgs => {
                "full blocks, two branches of each group: one that stays, one that is left"
            }
        }
    }
}

/// The blocks that clients have before the first measured one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ground {
    /// In geth's format.
    pub(crate) genesis: PathBuf,
    /// Payload files after it.
    pub(crate) setup: Vec<PathBuf>,
    /// Blocks of a branch that is left, at most.
    pub(crate) longest_branch: u64,
}

/// The folders of a chain.
#[derive(Clone, Debug)]
pub struct Chain {
    /// The folder of the genesis and of the blocks that make the state.
    pub state: PathBuf,
    /// The folder of all further blocks.
    pub folder: PathBuf,
    /// Blocks of a branch that is left, at most.
    pub longest_branch: u64,
}

impl Chain {
    /// The chain of these sizes below `folder`, there or not.
    pub fn of(world: &World, folder: &Path) -> Self {
        Self {
            state: world.state_folder(folder),
            folder: world.folder(folder),
            longest_branch: world.branch_lengths().max().unwrap_or_default(),
        }
    }

    /// The genesis, in geth's format.
    pub fn genesis(&self) -> PathBuf {
        self.state.join("genesis.json")
    }

    /// The genesis and the blocks that make the state.
    pub(crate) fn ground(&self) -> Ground {
        let (genesis, setup) = (self.genesis(), vec![self.part(Part::State)]);
        Ground { genesis, setup, longest_branch: self.longest_branch }
    }

    /// The files of all parts before one, as far as they are there.
    pub(crate) fn before(&self, part: Part) -> Vec<PathBuf> {
        let earlier = Part::ALL.into_iter().take_while(|earlier| *earlier != part);
        earlier.filter(|earlier| self.has(*earlier)).map(|earlier| self.part(earlier)).collect()
    }

    /// The file of a part: packed, unless it is there as it is.
    pub fn part(&self, part: Part) -> PathBuf {
        let folder = if part == Part::State { &self.state } else { &self.folder };
        let plain = folder.join(format!("{}.jsonl", part.name()));
        if plain.is_file() { plain } else { folder.join(format!("{}.jsonl.zst", part.name())) }
    }

    /// Whether a part was made to its end.
    pub fn has(&self, part: Part) -> bool {
        self.part(part).is_file()
    }

    /// The payloads of a part, read one at a time.
    ///
    /// # Errors
    /// If the part's file cannot be opened.
    pub fn payloads(
        &self,
        part: Part,
    ) -> anyhow::Result<impl Iterator<Item = anyhow::Result<Payload>> + use<>> {
        payloads_of(&[self.part(part)])
    }

    /// The number of payloads of a part.
    pub(crate) fn count(&self, part: Part) -> anyhow::Result<usize> {
        count_of(&[self.part(part)])
    }
}

/// The first line of a payload file, which describes it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct About {
    deponent: String,
    version: u32,
    pub(crate) chain_id: u64,
    /// The block that the first one is built on.
    pub(crate) parent: B256,
    /// The lowest number of a block, and the highest.
    pub(crate) from: u64,
    pub(crate) to: u64,
    /// The seed of all random choices, if there were any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) seed: Option<u64>,
    /// The command that makes the file again.
    pub(crate) made_by: String,
}

/// The beginning of such a line.
const ABOUT: &str = "{\"deponent\":";
/// The kind of file, and the version of the format, that are read and written.
const PAYLOADS: (&str, u32) = ("payloads", 1);
/// More than such a line has; one with a payload may be far longer.
const ABOUT_BYTES: u64 = 64 << 10;
/// zstd's usual one.
const ZSTD_LEVEL: i32 = 3;

impl About {
    pub(crate) fn new(
        chain_id: u64,
        parent: B256,
        numbers: RangeInclusive<u64>,
        seed: Option<u64>,
        made_by: &str,
    ) -> Self {
        let ((deponent, version), (from, to)) = (PAYLOADS, numbers.into_inner());
        let (deponent, made_by) = (deponent.into(), made_by.into());
        Self { deponent, version, chain_id, parent, from, to, seed, made_by }
    }

    /// Reads a line, unless it is a call.
    pub(crate) fn read(line: &str) -> anyhow::Result<Option<Self>> {
        if !line.starts_with(ABOUT) {
            return Ok(None);
        }
        let about: Self = serde_json::from_str(line).context("not the head of a payload file")?;
        let is_known = (&*about.deponent, about.version) == PAYLOADS;
        let Self { deponent, version, .. } = &about;
        ensure!(is_known, "a file of {deponent}, version {version}; payloads, version 1 are read");
        Ok(Some(about))
    }

    /// Reads the first line of a file, if it is one.
    pub(crate) fn of(path: &Path) -> anyhow::Result<Option<Self>> {
        let place = || format!("cannot read {}", path.display());
        let mut line = Vec::new();
        let mut head = BufReader::new(unpacked(path)?.take(ABOUT_BYTES));
        head.read_until(b'\n', &mut line).with_context(place)?;
        Self::read(&String::from_utf8_lossy(&line)).with_context(place)
    }
}

/// The payloads of files, one after the other, which may be packed with gzip or zstd; errors name
/// the file and the line.
pub(crate) fn payloads_of(
    paths: &[PathBuf],
) -> anyhow::Result<impl Iterator<Item = anyhow::Result<Payload>> + use<>> {
    let sources = paths.iter().map(|path| Ok((path.clone(), unpacked(path)?)));
    let sources = sources.collect::<anyhow::Result<Vec<_>>>()?;
    Ok(sources.into_iter().flat_map(|(path, source)| {
        let lines = BufReader::with_capacity(1 << 20, source).lines().enumerate();
        lines.filter_map(move |(index, line)| {
            let place = || format!("{}, line {}", path.display(), index + 1);
            let read = line.map_err(anyhow::Error::from).and_then(|line| {
                let is_call = !line.trim().is_empty() && About::read(&line)?.is_none();
                is_call.then(|| Payload::read(&line)).transpose()
            });
            read.with_context(place).transpose()
        })
    }))
}

/// The number of payloads in files.
pub(crate) fn count_of(paths: &[PathBuf]) -> anyhow::Result<usize> {
    let count = |path: &PathBuf| {
        let mut lines = BufReader::with_capacity(1 << 20, unpacked(path)?).split(b'\n');
        let is_call = |line: Vec<u8>| {
            usize::from(!line.trim_ascii().is_empty() && !line.starts_with(ABOUT.as_bytes()))
        };
        let count = lines.try_fold(0, |count, line| line.map(|line| count + is_call(line)));
        count.with_context(|| format!("cannot read {}", path.display()))
    };
    paths.iter().map(count).sum()
}

/// The content of a file, unpacked; gzip and zstd are told by their first bytes.
fn unpacked(path: &Path) -> anyhow::Result<Box<dyn Read>> {
    let place = || format!("cannot read {}", path.display());
    let mut file = BufReader::new(File::open(path).with_context(place)?);
    let kind = file.fill_buf().with_context(place)?.first_chunk::<4>().copied();
    Ok(match kind {
        Some([0x1f, 0x8b, ..]) => Box::new(MultiGzDecoder::new(file)),
        // All frames of it, one after the other.
        Some([0x28, 0xb5, 0x2f, 0xfd]) => Box::new(zstd::Decoder::with_buffer(file)?),
        _ => Box::new(file),
    })
}

/// A payload file that is being made, packed with zstd if its name ends in `.zst`.
pub(crate) struct Writer {
    file: Packed,
    unfinished: PathBuf,
    path: PathBuf,
}

enum Packed {
    Plain(BufWriter<File>),
    Zstd(zstd::Encoder<'static, BufWriter<File>>),
}

impl Writer {
    /// Begins a file, which has its name once [`Self::end`] is called.
    pub(crate) fn create(path: PathBuf) -> anyhow::Result<Self> {
        let unfinished = path.with_extension("unfinished");
        let file = File::create(&unfinished)
            .with_context(|| format!("cannot make {}", unfinished.display()))?;
        let file = BufWriter::new(file);
        let file = match path.extension().is_some_and(|extension| extension == "zst") {
            true => Packed::Zstd(zstd::Encoder::new(file, ZSTD_LEVEL)?),
            false => Packed::Plain(file),
        };
        Ok(Self { file, unfinished, path })
    }

    /// Says what the file is, before any payload.
    pub(crate) fn about(&mut self, about: &About) -> anyhow::Result<()> {
        self.line(about)
    }

    pub(crate) fn push(&mut self, payload: &Payload) -> anyhow::Result<()> {
        self.line(&payload.line)
    }

    fn line(&mut self, line: &impl Serialize) -> anyhow::Result<()> {
        let file: &mut dyn Write = match &mut self.file {
            Packed::Plain(file) => file,
            Packed::Zstd(file) => file,
        };
        serde_json::to_writer(&mut *file, line)?;
        Ok(file.write_all(b"\n")?)
    }

    pub(crate) fn end(self) -> anyhow::Result<()> {
        let mut file = match self.file {
            Packed::Plain(file) => file,
            Packed::Zstd(file) => file.finish()?,
        };
        file.flush()?;
        std::fs::rename(&self.unfinished, &self.path)?;
        Ok(())
    }
}

/// A call of `engine_newPayload`, and what the benchmark wants to know of its block.
#[derive(Debug)]
pub struct Payload {
    line: RawCall,
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
    /// The number of its transactions.
    pub transactions: usize,
}

#[derive(Debug, Deserialize, Serialize)]
struct RawCall {
    method: String,
    params: Box<RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PayloadFields {
    block_number: U64,
    block_hash: B256,
    parent_hash: B256,
    state_root: B256,
    gas_limit: U64,
    gas_used: U64,
    transactions: Vec<serde::de::IgnoredAny>,
}

impl Payload {
    pub(crate) fn read(line: &str) -> anyhow::Result<Self> {
        Self::new(serde_json::from_str(line).context("not a call of engine_newPayload")?)
    }

    /// A call of `method`, whose first parameter is the payload.
    pub(crate) fn of(method: &str, params: &impl Serialize) -> anyhow::Result<Self> {
        let params = serde_json::value::to_raw_value(params)?;
        Self::new(RawCall { method: method.into(), params })
    }

    /// The call of the version that the block's fork has.
    pub(crate) fn sending(call: &NewPayload) -> anyhow::Result<Self> {
        let version = EngineMethod::NewPayload.version(call.forks()[0]);
        let method = EngineMethod::NewPayload.name(version).into();
        Self::new(RawCall { method, params: call.to_json()? })
    }

    /// The block and what is sent beside it.
    pub(crate) fn call(&self) -> anyhow::Result<NewPayload> {
        let method = &self.line.method;
        let known = EngineMethod::named(method).with_context(|| format!("no method {method}"))?;
        Ok(NewPayload::from_json(known.1, self.params())?)
    }

    fn new(line: RawCall) -> anyhow::Result<Self> {
        let params: Vec<&RawValue> = serde_json::from_str(line.params.get())?;
        let payload = params.first().context("a call without a payload")?;
        let fields: PayloadFields = serde_json::from_str(payload.get()).context("not a payload")?;
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

    /// A block as this one, with another state root: it is invalid, and to find that out a client
    /// has to execute it. Of Prague and Osaka alone.
    pub(crate) fn invalid_twin(&self) -> anyhow::Result<Self> {
        let mut call = self.call()?;
        let is_known = call.forks().contains(&engine_api::Fork::Prague);
        ensure!(is_known, "no invalid twin is made of a block that {} takes", self.line.method);
        // Or it would be refused for its hash, and not executed.
        ensure!(hash_of(&call)? == self.hash, "the hash of block {} is another", self.number);
        call.payload.as_v1_mut().state_root = keccak256(self.state_root);
        call.payload.as_v1_mut().block_hash = hash_of(&call)?;
        Self::sending(&call)
    }

    /// The line of a file.
    pub(crate) fn line(&self) -> &impl Serialize {
        &self.line
    }

    /// The method, or the one that also asks for the witness.
    pub(crate) fn method(&self, with_witness: bool) -> String {
        let name = if with_witness { "newPayloadWithWitness" } else { "newPayload" };
        self.line.method.replacen("newPayload", name, 1)
    }

    /// The call's parameters, as they are sent.
    pub(crate) fn raw_params(&self) -> &RawValue {
        &self.line.params
    }

    /// The call's parameters, a JSON list.
    pub fn params(&self) -> &str {
        self.line.params.get()
    }
}

/// The hash that the block of a call has, whatever the payload says.
fn hash_of(call: &NewPayload) -> anyhow::Result<B256> {
    let block = call.payload.clone().into_block_with_sidecar_raw(&call.sidecar())?;
    Ok(block.header.hash_slow())
}

/// Writes `genesis.json`, as a whole or not at all.
pub(crate) fn write_genesis(path: &Path, genesis: &impl Serialize) -> anyhow::Result<()> {
    let unfinished = path.with_extension("unfinished");
    let mut file = BufWriter::new(File::create(&unfinished)?);
    serde_json::to_writer(&mut file, genesis)?;
    file.flush()?;
    Ok(std::fs::rename(unfinished, path)?)
}
