use super::Database;
use super::types::VerifyReport;
use crate::Error;
use crate::disk::Directory;
use crate::index::{self, Index, StoreState, StoredBlock};
use crate::limits::INDEX_CACHE_BYTES;
use crate::log::FrameLocation;
use alloy_primitives::B256;
use redb::ReadableTable;

/// Collects outcomes, one for each page, frame or entry read.
struct VerifyTally<'a> {
    report: VerifyReport,
    read_bytes: u64,
    /// The bytes that had been read at the last report of progress.
    told_bytes: u64,
    progress: &'a mut dyn FnMut(u64),
}

/// How much is read between two reports of progress, in bytes.
const PROGRESS_EVERY: u64 = 16 << 20;

impl VerifyTally<'_> {
    /// Takes the outcome of one read: its length in bytes, or the damage.
    fn take(&mut self, outcome: Result<u64, Error>) {
        match outcome {
            Ok(bytes) => self.read_bytes += bytes,
            Err(error) => {
                self.report.damaged += 1;
                self.report.first.get_or_insert(error);
            }
        }
        if self.read_bytes - self.told_bytes >= PROGRESS_EVERY {
            self.told_bytes = self.read_bytes;
            (self.progress)(self.read_bytes);
        }
    }
}

impl Database {
    /// Reads all that is persisted from the files, past all caches, and checks every checksum, that
    /// the index is whole, and that all it names is there. `progress` receives the number of bytes
    /// of the logs read so far. Nothing is persisted meanwhile.
    ///
    /// # Errors
    /// When a log cannot be read at all. Damage is no error but part of the report.
    pub fn verify(&self, progress: &mut dyn FnMut(u64)) -> Result<VerifyReport, Error> {
        let state = self.persisted();
        let report = VerifyReport::default();
        let mut tally = VerifyTally { report, read_bytes: 0, told_bytes: 0, progress };
        let mut pages = 0;
        self.nodes.verify(state.logs[0].1, |outcome| {
            pages += 1;
            tally.take(outcome);
        })?;
        let mut frames = 0;
        let logs = [&self.blocks, &self.codes, &self.witnesses];
        for (log, &(_, end)) in logs.into_iter().zip(&state.logs[1..]) {
            log.verify(end, |outcome| {
                frames += 1;
                tally.take(outcome);
            });
        }
        (tally.progress)(tally.read_bytes);
        let index_entries = self.verify_index(&state, &mut tally).unwrap_or_else(|error| {
            tally.take(Err(error));
            0
        });
        Ok(VerifyReport { pages, frames, index_entries, ..tally.report })
    }

    /// Opens the file of the index a second time, past its cache. Returns the number of entries.
    fn verify_index(&self, state: &StoreState, tally: &mut VerifyTally<'_>) -> Result<u64, Error> {
        let veiled = Directory::new(self.directory.veiled());
        let mut index = Index::open(&veiled, INDEX_CACHE_BYTES)?;
        index.check_integrity()?;
        let within = |location: FrameLocation, log: usize| location.address < state.logs[log].1;
        let mut entries = 0;
        let mut check = |what: &str, hash: &[u8], is_right: bool| {
            let wrong =
                || index.contradiction(format!("{what} {} is wrong", B256::from_slice(hash)));
            entries += 1;
            tally.take(if is_right { Ok(0) } else { Err(wrong()) });
        };
        index.read(|transaction| {
            let blocks = transaction.open_table(index::BLOCKS)?;
            for block in blocks.iter()? {
                let (hash, bytes) = block?;
                let is_right = StoredBlock::from_bytes(bytes.value()).is_some_and(|block| {
                    let witness = block.witness.is_none_or(|at| within(at, 3));
                    let touched = block.touched.is_none_or(|at| within(at, 3));
                    witness && touched && within(block.block, 1)
                });
                check("block", hash.value(), is_right);
            }
            for canonical in transaction.open_table(index::CANONICAL)?.iter()? {
                let (number, hash) = canonical?;
                let block = blocks.get(hash.value())?;
                let block = block.and_then(|bytes| StoredBlock::from_bytes(bytes.value()));
                let is_right = block.is_some_and(|block| block.number == number.value())
                    && index::lookup::is_whole(transaction, number.value())?;
                check("canonical block", hash.value(), is_right);
            }
            for code in transaction.open_table(index::CODES)?.iter()? {
                let (hash, location) = code?;
                check("code", hash.value(), within(index::location_from(location.value()), 2));
            }
            Ok(())
        })?;
        Ok(entries)
    }
}
