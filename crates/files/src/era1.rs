//! era1 files: proof-of-work blocks with their receipts and total difficulties, up to 8192 a file.
//!
//! `era1 := Version | block-tuple* | other-entries* | Accumulator | BlockIndex`, where a tuple is
//! CompressedHeader, CompressedBody, CompressedReceipts, TotalDifficulty
//! (<https://github.com/eth-clients/e2store-format-specs>, `formats/era1.md`).

use std::path::{Path, PathBuf};

use alloy_consensus::{BlockBody, Header};
use alloy_primitives::{B256, U256};
use execution::{SealedBlock, Transaction};

use crate::archive::{self, ArchiveName, Difficulty, Link, Total, Written};
use crate::block::Seen;
use crate::e2store::{self, EntryHeader};
use crate::ere::Ere;
use crate::error::Error;
use crate::input::Input;
use crate::limits::{ARCHIVE_BLOCKS, BLOCK_BYTES};
use crate::output::Output;
use crate::{FileBlock, receipts};

/// The state of reading an era1 file.
#[derive(Default)]
pub(super) struct Era1 {
    begun: bool,
    /// The offsets of the blocks.
    offsets: Vec<u64>,
    /// The accumulator's leaves.
    records: Vec<B256>,
    first: u64,
    last: Option<Link>,
    total: Total,
    accumulator: Option<B256>,
    indexed: bool,
    buffer: Vec<u8>,
    /// The file is an ere file of one block, which begins as an era1 file does.
    ere: Option<Box<Ere>>,
}

impl Era1 {
    /// Whether the file has turned out to be an ere file.
    pub(super) const fn is_ere(&self) -> bool {
        self.ere.is_some()
    }

    /// The next block, or `None` at the end, where accumulator and index are checked. Bodies and
    /// receipts of blocks below `first` are not read.
    pub(super) fn next(
        &mut self,
        input: &mut Input,
        first: u64,
        seen: &mut Seen,
    ) -> Result<Option<FileBlock>, Error> {
        while self.ere.is_none() {
            let Some(entry) = e2store::next(input)? else {
                self.check_end(input)?;
                return Ok(None);
            };
            match entry.kind {
                e2store::VERSION if !self.begun => self.begun = true,
                e2store::COMPRESSED_HEADER if self.accumulator.is_none() => {
                    let block = self.block(input, entry, first)?;
                    seen.block(self.last.map(|last| last.number));
                    if block.is_some() {
                        return Ok(block);
                    }
                }
                e2store::ACCUMULATOR if self.accumulator.is_none() => {
                    self.check_accumulator(input, entry)?;
                }
                e2store::BLOCK_INDEX if self.accumulator.is_some() && !self.indexed => {
                    self.check_index(input, entry)?;
                }
                e2store::VERSION
                | e2store::COMPRESSED_HEADER
                | e2store::COMPRESSED_BODY
                | e2store::COMPRESSED_RECEIPTS
                | e2store::TOTAL_DIFFICULTY
                | e2store::ACCUMULATOR
                | e2store::BLOCK_INDEX => {
                    let problem = format!("{} out of place", e2store::name(entry.kind));
                    return Err(input.error(entry.offset, problem));
                }
                _ => input.skip(entry.value_bytes)?,
            }
        }
        self.ere.as_mut().expect("the loop ends so").next(input, first, seen)
    }

    fn block(
        &mut self,
        input: &mut Input,
        entry: EntryHeader,
        first: u64,
    ) -> Result<Option<FileBlock>, Error> {
        let wrong = |input: &Input, problem: String| input.error(entry.offset, problem);
        if self.records.len() == ARCHIVE_BLOCKS {
            let problem = format!("more than {ARCHIVE_BLOCKS} blocks in one era1 file");
            return Err(wrong(input, problem));
        }
        let (header, hash) = archive::read_header(input, entry, &mut self.buffer)?;
        let number = header.number;
        match &self.last {
            Some(last) => last.check(&header).map_err(|problem| wrong(input, problem))?,
            None => self.first = number,
        }
        self.last = Some(Link { number, hash });
        let at = input.offset();
        let body = self.body(input, &header, number < first)?;
        let transactions = body.as_ref().map(|body| body.transactions.len());
        let mut total_difficulty = None;
        if self.records.is_empty() && is_ere(input)? {
            let ere = Ere::of_one(&header, hash, transactions, [entry.offset, at]);
            self.ere = Some(Box::new(ere));
        } else {
            self.receipts(input, &header, transactions)?;
            let total = self.total_difficulty(input, &header)?;
            self.offsets.push(entry.offset);
            self.records.push(archive::record(hash, total));
            total_difficulty = Some(total);
        }
        let Some(body) = body else { return Ok(None) };
        let block = archive::sealed(header, body, hash).map_err(|problem| wrong(input, problem))?;
        Ok(Some(FileBlock { total_difficulty, ..FileBlock::of(block).at(entry.offset) }))
    }

    /// The body, with its roots checked; `None` if it is skipped.
    fn body(
        &mut self,
        input: &mut Input,
        header: &Header,
        passed_over: bool,
    ) -> Result<Option<BlockBody<Transaction>>, Error> {
        let entry = e2store::expect(input, e2store::COMPRESSED_BODY)?;
        if passed_over {
            input.skip(entry.value_bytes)?;
            return Ok(None);
        }
        archive::read_body(input, entry, header, &mut self.buffer).map(Some)
    }

    /// Checks the receipts of so many transactions, if the file has them. `None`: they are skipped.
    fn receipts(
        &mut self,
        input: &mut Input,
        header: &Header,
        transactions: Option<usize>,
    ) -> Result<(), Error> {
        let is_next = input.fill(2)?.starts_with(&e2store::COMPRESSED_RECEIPTS.to_le_bytes());
        if !is_next {
            return Ok(());
        }
        let entry = e2store::expect(input, e2store::COMPRESSED_RECEIPTS)?;
        let Some(transactions) = transactions else { return input.skip(entry.value_bytes) };
        e2store::unpacked(input, entry, BLOCK_BYTES, &mut self.buffer)?;
        let got = receipts::root(&self.buffer, transactions)
            .map_err(|error| input.error(entry.offset, format!("CompressedReceipts: {error}")))?;
        if got != header.receipts_root {
            let (number, expected) = (header.number, header.receipts_root);
            let problem =
                format!("receipts of block {number}: root {got}, the header has {expected}");
            return Err(input.error(entry.offset, problem));
        }
        Ok(())
    }

    fn total_difficulty(&mut self, input: &mut Input, header: &Header) -> Result<U256, Error> {
        let entry = e2store::expect(input, e2store::TOTAL_DIFFICULTY)?;
        let total = U256::from_le_bytes(archive::fixed(input, entry)?);
        self.total
            .check(Difficulty { number: header.number, own: header.difficulty, total })
            .map_err(|problem| input.error(entry.offset, problem))?;
        Ok(total)
    }

    fn check_accumulator(&mut self, input: &mut Input, entry: EntryHeader) -> Result<(), Error> {
        let got = B256::from(archive::fixed(input, entry)?);
        let expected = archive::accumulator(&self.records);
        if got != expected {
            let problem = format!("Accumulator {got}, that of the blocks is {expected}");
            return Err(input.error(entry.offset, problem));
        }
        self.accumulator = Some(got);
        Ok(())
    }

    fn check_index(&mut self, input: &mut Input, entry: EntryHeader) -> Result<(), Error> {
        let index = e2store::index(input, entry, ARCHIVE_BLOCKS as u64)?;
        let begins = entry.offset as i64;
        let expected = self.offsets.iter().map(|offset| *offset as i64 - begins);
        if index.first != self.first || !expected.eq(index.offsets.iter().copied()) {
            let (first, count) = (self.first, self.offsets.len());
            let problem = format!("BlockIndex is not that of the {count} blocks from {first} on");
            return Err(input.error(entry.offset, problem));
        }
        self.indexed = true;
        Ok(())
    }

    fn check_end(&self, input: &Input) -> Result<(), Error> {
        if !self.indexed {
            let missing = if self.accumulator.is_some() { "BlockIndex" } else { "Accumulator" };
            let problem = format!("{missing} expected, the file ends");
            return Err(input.error(input.offset(), problem));
        }
        let accumulator = self.accumulator.unwrap_or_default();
        ArchiveName::new(self.first, &accumulator).check(input, ".era1")
    }
}

/// Whether a single body is followed by what an ere file has there.
fn is_ere(input: &mut Input) -> Result<bool, Error> {
    // An entry with a value of 32 bytes.
    const FIXED: usize = e2store::HEADER_BYTES as usize + 32;
    let mut rest = input.fill(2 * FIXED + 2)?;
    for kind in [e2store::TOTAL_DIFFICULTY, e2store::ACCUMULATOR] {
        if rest.starts_with(&kind.to_le_bytes()) {
            rest = rest.get(FIXED..).unwrap_or_default();
        }
    }
    let kind = rest.first_chunk().map(|kind| u16::from_le_bytes(*kind));
    Ok(matches!(
        kind,
        Some(e2store::COMPRESSED_SLIM_RECEIPTS | e2store::PROOF | e2store::DYNAMIC_BLOCK_INDEX)
    ))
}

/// Writes one era1 file: up to 8192 proof-of-work blocks, the first a multiple of that.
#[derive(Debug)]
pub struct Era1Writer {
    directory: PathBuf,
    network: String,
    output: Output,
    entries: Vec<u8>,
    offsets: Vec<u64>,
    records: Vec<B256>,
    last: Option<Written>,
}

impl Era1Writer {
    /// Begins a file in `directory`. Its name depends on its content.
    ///
    /// # Errors
    /// If no file can be created there.
    pub fn create(directory: &Path, network: &str) -> Result<Self, Error> {
        let mut output = Output::create(&directory.join(format!("{network}-unfinished.era1")))?;
        output.write(&e2store::MAGIC)?;
        Ok(Self {
            directory: directory.into(),
            network: network.into(),
            output,
            entries: Vec::new(),
            offsets: Vec::new(),
            records: Vec::new(),
            last: None,
        })
    }

    /// The number of the first block; `None` before one is written.
    pub fn first_number(&self) -> Option<u64> {
        self.last.map(|last| last.link.number + 1 - self.records.len() as u64)
    }

    /// Whether the file has 8192 blocks, the most that the format allows.
    pub const fn is_full(&self) -> bool {
        self.records.len() == ARCHIVE_BLOCKS
    }

    /// Adds a block with the RLP of the list of its receipts and the total difficulty including it.
    ///
    /// # Errors
    /// If the block is not the next one, is of proof of stake, has other receipts, or the file is
    /// full; and if writing fails.
    pub fn write(
        &mut self,
        block: &SealedBlock,
        receipts_rlp: &[u8],
        total_difficulty: U256,
    ) -> Result<(), Error> {
        let header = &block.header;
        self.check(block, receipts_rlp, total_difficulty)
            .map_err(|problem| self.output.refuse(format!("block {}: {problem}", header.number)))?;
        self.entries.clear();
        self.offsets.push(self.output.bytes());
        e2store::write_packed(
            &mut self.entries,
            e2store::COMPRESSED_HEADER,
            &alloy_rlp::encode(header),
        );
        let body = alloy_rlp::encode(&block.body);
        e2store::write_packed(&mut self.entries, e2store::COMPRESSED_BODY, &body);
        e2store::write_packed(&mut self.entries, e2store::COMPRESSED_RECEIPTS, receipts_rlp);
        let difficulty = total_difficulty.to_le_bytes::<32>();
        e2store::write(&mut self.entries, e2store::TOTAL_DIFFICULTY, &difficulty);
        self.records.push(archive::record(block.hash(), total_difficulty));
        self.last = Some(Written::of(block, total_difficulty));
        self.output.write(&self.entries)
    }

    fn check(&self, block: &SealedBlock, receipts: &[u8], total: U256) -> Result<(), String> {
        let header = &block.header;
        if self.is_full() {
            return Err(format!("the file has {ARCHIVE_BLOCKS} blocks already"));
        }
        if header.difficulty.is_zero() {
            return Err("of proof of stake, which era1 files do not hold".into());
        }
        match &self.last {
            Some(last) => last.check(header, total)?,
            None => archive::check_first("era1", header)?,
        }
        archive::check_receipts(block, receipts)
    }

    /// Completes the file and names it `NETWORK-EPOCH-ROOT.era1`. Returns its path.
    ///
    /// # Errors
    /// If no block was written; and if writing fails.
    pub fn finish(mut self) -> Result<PathBuf, Error> {
        let Some(first) = self.first_number() else {
            return Err(self.output.refuse("an era1 file needs a block".into()));
        };
        let root = archive::accumulator(&self.records);
        self.entries.clear();
        e2store::write(&mut self.entries, e2store::ACCUMULATOR, &root[..]);
        let begins = self.output.bytes() + self.entries.len() as u64;
        let index =
            e2store::index_value(first, &self.offsets, begins, &[self.offsets.len() as u64]);
        e2store::write(&mut self.entries, e2store::BLOCK_INDEX, &index);
        self.output.write(&self.entries)?;
        let name = ArchiveName::new(first, &root).stem(&self.network);
        let path = self.directory.join(format!("{name}.era1"));
        self.output.finish_as(&path)?;
        Ok(path)
    }
}
