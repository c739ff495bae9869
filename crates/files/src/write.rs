use std::fs::File;
use std::io::{self, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use alloy_consensus::Transaction as _;
use alloy_consensus::constants::EMPTY_OMMER_ROOT_HASH;
use alloy_eips::eip7685::{EMPTY_REQUESTS_HASH, Requests};
use alloy_primitives::{B256, Bytes, keccak256};
use alloy_rpc_types_engine::{
    ExecutionPayloadV1, ExecutionPayloadV2, ExecutionPayloadV3, ExecutionPayloadV4,
};
use execution::SealedBlock;
use serde::Serialize;

use crate::blocks::BlockForm;
use crate::error::{Error, Location};
use crate::output::{self, Output};
use crate::rlp;

/// A block to be written, with the other parameters of its payload.
#[derive(Debug, Clone, Copy)]
pub struct ExportBlock<'a> {
    /// The block.
    pub block: &'a SealedBlock,
    /// The requests (EIP-7685): needed for payloads from Prague on, unless there are none.
    pub requests: Option<&'a Requests>,
    /// The block access list (EIP-7928): needed for payloads from Amsterdam on.
    pub access_list: Option<&'a Bytes>,
}

/// Writes blocks to a file, as RLP or as `engine_newPayload` requests in JSON, one a line.
///
/// The file is `NAME.partial` until [`BlockWriter::finish`] syncs and renames it. It is compressed
/// if its name ends in `.gz`.
#[derive(Debug)]
pub struct BlockWriter {
    target: Target,
    form: BlockForm,
    buffer: Vec<u8>,
}

#[derive(Debug)]
enum Target {
    /// A partial file, as long as it has what is to be written.
    Compared(Compared),
    Output(Output),
}

/// A partial file of an earlier writer.
#[derive(Debug)]
struct Compared {
    /// The path that it is to have.
    path: PathBuf,
    partial: Arc<Path>,
    file: BufReader<File>,
    /// The bytes that it has in common with what is written.
    bytes: u64,
    found: Vec<u8>,
}

impl Compared {
    /// Opens the partial file of this path; `None` where there is none.
    fn open(path: PathBuf) -> Result<Option<Self>, Error> {
        let partial: Arc<Path> = output::partial(&path).into();
        let file = match output::open_unfinished(&partial, File::options().read(true)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file.map_err(|error| Error::io(&partial, error))?,
        };
        let file = BufReader::with_capacity(1 << 20, file);
        Ok(Some(Self { path, partial, file, bytes: 0, found: Vec::new() }))
    }

    /// Whether these bytes are the next ones.
    fn has(&mut self, bytes: &[u8]) -> Result<bool, Error> {
        self.found.clear();
        let read = self.file.by_ref().take(bytes.len() as u64).read_to_end(&mut self.found);
        read.map_err(|error| Error::io(&self.partial, error))?;
        let is_same = self.found == bytes;
        self.bytes += if is_same { bytes.len() as u64 } else { 0 };
        Ok(is_same)
    }

    fn go_on(&self) -> Result<Output, Error> {
        Output::go_on(&self.path, self.bytes)
    }
}

impl BlockWriter {
    /// Begins a new file. `form` is [`BlockForm::Rlp`] or [`BlockForm::Json`].
    ///
    /// # Errors
    /// If the file cannot be created, or `form` is another one.
    pub fn create(path: &Path, form: BlockForm) -> Result<Self, Error> {
        check_form(path, form)?;
        Ok(Self::new(Target::Output(Output::create(&output::resolve(path)?)?), form))
    }

    /// Continues a partial file. Of the blocks that are written next, those that the file begins
    /// with are compared with it byte by byte; all behind them is truncated. So the file is what it
    /// would be without the interruption, whatever the partial one had. A compressed file begins
    /// anew.
    ///
    /// # Errors
    /// If the partial file cannot be read, or is a link or another user's.
    pub fn resume(path: &Path, form: BlockForm) -> Result<Self, Error> {
        check_form(path, form)?;
        let path = output::resolve(path)?;
        if output::is_gzip(&path) || output::is_stream(&path) {
            return Self::create(&path, form);
        }
        match Compared::open(path.clone())? {
            Some(compared) => Ok(Self::new(Target::Compared(compared), form)),
            None => Self::create(&path, form),
        }
    }

    const fn new(target: Target, form: BlockForm) -> Self {
        Self { target, form, buffer: Vec::new() }
    }

    /// Adds a block.
    ///
    /// # Errors
    /// If the form cannot hold the block: no payload describes a proof-of-work block, and from
    /// Prague on it needs the other parameters. And if writing fails.
    pub fn write(&mut self, export: ExportBlock<'_>) -> Result<(), Error> {
        self.buffer.clear();
        match self.form {
            BlockForm::Rlp => rlp::write(&mut self.buffer, export.block),
            _ => {
                write_request(&mut self.buffer, export).map_err(|problem| {
                    let number = export.block.header.number;
                    let problem = format!("block {number} {problem}");
                    Error::content(&self.path().into(), Location::default(), problem)
                })?;
            }
        }
        if let Target::Compared(compared) = &mut self.target {
            if compared.has(&self.buffer)? {
                return Ok(());
            }
            self.target = Target::Output(compared.go_on()?);
        }
        match &mut self.target {
            Target::Output(output) => output.write(&self.buffer),
            Target::Compared(_) => Ok(()),
        }
    }

    fn path(&self) -> &Path {
        match &self.target {
            Target::Compared(compared) => &compared.path,
            Target::Output(output) => output.path(),
        }
    }

    /// The number of bytes of content written so far, by the writers before this one too.
    pub const fn bytes(&self) -> u64 {
        match &self.target {
            Target::Compared(compared) => compared.bytes,
            Target::Output(output) => output.bytes(),
        }
    }

    /// Completes, syncs and renames the file. An earlier file of that name is replaced.
    ///
    /// # Errors
    /// If that fails; the partial file stays.
    pub fn finish(self) -> Result<(), Error> {
        match self.target {
            Target::Output(output) => output.finish(),
            Target::Compared(compared) => compared.go_on()?.finish(),
        }
    }
}

fn check_form(path: &Path, form: BlockForm) -> Result<(), Error> {
    match form {
        BlockForm::Rlp | BlockForm::Json => Ok(()),
        BlockForm::Era1 | BlockForm::Ere | BlockForm::Era => {
            let problem = "a file of blocks is written as RLP or JSON";
            Err(Error::content(&path.into(), Default::default(), problem))
        }
    }
}

#[derive(Serialize)]
struct Request<'a, P> {
    jsonrpc: &'a str,
    id: u64,
    method: &'a str,
    params: P,
}

/// Appends the request with the block, and a line feed.
fn write_request(out: &mut Vec<u8>, export: ExportBlock<'_>) -> Result<(), String> {
    let ExportBlock { block, .. } = export;
    let header = &block.header;
    if !header.difficulty.is_zero() || header.ommers_hash != EMPTY_OMMER_ROOT_HASH {
        return Err("is of proof of work, which no payload describes: write RLP".into());
    }
    let hash = block.hash();
    if header.blob_gas_used.is_none() {
        return if block.body.withdrawals.is_none() {
            let payload = ExecutionPayloadV1::from_block_unchecked(hash, block);
            line(out, block, "engine_newPayloadV1", (payload,))
        } else {
            let payload = ExecutionPayloadV2::from_block_unchecked(hash, block);
            line(out, block, "engine_newPayloadV2", (payload,))
        };
    }
    let payload = ExecutionPayloadV3::from_block_unchecked(hash, block);
    let transactions = block.body.transactions.iter();
    let hashes = transactions.flat_map(|tx| tx.blob_versioned_hashes().into_iter().flatten());
    let hashes: Vec<B256> = hashes.copied().collect();
    let root = header.parent_beacon_block_root.ok_or("has no parent beacon block root")?;
    let Some(requests_hash) = header.requests_hash else {
        return line(out, block, "engine_newPayloadV3", (payload, hashes, root));
    };
    let none = Requests::default();
    let requests = match export.requests {
        None if requests_hash == EMPTY_REQUESTS_HASH => &none,
        Some(requests) if requests.requests_hash() == requests_hash => requests,
        Some(_) => return Err("has other requests".into()),
        None => return Err("has requests, which are not kept with it".into()),
    };
    let Some(list_hash) = header.block_access_list_hash else {
        return line(out, block, "engine_newPayloadV4", (payload, hashes, root, requests));
    };
    let list = match export.access_list {
        Some(list) if keccak256(list) == list_hash => list.clone(),
        Some(_) => return Err("has another block access list".into()),
        None => return Err("has a block access list, which is not kept with it".into()),
    };
    let payload = ExecutionPayloadV4 {
        payload_inner: payload,
        block_access_list: list,
        slot_number: header.slot_number.ok_or("has no slot number")?,
    };
    line(out, block, "engine_newPayloadV5", (payload, hashes, root, requests))
}

fn line<P: Serialize>(
    out: &mut Vec<u8>,
    block: &SealedBlock,
    method: &str,
    params: P,
) -> Result<(), String> {
    let request = Request { jsonrpc: "2.0", id: block.header.number, method, params };
    serde_json::to_writer(&mut *out, &request).expect("payloads have JSON");
    out.push(b'\n');
    Ok(())
}
