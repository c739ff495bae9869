use std::path::Path;

use alloy_consensus::Transaction as _;
use alloy_consensus::constants::EMPTY_OMMER_ROOT_HASH;
use alloy_eips::eip7685::{EMPTY_REQUESTS_HASH, Requests};
use alloy_primitives::{B256, Bytes, keccak256};
use alloy_rpc_types_engine::{
    ExecutionPayloadV1, ExecutionPayloadV2, ExecutionPayloadV3, ExecutionPayloadV4,
};
use execution::SealedBlock;
use serde::Serialize;

use crate::blocks::{BlockReader, FileBlock, Form};
use crate::error::Error;
use crate::output::{self, Output};
use crate::rlp;

/// A block to be written, with what a payload needs beside it.
#[derive(Debug, Clone, Copy)]
pub struct ExportBlock<'a> {
    /// The block.
    pub block: &'a SealedBlock,
    /// Its requests (EIP-7685): needed for payloads from Prague on, unless it has none.
    pub requests: Option<&'a Requests>,
    /// Its block access list (EIP-7928): needed for payloads from Amsterdam on.
    pub access_list: Option<&'a Bytes>,
}

/// Writes blocks into a file, as RLP or as `engine_newPayload` requests in JSON, a line each.
///
/// The file has `.partial` behind its name until [`BlockWriter::finish`], which brings it to the
/// disk and gives it its name. One whose name ends in `.gz` is packed.
#[derive(Debug)]
pub struct BlockWriter {
    output: Output,
    form: Form,
    buffer: Vec<u8>,
    first_number: Option<u64>,
}

impl BlockWriter {
    /// Begins a file, from nothing. `form` is [`Form::Rlp`] or [`Form::Json`].
    ///
    /// # Errors
    /// If the file cannot be made, or has another form.
    pub fn create(path: &Path, form: Form) -> Result<Self, Error> {
        check_form(path, form)?;
        Ok(Self::new(Output::create(&output::resolve(path)?)?, form, None))
    }

    /// Goes on with a file that was begun and not finished, and returns the last block that is
    /// whole in it; without one, or where the file is packed, it begins from nothing. Whether that
    /// block, and [`Self::first_number`], are what the file is to have is for the caller to see.
    ///
    /// # Errors
    /// If what is there cannot be read or written, or has another form.
    pub fn resume(path: &Path, form: Form) -> Result<(Self, Option<FileBlock>), Error> {
        check_form(path, form)?;
        let path = &output::resolve(path)?;
        let partial = output::partial(path);
        let is_there = partial.metadata().is_ok_and(|data| data.len() > 0);
        if output::is_gzip(path) || output::is_stream(path) || !is_there {
            return Ok((Self::create(path, form)?, None));
        }
        let Whole { first_number, last, bytes } = whole_blocks(&partial, form)?;
        let mut output = Output::go_on(path, bytes)?;
        if form == Form::Json && last.is_some() {
            output.write(b"\n")?;
        }
        Ok((Self::new(output, form, first_number), last))
    }

    const fn new(output: Output, form: Form, first_number: Option<u64>) -> Self {
        Self { output, form, buffer: Vec::new(), first_number }
    }

    /// Adds a block.
    ///
    /// # Errors
    /// If the form cannot hold the block: a payload describes no block of proof of work, and from
    /// Prague on needs more than the block itself. And if writing fails.
    pub fn write(&mut self, export: ExportBlock<'_>) -> Result<(), Error> {
        self.buffer.clear();
        match self.form {
            Form::Rlp => rlp::write(&mut self.buffer, export.block),
            _ => {
                write_request(&mut self.buffer, export).map_err(|problem| {
                    let number = export.block.header.number;
                    self.output.refuse(format!("block {number} {problem}"))
                })?;
            }
        }
        self.output.write(&self.buffer)?;
        self.first_number.get_or_insert(export.block.header.number);
        Ok(())
    }

    /// The number of the first block in the file.
    pub const fn first_number(&self) -> Option<u64> {
        self.first_number
    }

    /// Bytes of content written so far.
    pub const fn bytes(&self) -> u64 {
        self.output.bytes()
    }

    /// Ends the file: it is on the disk, and has its name. A file that had the name is replaced.
    ///
    /// # Errors
    /// If that fails; the partial file stays.
    pub fn finish(self) -> Result<(), Error> {
        self.output.finish()
    }
}

fn check_form(path: &Path, form: Form) -> Result<(), Error> {
    match form {
        Form::Rlp | Form::Json => Ok(()),
        Form::Era1 | Form::Era => {
            let problem = "a file of blocks is written as RLP or JSON";
            Err(Error::content(&path.into(), Default::default(), problem))
        }
    }
}

/// What is whole in a partial file.
struct Whole {
    first_number: Option<u64>,
    last: Option<FileBlock>,
    /// The file's length with the last block.
    bytes: u64,
}

fn whole_blocks(partial: &Path, form: Form) -> Result<Whole, Error> {
    let wrong_form = |found: Form| {
        let problem = format!(
            "to be gone on with as {form:?}, but its form is {found:?}: remove it to begin anew"
        );
        Error::content(&partial.into(), Default::default(), problem)
    };
    let mut reader = match BlockReader::open(partial) {
        Ok(reader) => reader,
        // It ends within the first block, or white space.
        Err(error) if error.is_content() => {
            return Ok(Whole { first_number: None, last: None, bytes: 0 });
        }
        Err(error) => return Err(error),
    };
    if reader.form() != form {
        return Err(wrong_form(reader.form()));
    }
    let mut whole = Whole { first_number: None, last: None, bytes: 0 };
    while let Some(next) = reader.next() {
        match next {
            Ok(block) => {
                whole.first_number.get_or_insert(block.block.header.number);
                (whole.last, whole.bytes) = (Some(block), reader.offset());
            }
            Err(error) if error.is_content() => break,
            Err(error) => return Err(error),
        }
    }
    Ok(whole)
}

#[derive(Serialize)]
struct Request<'a, P> {
    jsonrpc: &'a str,
    id: u64,
    method: &'a str,
    params: P,
}

/// Appends the request that brings the block, and ends the line.
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
