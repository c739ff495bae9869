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

use crate::FileBlock;
use crate::blocks::{BlockForm, BlockReader};
use crate::error::Error;
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
    output: Output,
    form: BlockForm,
    buffer: Vec<u8>,
    first_number: Option<u64>,
}

impl BlockWriter {
    /// Begins a new file. `form` is [`BlockForm::Rlp`] or [`BlockForm::Json`].
    ///
    /// # Errors
    /// If the file cannot be created, or `form` is another one.
    pub fn create(path: &Path, form: BlockForm) -> Result<Self, Error> {
        check_form(path, form)?;
        Ok(Self::new(Output::create(&output::resolve(path)?)?, form, None))
    }

    /// Continues a partial file, and returns the last complete block in it. A file without one and
    /// a compressed file begin anew. The caller has to check that this block and
    /// [`Self::first_number`] are those that the file is to have.
    ///
    /// # Errors
    /// If the partial file cannot be read or written, or has another form.
    pub fn resume(path: &Path, form: BlockForm) -> Result<(Self, Option<FileBlock>), Error> {
        check_form(path, form)?;
        let path = &output::resolve(path)?;
        let partial = output::partial(path);
        let is_there = partial.metadata().is_ok_and(|data| data.len() > 0);
        if output::is_gzip(path) || output::is_stream(path) || !is_there {
            return Ok((Self::create(path, form)?, None));
        }
        let CompleteBlocks { first_number, last, bytes } = whole_blocks(&partial, form)?;
        let mut output = Output::go_on(path, bytes)?;
        if form == BlockForm::Json && last.is_some() {
            output.write(b"\n")?;
        }
        Ok((Self::new(output, form, first_number), last))
    }

    const fn new(output: Output, form: BlockForm, first_number: Option<u64>) -> Self {
        Self { output, form, buffer: Vec::new(), first_number }
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
                    self.output.refuse(format!("block {number} {problem}"))
                })?;
            }
        }
        self.output.write(&self.buffer)?;
        self.first_number.get_or_insert(export.block.header.number);
        Ok(())
    }

    /// The number of the first block in the file; `None` before one is written.
    pub const fn first_number(&self) -> Option<u64> {
        self.first_number
    }

    /// The number of bytes of content written so far.
    pub const fn bytes(&self) -> u64 {
        self.output.bytes()
    }

    /// Completes, syncs and renames the file. An earlier file of that name is replaced.
    ///
    /// # Errors
    /// If that fails; the partial file stays.
    pub fn finish(self) -> Result<(), Error> {
        self.output.finish()
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

/// The complete blocks of a partial file.
struct CompleteBlocks {
    first_number: Option<u64>,
    last: Option<FileBlock>,
    /// The length of the file up to the end of the last block, in bytes.
    bytes: u64,
}

fn whole_blocks(partial: &Path, form: BlockForm) -> Result<CompleteBlocks, Error> {
    let wrong_form = |found: BlockForm| {
        let problem = format!(
            "cannot be continued as {form:?}: its form is {found:?}; remove it to start over"
        );
        Error::content(&partial.into(), Default::default(), problem)
    };
    let mut reader = match BlockReader::open(partial) {
        Ok(reader) => reader,
        // It ends within the first block, or in white space.
        Err(error) if error.is_content() => {
            return Ok(CompleteBlocks { first_number: None, last: None, bytes: 0 });
        }
        Err(error) => return Err(error),
    };
    if reader.form() != form {
        return Err(wrong_form(reader.form()));
    }
    let mut whole = CompleteBlocks { first_number: None, last: None, bytes: 0 };
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
