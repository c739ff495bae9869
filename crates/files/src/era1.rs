//! era1 files: proof-of-work blocks with their receipts and total difficulties, up to 8192 a file.
//!
//! `era1 := Version | block-tuple* | other-entries* | Accumulator | BlockIndex`, where a tuple is
//! CompressedHeader, CompressedBody, CompressedReceipts, TotalDifficulty
//! (<https://github.com/eth-clients/e2store-format-specs>, `formats/era1.md`).

use std::path::{Path, PathBuf};

use alloy_consensus::{Block, BlockBody, Header, proofs};
use alloy_primitives::{B256, U256, hex, keccak256};
use alloy_rlp::Decodable;
use execution::{SealedBlock, Transaction};
use sha2::{Digest, Sha256};

use crate::FileBlock;
use crate::e2store::{self, EntryHeader};
use crate::error::Error;
use crate::input::Input;
use crate::limits::{BLOCK_BYTES, ERA1_BLOCKS, ERA1_HEADER_BYTES};
use crate::output::Output;

/// The state of reading an era1 file.
#[derive(Default)]
pub(super) struct Era1 {
    begun: bool,
    /// The offsets of the blocks.
    offsets: Vec<u64>,
    /// The accumulator's leaves.
    records: Vec<B256>,
    first: u64,
    last: Option<LastBlock>,
    accumulator: Option<B256>,
    indexed: bool,
    buffer: Vec<u8>,
}

struct LastBlock {
    number: u64,
    hash: B256,
    total_difficulty: U256,
}

impl Era1 {
    /// The next block, or `None` at the end, where accumulator and index are checked. Bodies and
    /// receipts of blocks below `first` are not read.
    pub(super) fn next(
        &mut self,
        input: &mut Input,
        first: u64,
        index: &mut u64,
    ) -> Result<Option<FileBlock>, Error> {
        loop {
            let Some(entry) = e2store::next(input)? else {
                self.check_end(input)?;
                return Ok(None);
            };
            match entry.kind {
                e2store::VERSION if !self.begun => self.begun = true,
                e2store::COMPRESSED_HEADER if self.accumulator.is_none() => {
                    let block = self.block(input, entry, first)?;
                    *index += 1;
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
    }

    fn block(
        &mut self,
        input: &mut Input,
        entry: EntryHeader,
        first: u64,
    ) -> Result<Option<FileBlock>, Error> {
        let wrong = |input: &Input, problem| Err(input.error(entry.offset, problem));
        if self.records.len() == ERA1_BLOCKS {
            return wrong(input, format!("more than {ERA1_BLOCKS} blocks in one era1 file"));
        }
        e2store::unpacked(input, entry, ERA1_HEADER_BYTES, &mut self.buffer)?;
        let header: Header = match decode(&self.buffer) {
            Ok(header) => header,
            Err(error) => return wrong(input, format!("CompressedHeader: {error}")),
        };
        let hash = keccak256(&self.buffer);
        if let Some(last) = &self.last
            && (last.number.checked_add(1), last.hash) != (Some(header.number), header.parent_hash)
        {
            let (number, parent) = (header.number, header.parent_hash);
            let LastBlock { number: before, hash, .. } = last;
            let problem = format!("block {number} on {parent} after block {before}, {hash}");
            return wrong(input, problem);
        }
        let passed_over = header.number < first;
        let body = self.body(input, &header, passed_over)?;
        self.receipts(input, &header, passed_over)?;
        let total_difficulty = self.total_difficulty(input, &header)?;
        if self.records.is_empty() {
            self.first = header.number;
        }
        self.offsets.push(entry.offset);
        self.records.push(record(hash, total_difficulty));
        self.last = Some(LastBlock { number: header.number, hash, total_difficulty });
        let Some(body) = body else { return Ok(None) };
        let block = SealedBlock::new(Block { header, body });
        if block.hash() != hash {
            return wrong(
                input,
                format!("the header's RLP hashes to {hash}, read again to another"),
            );
        }
        let total_difficulty = Some(total_difficulty);
        Ok(Some(FileBlock { total_difficulty, ..FileBlock::of(block).at(entry.offset) }))
    }

    /// The body, with its roots checked; `None` if it is skipped.
    fn body(
        &mut self,
        input: &mut Input,
        header: &Header,
        passed_over: bool,
    ) -> Result<Option<BlockBody<Transaction>>, Error> {
        let at = input.offset();
        if input.fill(2)?.starts_with(&e2store::COMPRESSED_HEADER.to_le_bytes()) {
            let problem = "CompressedBody expected, another CompressedHeader found: \
                           this is an ere file, which is not read; era1 files are";
            return Err(input.error(at, problem));
        }
        let entry = e2store::expect(input, e2store::COMPRESSED_BODY)?;
        if passed_over {
            input.skip(entry.value_bytes)?;
            return Ok(None);
        }
        e2store::unpacked(input, entry, BLOCK_BYTES, &mut self.buffer)?;
        let body: BlockBody<Transaction> = decode(&self.buffer)
            .map_err(|error| input.error(at, format!("CompressedBody: {error}")))?;
        check_roots(header, &body).map_err(|problem| {
            input.error(at, format!("the body of block {}: {problem}", header.number))
        })?;
        Ok(Some(body))
    }

    /// Checks the receipts, if the file has them.
    fn receipts(
        &mut self,
        input: &mut Input,
        header: &Header,
        passed_over: bool,
    ) -> Result<(), Error> {
        let is_next = input.fill(2)?.starts_with(&e2store::COMPRESSED_RECEIPTS.to_le_bytes());
        if !is_next {
            return Ok(());
        }
        let entry = e2store::expect(input, e2store::COMPRESSED_RECEIPTS)?;
        if passed_over {
            return input.skip(entry.value_bytes);
        }
        e2store::unpacked(input, entry, BLOCK_BYTES, &mut self.buffer)?;
        let got = receipts_root(&self.buffer)
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
        let value = fixed(input, entry)?;
        let got = U256::from_le_bytes(value);
        let before = match &self.last {
            Some(last) => Some(last.total_difficulty),
            None if header.number == 0 => Some(U256::ZERO),
            // The file does not hold the blocks before.
            None => None,
        };
        let expected = match before {
            Some(before) => before.checked_add(header.difficulty),
            None => Some(got).filter(|got| *got >= header.difficulty),
        };
        if expected != Some(got) {
            let (number, difficulty) = (header.number, header.difficulty);
            let before = before.unwrap_or_default();
            let problem = format!(
                "total difficulty {got} of block {number}, whose own is {difficulty} after {before}"
            );
            return Err(input.error(entry.offset, problem));
        }
        Ok(got)
    }

    fn check_accumulator(&mut self, input: &mut Input, entry: EntryHeader) -> Result<(), Error> {
        let got = B256::from(fixed(input, entry)?);
        let expected = accumulator(&self.records);
        if got != expected {
            let problem = format!("Accumulator {got}, that of the blocks is {expected}");
            return Err(input.error(entry.offset, problem));
        }
        self.accumulator = Some(got);
        Ok(())
    }

    fn check_index(&mut self, input: &mut Input, entry: EntryHeader) -> Result<(), Error> {
        let index = e2store::index(input, entry, ERA1_BLOCKS as u64)?;
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
        let Some(name) = FileName::of(input.file()) else { return Ok(()) };
        let accumulator = self.accumulator.unwrap_or_default();
        let expected =
            FileName { epoch: self.first / ERA1_BLOCKS as u64, root: short(&accumulator) };
        if name != expected {
            let FileName { epoch, root } = expected;
            let problem = format!("the content is that of a file NETWORK-{epoch:05}-{root}.era1");
            return Err(input.error(0, problem));
        }
        Ok(())
    }
}

/// The parts of a name such as `mainnet-00000-5ec1ffb8.era1`.
#[derive(PartialEq, Eq)]
struct FileName {
    epoch: u64,
    root: String,
}

impl FileName {
    /// `None` if the name does not follow the convention.
    fn of(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_str()?;
        let stem = name.split_once(".era1").map(|(stem, _)| stem)?;
        let (rest, root) = stem.rsplit_once('-')?;
        let (_, epoch) = rest.rsplit_once('-')?;
        let is_root = root.len() == 8 && root.bytes().all(|digit| digit.is_ascii_hexdigit());
        let epoch = epoch.parse().ok().filter(|_| epoch.len() >= 5)?;
        is_root.then(|| Self { epoch, root: root.to_lowercase() })
    }
}

fn short(root: &B256) -> String {
    hex::encode(&root[..4])
}

fn fixed(input: &mut Input, entry: EntryHeader) -> Result<[u8; 32], Error> {
    if entry.value_bytes != 32 {
        let (kind, bytes) = (e2store::name(entry.kind), entry.value_bytes);
        return Err(input.error(entry.offset, format!("{kind} of {bytes} bytes instead of 32")));
    }
    input.array()
}

fn decode<T: Decodable>(mut rlp: &[u8]) -> alloy_rlp::Result<T> {
    let value = T::decode(&mut rlp)?;
    if rlp.is_empty() { Ok(value) } else { Err(alloy_rlp::Error::UnexpectedLength) }
}

/// Checks the body against the roots in the header.
pub(super) fn check_roots(header: &Header, body: &BlockBody<Transaction>) -> Result<(), String> {
    let transactions = proofs::calculate_transaction_root(&body.transactions);
    let withdrawals = body.withdrawals.as_ref().map(|w| proofs::calculate_withdrawals_root(w));
    let ommers = proofs::calculate_ommers_root(&body.ommers);
    let differs = |what, got: &dyn std::fmt::Debug, expected: &dyn std::fmt::Debug| {
        Err(format!("{what} root {got:?}, the header has {expected:?}"))
    };
    if transactions != header.transactions_root {
        return differs("transactions", &transactions, &header.transactions_root);
    }
    if ommers != header.ommers_hash {
        return differs("ommers", &ommers, &header.ommers_hash);
    }
    if withdrawals != header.withdrawals_root {
        return differs("withdrawals", &withdrawals, &header.withdrawals_root);
    }
    Ok(())
}

/// The root of the trie of receipts, from the RLP of their list.
///
/// The trie's values are the items of the list: a legacy receipt's RLP, or the content of the
/// string that holds a typed receipt.
fn receipts_root(mut list: &[u8]) -> alloy_rlp::Result<B256> {
    let mut content = alloy_rlp::Header::decode_bytes(&mut list, true)?;
    if !list.is_empty() {
        return Err(alloy_rlp::Error::UnexpectedLength);
    }
    let mut receipts = Vec::new();
    while !content.is_empty() {
        let whole = content;
        let header = alloy_rlp::Header::decode(&mut content)?;
        let (own, rest) = content.split_at(header.payload_length);
        let with_prefix = whole.len() - rest.len();
        receipts.push(if header.list { &whole[..with_prefix] } else { own });
        content = rest;
    }
    Ok(proofs::ordered_trie_root_with_encoder(&receipts, |receipt, out| {
        out.extend_from_slice(receipt);
    }))
}

/// A leaf of the accumulator: the root of `HeaderRecord { block_hash, total_difficulty }`.
fn record(hash: B256, total_difficulty: U256) -> B256 {
    hash_pair(&hash, &total_difficulty.to_le_bytes().into())
}

/// `hash_tree_root` of the `List[HeaderRecord, 8192]` with these leaves.
fn accumulator(records: &[B256]) -> B256 {
    let mut layer = records.to_vec();
    let mut zero = B256::ZERO;
    for _ in 0..ERA1_BLOCKS.trailing_zeros() {
        if layer.len() % 2 == 1 {
            layer.push(zero);
        }
        layer = layer.chunks_exact(2).map(|pair| hash_pair(&pair[0], &pair[1])).collect();
        zero = hash_pair(&zero, &zero);
    }
    let root = layer.first().copied().unwrap_or(zero);
    let mut length = B256::ZERO;
    length[..8].copy_from_slice(&(records.len() as u64).to_le_bytes());
    hash_pair(&root, &length)
}

fn hash_pair(left: &B256, right: &B256) -> B256 {
    B256::from_slice(&Sha256::new().chain_update(left).chain_update(right).finalize())
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
    last: Option<(u64, B256, U256)>,
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
        self.last.map(|(last, ..)| last + 1 - self.records.len() as u64)
    }

    /// Whether the file has 8192 blocks, the most that the format allows.
    pub const fn is_full(&self) -> bool {
        self.records.len() == ERA1_BLOCKS
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
        self.records.push(record(block.hash(), total_difficulty));
        self.last = Some((header.number, block.hash(), total_difficulty));
        self.output.write(&self.entries)
    }

    fn check(&self, block: &SealedBlock, receipts: &[u8], total: U256) -> Result<(), String> {
        let header = &block.header;
        if self.is_full() {
            return Err(format!("the file has {ERA1_BLOCKS} blocks already"));
        }
        if header.difficulty.is_zero() {
            return Err("of proof of stake, which era1 files do not hold".into());
        }
        if let Some((number, hash, before)) = self.last {
            if (header.number, header.parent_hash) != (number + 1, hash) {
                return Err(format!("not the one after block {number}, {hash}"));
            }
            if before.checked_add(header.difficulty) != Some(total) {
                return Err(format!("total difficulty {total} after {before}"));
            }
        } else if !header.number.is_multiple_of(ERA1_BLOCKS as u64) {
            return Err(format!("an era1 file begins at a multiple of {ERA1_BLOCKS}"));
        }
        let root = receipts_root(receipts).map_err(|error| format!("its receipts: {error}"))?;
        if root != header.receipts_root {
            return Err(format!("receipts root {root}, the header has {}", header.receipts_root));
        }
        Ok(())
    }

    /// Completes the file and names it `NETWORK-EPOCH-ROOT.era1`. Returns its path.
    ///
    /// # Errors
    /// If no block was written; and if writing fails.
    pub fn finish(mut self) -> Result<PathBuf, Error> {
        let Some(first) = self.first_number() else {
            return Err(self.output.refuse("an era1 file needs a block".into()));
        };
        let root = accumulator(&self.records);
        self.entries.clear();
        e2store::write(&mut self.entries, e2store::ACCUMULATOR, &root[..]);
        let begins = self.output.bytes() + self.entries.len() as u64;
        let index = e2store::index_value(first, &self.offsets, begins);
        e2store::write(&mut self.entries, e2store::BLOCK_INDEX, &index);
        self.output.write(&self.entries)?;
        let epoch = first / ERA1_BLOCKS as u64;
        let name = format!("{}-{epoch:05}-{}.era1", self.network, short(&root));
        let path = self.directory.join(name);
        self.output.finish_as(&path)?;
        Ok(path)
    }
}
