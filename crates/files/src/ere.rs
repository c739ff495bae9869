//! ere files: up to 8192 blocks of execution before and after the merge.
//!
//! `ere := Version | CompressedHeader+ | CompressedBody+ | CompressedSlimReceipts* | Proof* |
//! TotalDifficulty* | other-entries* | Accumulator? | DynamicBlockIndex`
//! (<https://github.com/eth-clients/e2store-format-specs>, `formats/ere.md` at ca2523a).
//!
//! The file is read once from its beginning to its end, as a stream: headers are held until their
//! bodies come, and a block is known before what stands behind the bodies is checked.

use std::collections::VecDeque;

use alloy_consensus::Header;
use alloy_primitives::{B256, Bytes, U256};
use alloy_rlp::Decodable;

use crate::archive::{self, ArchiveName, Difficulty, Link, Total};
use crate::block::Seen;
use crate::e2store::{self, EntryHeader};
use crate::error::Error;
use crate::input::Input;
use crate::limits::{ARCHIVE_BLOCKS, BLOCK_BYTES, ERE_HEADERS_BYTES, ERE_PROOF_BYTES};
use crate::{FileBlock, receipts};

/// The kinds of entries of which a block has one, in their order in the file.
pub(super) const PARTS: [u16; 5] = [
    e2store::COMPRESSED_HEADER,
    e2store::COMPRESSED_BODY,
    e2store::COMPRESSED_SLIM_RECEIPTS,
    e2store::PROOF,
    e2store::TOTAL_DIFFICULTY,
];

const HEADERS: usize = 0;
const BODIES: usize = 1;
const PROOFS: usize = 3;
const DIFFICULTIES: usize = 4;

/// The proof that a block is in the accumulator (BlockProofHistoricalHashesAccumulator).
const ACCUMULATOR_PROOF: u8 = 0;

/// The number of hashes in such a proof: that of the total difficulty, 13 in the list, and the
/// list's length.
const ACCUMULATOR_PROOF_HASHES: usize = 15;

/// The state of reading an ere file.
#[derive(Default)]
pub(super) struct Ere {
    begun: bool,
    /// The kind of entries that is being read, its place in [`PARTS`].
    part: usize,
    /// The offsets of the entries of each kind.
    offsets: [Vec<u64>; PARTS.len()],
    blocks: Vec<Block>,
    /// The headers whose bodies are to come, and the length of all headers in bytes.
    headers: VecDeque<Header>,
    headers_bytes: u64,
    first: u64,
    total: Total,
    /// The accumulator's leaves, if the file has total difficulties.
    records: Vec<B256>,
    /// The root of the accumulator by the proofs that name it.
    proven: Option<B256>,
    accumulator: Option<B256>,
    indexed: bool,
    buffer: Vec<u8>,
}

/// The members of a block that are checked behind the bodies.
struct Block {
    number: u64,
    hash: B256,
    difficulty: U256,
    receipts_root: B256,
    /// The number of transactions; `None` until the body comes, and if it is skipped.
    transactions: Option<usize>,
}

impl Ere {
    /// Goes on behind the header and the body of a file with one block, whose offsets are given.
    pub(super) fn of_one(
        header: &Header,
        hash: B256,
        transactions: Option<usize>,
        offsets: [u64; 2],
    ) -> Self {
        let mut ere = Self { begun: true, part: BODIES, first: header.number, ..Self::default() };
        ere.blocks.push(Block { transactions, ..Block::of(header, hash) });
        offsets.iter().zip(&mut ere.offsets).for_each(|(offset, of)| of.push(*offset));
        ere
    }

    /// The next block, or `None` at the end. Bodies and receipts of blocks below `first` are not
    /// read.
    pub(super) fn next(
        &mut self,
        input: &mut Input,
        first: u64,
        seen: &mut Seen,
    ) -> Result<Option<FileBlock>, Error> {
        loop {
            let Some(entry) = e2store::next(input)? else {
                self.check_end(input)?;
                return Ok(None);
            };
            if let Some(part) = PARTS.iter().position(|kind| *kind == entry.kind) {
                let block = self.part(input, entry, part, first)?;
                if part == BODIES {
                    let at = self.offsets[BODIES].len() - 1;
                    seen.block(Some(self.blocks[at].number));
                }
                if block.is_some() {
                    return Ok(block);
                }
                continue;
            }
            match entry.kind {
                e2store::VERSION if !self.begun => self.begun = true,
                e2store::ACCUMULATOR if self.accumulator.is_none() && !self.indexed => {
                    self.check_accumulator(input, entry)?;
                }
                e2store::DYNAMIC_BLOCK_INDEX if !self.indexed => self.check_index(input, entry)?,
                e2store::VERSION
                | e2store::COMPRESSED_RECEIPTS
                | e2store::ACCUMULATOR
                | e2store::BLOCK_INDEX
                | e2store::DYNAMIC_BLOCK_INDEX => return Err(out_of_place(input, entry)),
                _ => input.skip(entry.value_bytes)?,
            }
        }
    }

    /// Reads a part of the next block that is without it; a body gives the block.
    fn part(
        &mut self,
        input: &mut Input,
        entry: EntryHeader,
        part: usize,
        first: u64,
    ) -> Result<Option<FileBlock>, Error> {
        if part < self.part || self.accumulator.is_some() || self.indexed {
            return Err(out_of_place(input, entry));
        }
        if part > self.part {
            self.check_part_ends(input, entry)?;
            if self.part == HEADERS && part != BODIES {
                return Err(out_of_place(input, entry));
            }
            self.part = part;
        }
        let at = self.offsets[part].len();
        let most = if part == HEADERS { ARCHIVE_BLOCKS } else { self.blocks.len() };
        if at == most {
            let problem = format!("more than {most} of {}", e2store::name(entry.kind));
            return Err(input.error(entry.offset, problem));
        }
        self.offsets[part].push(entry.offset);
        let read = match entry.kind {
            e2store::COMPRESSED_HEADER => self.header(input, entry).map(|()| None),
            e2store::COMPRESSED_BODY => self.body(input, entry, at, first),
            e2store::COMPRESSED_SLIM_RECEIPTS => self.receipts(input, entry, at).map(|()| None),
            e2store::PROOF => self.proof(input, entry, at).map(|()| None),
            _ => self.total_difficulty(input, entry, at).map(|()| None),
        };
        read.map_err(|error| error.in_block(at as u64))
    }

    /// Checks that each block has the part that was read last.
    fn check_part_ends(&self, input: &Input, entry: EntryHeader) -> Result<(), Error> {
        let (found, expected) = (self.offsets[self.part].len(), self.blocks.len());
        if found != expected {
            let name = e2store::name(PARTS[self.part]);
            let problem = format!(
                "{name} of {found} blocks, where {} comes; the file has {expected} headers",
                e2store::name(entry.kind)
            );
            return Err(input.error(entry.offset, problem));
        }
        Ok(())
    }

    fn header(&mut self, input: &mut Input, entry: EntryHeader) -> Result<(), Error> {
        let (header, hash) = archive::read_header(input, entry, &mut self.buffer)?;
        let problem = match self.blocks.last() {
            None => None,
            Some(last) => Link { number: last.number, hash: last.hash }.check(&header).err(),
        };
        self.headers_bytes += self.buffer.len() as u64;
        let too_long = || format!("headers of over {ERE_HEADERS_BYTES} bytes in one ere file");
        let is_too_long = self.headers_bytes > ERE_HEADERS_BYTES;
        if let Some(problem) = problem.or_else(|| is_too_long.then(too_long)) {
            return Err(input.error(entry.offset, problem));
        }
        if self.blocks.is_empty() {
            self.first = header.number;
        }
        self.blocks.push(Block::of(&header, hash));
        self.headers.push_back(header);
        Ok(())
    }

    fn body(
        &mut self,
        input: &mut Input,
        entry: EntryHeader,
        at: usize,
        first: u64,
    ) -> Result<Option<FileBlock>, Error> {
        let header = self.headers.pop_front().expect("one a block without a body");
        if header.number < first {
            input.skip(entry.value_bytes)?;
            return Ok(None);
        }
        let body = archive::read_body(input, entry, &header, &mut self.buffer)?;
        self.blocks[at].transactions = Some(body.transactions.len());
        let block = archive::sealed(header, body, self.blocks[at].hash)
            .map_err(|problem| input.error(self.offsets[HEADERS][at], problem))?;
        Ok(Some(FileBlock::of(block).at(entry.offset)))
    }

    fn receipts(&mut self, input: &mut Input, entry: EntryHeader, at: usize) -> Result<(), Error> {
        let Block { number, receipts_root: expected, transactions, .. } = self.blocks[at];
        let Some(transactions) = transactions else { return input.skip(entry.value_bytes) };
        e2store::unpacked(input, entry, BLOCK_BYTES, &mut self.buffer)?;
        let wrong = |problem: String| input.error(entry.offset, problem);
        let got = receipts::slim_root(&self.buffer, transactions)
            .map_err(|error| wrong(format!("CompressedSlimReceipts: {error}")))?;
        if got != expected {
            let problem =
                format!("receipts of block {number}: root {got}, the header has {expected}");
            return Err(wrong(problem));
        }
        Ok(())
    }

    /// Computes the accumulator's root by a proof of that kind. Proofs of the other kinds end in
    /// roots of the beacon chain, which no file of execution has.
    fn proof(&mut self, input: &mut Input, entry: EntryHeader, at: usize) -> Result<(), Error> {
        e2store::unpacked(input, entry, ERE_PROOF_BYTES, &mut self.buffer)?;
        let wrong = |problem: String| input.error(entry.offset, problem);
        let (kind, ssz) =
            typed_proof(&self.buffer).map_err(|error| wrong(format!("Proof: {error}")))?;
        if kind != ACCUMULATOR_PROOF {
            return Ok(());
        }
        let Block { number, hash, difficulty, .. } = self.blocks[at];
        let (hashes, rest) = ssz.as_chunks::<32>();
        if hashes.len() != ACCUMULATOR_PROOF_HASHES || !rest.is_empty() {
            return Err(wrong(format!("Proof of block {number}: {} bytes of type 0", ssz.len())));
        }
        if difficulty.is_zero() {
            let problem =
                format!("Proof of block {number}: of type 0, the block is of proof of stake");
            return Err(wrong(problem));
        }
        // Behind the block's hash comes its total difficulty; both are a leaf of the list.
        let mut place = at << 1;
        let root = hashes.iter().fold(hash, |node, beside| {
            let is_left = place.is_multiple_of(2);
            place >>= 1;
            let beside = B256::from(*beside);
            if is_left {
                archive::hash_pair(&node, &beside)
            } else {
                archive::hash_pair(&beside, &node)
            }
        });
        match self.proven.replace(root) {
            Some(before) if before != root => Err(wrong(format!(
                "Proof of block {number}: ends in {root}, that of the block before in {before}"
            ))),
            _ => Ok(()),
        }
    }

    fn total_difficulty(
        &mut self,
        input: &mut Input,
        entry: EntryHeader,
        at: usize,
    ) -> Result<(), Error> {
        let Block { number, hash, difficulty: own, .. } = self.blocks[at];
        let total = U256::from_le_bytes(archive::fixed(input, entry)?);
        self.total
            .check(Difficulty { number, own, total })
            .map_err(|problem| input.error(entry.offset, problem))?;
        if !own.is_zero() {
            self.records.push(archive::record(hash, total));
        }
        Ok(())
    }

    /// The accumulator's root, if the difficulties before the file are known.
    fn computed_accumulator(&self) -> Option<B256> {
        if !self.offsets[DIFFICULTIES].is_empty() {
            return Some(archive::accumulator(&self.records));
        }
        let mut total = U256::ZERO;
        let of_work = self.blocks.iter().filter(|block| !block.difficulty.is_zero());
        let records = of_work.map(|block| {
            total = total.saturating_add(block.difficulty);
            archive::record(block.hash, total)
        });
        (self.first == 0).then(|| archive::accumulator(&records.collect::<Vec<_>>()))
    }

    fn check_accumulator(&mut self, input: &mut Input, entry: EntryHeader) -> Result<(), Error> {
        self.check_part_ends(input, entry)?;
        let got = B256::from(archive::fixed(input, entry)?);
        if let Some(expected) = self.computed_accumulator().filter(|expected| *expected != got) {
            let problem = format!("Accumulator {got}, that of the blocks is {expected}");
            return Err(input.error(entry.offset, problem));
        }
        self.accumulator = Some(got);
        Ok(())
    }

    /// Checks the index. Whether total difficulties or proofs come first in it is not the same in
    /// all tools, so the first block's offsets give the order of the parts.
    fn check_index(&mut self, input: &mut Input, entry: EntryHeader) -> Result<(), Error> {
        self.check_part_ends(input, entry)?;
        if self.part < BODIES {
            return Err(input.error(entry.offset, "CompressedBody expected, the index found"));
        }
        let limit = (ARCHIVE_BLOCKS * PARTS.len()) as u64;
        let index = e2store::parts_index(input, entry, limit)?;
        let there: Vec<&Vec<u64>> =
            self.offsets.iter().filter(|offsets| !offsets.is_empty()).collect();
        let begins = entry.offset as i64;
        let place = |offset: &i64| there.iter().position(|of| of[0] as i64 - begins == *offset);
        let parts = there.len();
        let order: Option<Vec<usize>> = index.offsets.iter().take(parts).map(place).collect();
        let is_whole = |order: &Vec<usize>| (0..parts).all(|part| order.contains(&part));
        let is_ours = order.filter(is_whole).is_some_and(|order| {
            let expected = (0..self.blocks.len())
                .flat_map(|at| order.iter().map(move |part| (at, *part)))
                .map(|(at, part)| there[part][at] as i64 - begins);
            expected.eq(index.offsets.iter().copied())
        });
        if index.first != self.first || index.parts != parts as u64 || !is_ours {
            let (first, count) = (self.first, self.blocks.len());
            let problem = format!(
                "DynamicBlockIndex is not that of the {parts} parts of the {count} blocks from \
                 {first} on"
            );
            return Err(input.error(entry.offset, problem));
        }
        self.indexed = true;
        Ok(())
    }

    fn check_end(&self, input: &Input) -> Result<(), Error> {
        let Some(last) = self.blocks.last().filter(|_| self.indexed) else {
            let problem = "DynamicBlockIndex expected, the file ends";
            return Err(input.error(input.offset(), problem));
        };
        let accumulator = self.accumulator.or_else(|| self.computed_accumulator());
        if let (Some(proven), Some(accumulator)) = (self.proven, accumulator)
            && proven != accumulator
        {
            let problem = format!("the proofs end in {proven}, the accumulator is {accumulator}");
            return Err(input.error(self.offsets[PROOFS][0], problem));
        }
        ArchiveName::new(self.first, &last.hash).check(input, ".ere")
    }
}

impl Block {
    fn of(header: &Header, hash: B256) -> Self {
        Self {
            number: header.number,
            hash,
            difficulty: header.difficulty,
            receipts_root: header.receipts_root,
            transactions: None,
        }
    }
}

/// The type and the SSZ of a proof.
fn typed_proof(mut rlp: &[u8]) -> alloy_rlp::Result<(u8, Bytes)> {
    let mut content = alloy_rlp::Header::decode_bytes(&mut rlp, true)?;
    let proof = (u8::decode(&mut content)?, Bytes::decode(&mut content)?);
    if !rlp.is_empty() || !content.is_empty() {
        return Err(alloy_rlp::Error::UnexpectedLength);
    }
    Ok(proof)
}

fn out_of_place(input: &Input, entry: EntryHeader) -> Error {
    input.error(entry.offset, format!("{} out of place", e2store::name(entry.kind)))
}
