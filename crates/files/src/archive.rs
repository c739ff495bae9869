//! The parts that era1 and ere files share: headers, bodies, difficulties, accumulator, names.

use std::path::Path;

use alloy_consensus::{Block, BlockBody, Header, proofs};
use alloy_primitives::{B256, U256, hex, keccak256};
use alloy_rlp::Decodable;
use execution::{SealedBlock, Transaction};
use sha2::{Digest, Sha256};

use crate::e2store::{self, EntryHeader};
use crate::error::{Error, Location};
use crate::input::Input;
use crate::limits::{ARCHIVE_BLOCKS, ARCHIVE_HEADER_BYTES, BLOCK_BYTES};
use crate::receipts;

/// Reads a header, and hashes its RLP.
pub(super) fn read_header(
    input: &mut Input,
    entry: EntryHeader,
    buffer: &mut Vec<u8>,
) -> Result<(Header, B256), Error> {
    e2store::unpacked(input, entry, ARCHIVE_HEADER_BYTES, buffer)?;
    let header = decode(buffer)
        .map_err(|error| input.error(entry.offset, format!("CompressedHeader: {error}")))?;
    Ok((header, keccak256(buffer)))
}

/// Reads the body of the block with this header, and checks its roots.
pub(super) fn read_body(
    input: &mut Input,
    entry: EntryHeader,
    header: &Header,
    buffer: &mut Vec<u8>,
) -> Result<BlockBody<Transaction>, Error> {
    e2store::unpacked(input, entry, BLOCK_BYTES, buffer)?;
    let body: BlockBody<Transaction> = decode(buffer)
        .map_err(|error| input.error(entry.offset, format!("CompressedBody: {error}")))?;
    check_roots(header, &body).map_err(|problem| {
        let problem = format!("the body of block {}: {problem}", header.number);
        input.error(entry.offset, problem)
    })?;
    Ok(body)
}

/// The block, whose header must have the hash of the RLP in the file.
pub(super) fn sealed(
    header: Header,
    body: BlockBody<Transaction>,
    hash: B256,
) -> Result<SealedBlock, String> {
    let block = SealedBlock::new(Block { header, body });
    match block.hash() == hash {
        true => Ok(block),
        false => Err(format!("the header's RLP hashes to {hash}, read again to another")),
    }
}

/// A block of a file, on which the next one stands.
#[derive(Debug, Clone, Copy)]
pub(super) struct Link {
    pub(super) number: u64,
    pub(super) hash: B256,
}

impl Link {
    /// Checks that `header` is that of the block after this one.
    pub(super) fn check(&self, header: &Header) -> Result<(), String> {
        let Self { number: before, hash } = *self;
        let (number, parent) = (header.number, header.parent_hash);
        match (before.checked_add(1), hash) == (Some(number), parent) {
            true => Ok(()),
            false => Err(format!("block {number} on {parent} after block {before}, {hash}")),
        }
    }
}

/// A block's difficulty, and the total that a file has for it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Difficulty {
    pub(super) number: u64,
    pub(super) own: U256,
    pub(super) total: U256,
}

/// The total difficulty of the last block.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Total(Option<U256>);

impl Total {
    /// Checks the total of the next block.
    pub(super) fn check(&mut self, next: Difficulty) -> Result<(), String> {
        let Difficulty { number, own, total } = next;
        let before = match self.0 {
            None if number == 0 => Some(U256::ZERO),
            // `None`: the file does not hold the blocks before.
            before => before,
        };
        let expected = match before {
            Some(before) => before.checked_add(own),
            None => Some(total).filter(|total| *total >= own),
        };
        if expected != Some(total) {
            let before = before.unwrap_or_default();
            return Err(format!(
                "total difficulty {total} of block {number}, whose own is {own} after {before}"
            ));
        }
        self.0 = Some(total);
        Ok(())
    }
}

/// The last block of a file that is written.
#[derive(Debug, Clone, Copy)]
pub(super) struct Written {
    pub(super) link: Link,
    pub(super) is_of_work: bool,
    total: U256,
}

impl Written {
    /// That of a block with the total difficulty including it.
    pub(super) fn of(block: &SealedBlock, total: U256) -> Self {
        let link = Link { number: block.header.number, hash: block.hash() };
        Self { link, is_of_work: !block.header.difficulty.is_zero(), total }
    }

    /// Checks that a block with this total difficulty is the one after it.
    pub(super) fn check(&self, header: &Header, total: U256) -> Result<(), String> {
        let Self { link, total: before, .. } = self;
        link.check(header)
            .map_err(|_| format!("not the one after block {}, {}", link.number, link.hash))?;
        match before.checked_add(header.difficulty) == Some(total) {
            true => Ok(()),
            false => Err(format!("total difficulty {total} after {before}")),
        }
    }
}

/// Checks that a file of a format may begin with a block.
pub(super) fn check_first(format: &str, header: &Header) -> Result<(), String> {
    match header.number.is_multiple_of(ARCHIVE_BLOCKS as u64) {
        true => Ok(()),
        false => Err(format!("an {format} file begins at a multiple of {ARCHIVE_BLOCKS}")),
    }
}

/// Reads a value of 32 bytes that is not compressed.
pub(super) fn fixed(input: &mut Input, entry: EntryHeader) -> Result<[u8; 32], Error> {
    if entry.value_bytes != 32 {
        let (kind, bytes) = (e2store::name(entry.kind), entry.value_bytes);
        return Err(input.error(entry.offset, format!("{kind} of {bytes} bytes instead of 32")));
    }
    input.array()
}

pub(super) fn decode<T: Decodable>(mut rlp: &[u8]) -> alloy_rlp::Result<T> {
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

/// Checks the RLP of the list of receipts of a block that is to be written.
pub(super) fn check_receipts(block: &SealedBlock, receipts_rlp: &[u8]) -> Result<(), String> {
    let (header, most) = (&block.header, block.body.transactions.len());
    let root =
        receipts::root(receipts_rlp, most).map_err(|error| format!("its receipts: {error}"))?;
    match root == header.receipts_root {
        true => Ok(()),
        false => Err(format!("receipts root {root}, the header has {}", header.receipts_root)),
    }
}

/// A leaf of the accumulator: the root of `HeaderRecord { block_hash, total_difficulty }`.
pub(super) fn record(hash: B256, total_difficulty: U256) -> B256 {
    hash_pair(&hash, &total_difficulty.to_le_bytes().into())
}

/// `hash_tree_root` of the `List[HeaderRecord, 8192]` with these leaves.
pub(super) fn accumulator(records: &[B256]) -> B256 {
    let mut layer = records.to_vec();
    let mut zero = B256::ZERO;
    for _ in 0..ARCHIVE_BLOCKS.trailing_zeros() {
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

/// The root of an SSZ tree with this leaf, or with two below it: SHA-256 of both.
pub(super) fn hash_pair(left: &B256, right: &B256) -> B256 {
    B256::from_slice(&Sha256::new().chain_update(left).chain_update(right).finalize())
}

/// The parts of a name such as `mainnet-00000-5ec1ffb8.era1` or
/// `mainnet-00000-4bb7de2e-noproofs.ere`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ArchiveName {
    pub(super) epoch: u64,
    /// The first four bytes of the accumulator's root, or of the last block's hash, in hex.
    hash: String,
}

impl ArchiveName {
    /// That of the file that begins with block `first`.
    pub(super) fn new(first: u64, hash: &B256) -> Self {
        Self { epoch: first / ARCHIVE_BLOCKS as u64, hash: hex::encode(&hash[..4]) }
    }

    /// `None` if the name does not follow the convention. `ending` is `.era1` or `.ere`.
    pub(super) fn of(path: &Path, ending: &str) -> Option<Self> {
        let name = path.file_name()?.to_str()?;
        let stem = name.split_once(ending).map(|(stem, _)| stem)?;
        let parts: Vec<&str> = stem.split('-').collect();
        let is_hash =
            |part: &str| part.len() == 8 && part.bytes().all(|digit| digit.is_ascii_hexdigit());
        // The network's name comes first, and profiles last.
        let at = parts.iter().rposition(|part| is_hash(part)).filter(|at| *at >= 2)?;
        let is_whole = ending == ".ere" || at + 1 == parts.len();
        let epoch = parts[at - 1].parse().ok().filter(|_| parts[at - 1].len() >= 5)?;
        is_whole.then(|| Self { epoch, hash: parts[at].to_lowercase() })
    }

    /// Checks that the file has this name, if its name follows the convention.
    pub(super) fn check(&self, input: &Input, ending: &str) -> Result<(), Error> {
        match Self::of(input.file(), ending) {
            Some(name) if name != *self => {
                let problem =
                    format!("the content is that of a file {}{ending}", self.stem("NETWORK"));
                Err(Error::content(input.file(), Location::default(), problem))
            }
            _ => Ok(()),
        }
    }

    /// The name without its ending.
    pub(super) fn stem(&self, network: &str) -> String {
        let Self { epoch, hash } = self;
        format!("{network}-{epoch:05}-{hash}")
    }
}
