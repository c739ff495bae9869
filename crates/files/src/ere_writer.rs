use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use alloy_primitives::{B256, U256};
use execution::SealedBlock;

use crate::archive::{self, ArchiveName, Written};
use crate::e2store;
use crate::error::Error;
use crate::limits::{ARCHIVE_BLOCKS, WRITE_BYTES};
use crate::output::Output;
use crate::receipts;

/// Writes one ere file: up to 8192 blocks, the first a multiple of that.
///
/// The parts of blocks stand in the file one kind after the other, so bodies and receipts wait in
/// files without a name in the same directory: memory is that of one block.
#[derive(Debug)]
pub struct EreWriter {
    directory: PathBuf,
    network: String,
    /// Version and headers.
    output: Output,
    bodies: Spool,
    receipts: Spool,
    entry: Vec<u8>,
    /// The offsets of header, body and receipts of each block; those of the latter two in their
    /// spools.
    offsets: Vec<[u64; 3]>,
    /// The total difficulties, if the first block is of proof of work.
    totals: Vec<U256>,
    /// The accumulator's leaves: blocks of proof of work.
    records: Vec<B256>,
    last: Option<Written>,
}

impl EreWriter {
    /// Begins a file in `directory`. Its name depends on its content.
    ///
    /// # Errors
    /// If no file can be created there.
    pub fn create(directory: &Path, network: &str) -> Result<Self, Error> {
        let mut output = Output::create(&directory.join(format!("{network}-unfinished.ere")))?;
        output.write(&e2store::MAGIC)?;
        let spool =
            |part: &str| Spool::create(&directory.join(format!("{network}-unfinished.ere.{part}")));
        Ok(Self {
            directory: directory.into(),
            network: network.into(),
            output,
            bodies: spool("bodies")?,
            receipts: spool("receipts")?,
            entry: Vec::new(),
            offsets: Vec::new(),
            totals: Vec::new(),
            records: Vec::new(),
            last: None,
        })
    }

    /// The number of the first block; `None` before one is written.
    pub fn first_number(&self) -> Option<u64> {
        self.last.map(|last| last.link.number + 1 - self.offsets.len() as u64)
    }

    /// Whether the file has 8192 blocks, the most that the format allows.
    pub const fn is_full(&self) -> bool {
        self.offsets.len() == ARCHIVE_BLOCKS
    }

    /// Adds a block with the RLP of the list of its receipts and the total difficulty including it,
    /// which after the merge stays what it was.
    ///
    /// # Errors
    /// If the block is not the next one, has other receipts, or the file is full; and if writing
    /// fails.
    pub fn write(
        &mut self,
        block: &SealedBlock,
        receipts_rlp: &[u8],
        total_difficulty: U256,
    ) -> Result<(), Error> {
        let header = &block.header;
        let refuse = |output: &Output, problem: String| {
            output.refuse(format!("block {}: {problem}", header.number))
        };
        self.check(block, receipts_rlp, total_difficulty)
            .map_err(|problem| refuse(&self.output, problem))?;
        let slim = receipts::slim(receipts_rlp, block.body.transactions.len())
            .map_err(|error| refuse(&self.output, format!("its receipts: {error}")))?;
        let written = Written::of(block, total_difficulty);
        self.offsets.push([self.output.bytes(), self.bodies.bytes, self.receipts.bytes]);
        self.pack(e2store::COMPRESSED_HEADER, &alloy_rlp::encode(header));
        self.output.write(&self.entry)?;
        self.pack(e2store::COMPRESSED_BODY, &alloy_rlp::encode(&block.body));
        self.bodies.write(&self.entry)?;
        self.pack(e2store::COMPRESSED_SLIM_RECEIPTS, &slim);
        self.receipts.write(&self.entry)?;
        if written.is_of_work {
            self.records.push(archive::record(written.link.hash, total_difficulty));
        }
        if !self.records.is_empty() {
            self.totals.push(total_difficulty);
        }
        self.last = Some(written);
        Ok(())
    }

    fn pack(&mut self, kind: u16, value: &[u8]) {
        self.entry.clear();
        e2store::write_packed(&mut self.entry, kind, value);
    }

    fn check(&self, block: &SealedBlock, receipts: &[u8], total: U256) -> Result<(), String> {
        let header = &block.header;
        if self.is_full() {
            return Err(format!("the file has {ARCHIVE_BLOCKS} blocks already"));
        }
        match &self.last {
            Some(last) => last.check(header, total)?,
            None => archive::check_first("ere", header)?,
        }
        if !header.difficulty.is_zero() && self.last.is_some_and(|last| !last.is_of_work) {
            return Err("of proof of work after one of proof of stake".into());
        }
        archive::check_receipts(block, receipts)
    }

    /// Completes the file and names it `NETWORK-ERA-HASH-noproofs.ere`. Returns its path.
    ///
    /// # Errors
    /// If no block was written; and if writing fails.
    pub fn finish(mut self) -> Result<PathBuf, Error> {
        let (Some(first), Some(last)) = (self.first_number(), self.last) else {
            return Err(self.output.refuse("an ere file needs a block".into()));
        };
        let bodies_begin = self.output.bytes();
        self.bodies.move_to(&mut self.output)?;
        let receipts_begin = self.output.bytes();
        self.receipts.move_to(&mut self.output)?;
        let totals_begin = self.output.bytes();
        self.entry.clear();
        for total in &self.totals {
            e2store::write(&mut self.entry, e2store::TOTAL_DIFFICULTY, &total.to_le_bytes::<32>());
        }
        let total_bytes = self.entry.len().checked_div(self.totals.len()).unwrap_or(0);
        if !self.records.is_empty() {
            let root = archive::accumulator(&self.records);
            e2store::write(&mut self.entry, e2store::ACCUMULATOR, &root[..]);
        }
        let begins = totals_begin + self.entry.len() as u64;
        let mut offsets = Vec::new();
        for (at, [header, body, receipts]) in self.offsets.iter().enumerate() {
            offsets.extend([*header, bodies_begin + body, receipts_begin + receipts]);
            if !self.totals.is_empty() {
                offsets.push(totals_begin + (at * total_bytes) as u64);
            }
        }
        let count = self.offsets.len() as u64;
        let counts = [offsets.len() as u64 / count, count];
        let index = e2store::index_value(first, &offsets, begins, &counts);
        e2store::write(&mut self.entry, e2store::DYNAMIC_BLOCK_INDEX, &index);
        self.output.write(&self.entry)?;
        let name = ArchiveName::new(first, &last.link.hash).stem(&self.network);
        let path = self.directory.join(format!("{name}-noproofs.ere"));
        self.output.finish_as(&path)?;
        Ok(path)
    }
}

/// Bytes that wait on the disk, in a file without a name: nothing of it stays.
#[derive(Debug)]
struct Spool {
    path: Arc<Path>,
    file: BufWriter<File>,
    bytes: u64,
}

impl Spool {
    /// Creates a file at `path`, and takes its name away.
    fn create(path: &Path) -> Result<Self, Error> {
        let create = || {
            match fs::remove_file(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            let file = File::options().read(true).write(true).create_new(true).open(path)?;
            fs::remove_file(path)?;
            Ok(file)
        };
        let path: Arc<Path> = path.into();
        let file = create().map_err(|error| Error::io(&path, error))?;
        Ok(Self { path, file: BufWriter::with_capacity(WRITE_BYTES, file), bytes: 0 })
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.bytes += bytes.len() as u64;
        self.file.write_all(bytes).map_err(|error| Error::io(&self.path, error))
    }

    /// Appends all of it to `output`.
    fn move_to(&mut self, output: &mut Output) -> Result<(), Error> {
        let mut begin = || {
            self.file.flush()?;
            self.file.seek(SeekFrom::Start(0))
        };
        begin().map_err(|error| Error::io(&self.path, error))?;
        let mut buffer = vec![0; WRITE_BYTES];
        loop {
            let read = self.file.get_mut().read(&mut buffer);
            match read.map_err(|error| Error::io(&self.path, error))? {
                0 => return Ok(()),
                read => output.write(&buffer[..read])?,
            }
        }
    }
}
