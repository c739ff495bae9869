//! The entries on disk, so that they outlast the process.

use std::collections::HashMap;
use std::sync::Arc;

use alloy_primitives::{Address, B256};
use state::{Disk, Error, RecordLog};

use crate::book::Book;
use crate::decode::{Sent, decode, encode};
use crate::entry::Pooled;
use crate::limits::LOG_BYTES;

/// The entries that came and left, in this order, in one file that is written anew when half of it
/// is of no use.
#[derive(Debug)]
pub(crate) struct Log {
    records: RecordLog,
    /// The lengths of the records of entries that are in the pool.
    added: HashMap<B256, u64>,
    added_bytes: u64,
}

/// The first byte of a record. A transaction follows its hash and its sender, and is encoded as in
/// EIP-2718; what has left follows by its hash.
const ADDED: u8 = 0;
const LEFT: u8 = 1;
const TRANSACTION_AT: usize = 1 + 32 + 20;

impl Log {
    /// Opens the log, and gives the entries that an earlier process had, in the order in which they
    /// arrived. Records of an unknown form are passed over.
    pub(crate) fn open(disk: impl Disk + 'static) -> Result<(Self, Vec<Pooled>), Error> {
        let (mut found, mut count) = (HashMap::new(), 0);
        let records = RecordLog::open(disk, |record| match record {
            [ADDED, ..] => {
                if let Some(pooled) = read(record) {
                    found.entry(pooled.hash()).or_insert((count, pooled));
                    count += 1;
                }
            }
            [LEFT, hash @ ..] => _ = B256::try_from(hash).map(|hash| found.remove(&hash)),
            _ => {}
        })?;
        let mut found: Vec<_> = found.into_values().collect();
        found.sort_by_key(|(turn, _)| *turn);
        let found = found.into_iter().map(|(_, pooled)| pooled).collect();
        Ok((Self { records, added: HashMap::new(), added_bytes: 0 }, found))
    }

    /// Notes these changes: whether each hash is in the pool now.
    pub(crate) fn note(&mut self, book: &Book, changed: &[B256]) -> Result<(), Error> {
        for hash in changed {
            match (book.by_hash.get(hash), self.added.contains_key(hash)) {
                (Some(pooled), false) => {
                    let record = record(pooled);
                    self.records.append(&record)?;
                    self.count(*hash, &record);
                }
                (None, true) => {
                    self.records.append(&[&[LEFT][..], hash.as_slice()].concat())?;
                    self.added_bytes -= self.added.remove(hash).unwrap_or_default();
                }
                _ => {}
            }
        }
        let bytes = self.records.bytes();
        if bytes > LOG_BYTES && self.added_bytes < bytes / 2 { self.rewrite(book) } else { Ok(()) }
    }

    /// Writes all entries to a new file, which replaces the others.
    pub(crate) fn rewrite(&mut self, book: &Book) -> Result<(), Error> {
        let entries = book.accounts.values().flat_map(|account| account.entries.values());
        let mut entries: Vec<_> = entries.collect();
        entries.sort_by_key(|entry| entry.turn);
        self.records.rewrite(entries.iter().map(|entry| record(&entry.pooled)))?;
        (self.added, self.added_bytes) = (HashMap::new(), 0);
        entries.iter().for_each(|entry| self.count(entry.pooled.hash(), &record(&entry.pooled)));
        Ok(())
    }

    fn count(&mut self, hash: B256, record: &[u8]) {
        self.added.insert(hash, record.len() as u64);
        self.added_bytes += record.len() as u64;
    }
}

fn record(pooled: &Pooled) -> Vec<u8> {
    let mut record = vec![ADDED];
    record.extend_from_slice(pooled.hash().as_slice());
    record.extend_from_slice(pooled.sender().as_slice());
    let sidecar = pooled.sidecar().map(|sidecar| sidecar.as_ref().clone().into());
    record.extend(encode(pooled.transaction(), sidecar));
    record
}

fn read(record: &[u8]) -> Option<Pooled> {
    let (head, encoded) = record.split_at_checked(TRANSACTION_AT)?;
    let (hash, sender) = (B256::from_slice(&head[1..33]), Address::from_slice(&head[33..]));
    let Sent { transaction, sidecar } = decode(encoded).ok()?;
    let sidecar = sidecar.map(|sidecar| sidecar.into_eip7594().map(Arc::new));
    let sidecar = match sidecar {
        Some(None) => return None,
        sidecar => sidecar.flatten(),
    };
    Some(Pooled::new(transaction, hash, sender).with_sidecar(sidecar))
}
