//! Floor 2. The headers before the first block of a chain that begins with a state: blocks ask for
//! the hashes of their ancestors (`BLOCKHASH`), and witnesses have the headers.

use crate::error::{Error, NO_PANIC};
use crate::limits::BLOCK_HASHES;
use alloy_consensus::Header;
use alloy_primitives::{B256, Bytes};
use alloy_rlp::Decodable;
use state::Database;
use std::sync::RwLock;

/// Headers that follow each other downwards from the parent of the first block.
#[derive(Debug)]
pub(crate) struct Before {
    /// Number and parent of the first block.
    first: (u64, B256),
    /// The nearest first.
    known: RwLock<Vec<(B256, Header)>>,
}

impl Before {
    /// Those that the database keeps, before the first block with this number and parent.
    pub(crate) fn open(database: &Database, first: (u64, B256)) -> Result<Self, Error> {
        let mut known = Vec::new();
        while let Some(wanted) = next(first, &known) {
            let Some(rlp) = database.meta(&key(wanted.0))? else { break };
            let header = Header::decode(&mut rlp.as_ref()).ok();
            let Some(header) = header.filter(|header| is_at(header, wanted)) else {
                return Err(Error::Storage(format!("the header of block {} is damaged", wanted.0)));
            };
            known.push((wanted.1, header));
        }
        Ok(Self { first, known: RwLock::new(known) })
    }

    /// The number of the first block.
    pub(crate) const fn first_number(&self) -> u64 {
        self.first.0
    }

    /// Number and hash of the next one that is not known; `None` where no block of this chain can
    /// ask for more.
    pub(crate) fn wanted(&self) -> Option<(u64, B256)> {
        next(self.first, &self.known.read().expect(NO_PANIC))
    }

    /// Keeps a header, if it is the one that is wanted, in the database, too.
    pub(crate) fn add(&self, database: &Database, header: Header) -> Result<bool, Error> {
        // Several threads may bring the same one.
        let mut known = self.known.write().expect(NO_PANIC);
        let Some(wanted) = next(self.first, &known).filter(|wanted| is_at(&header, *wanted)) else {
            return Ok(false);
        };
        database.set_meta(&key(wanted.0), alloy_rlp::encode(&header).into())?;
        known.push((wanted.1, header));
        Ok(true)
    }

    /// Number and parent of the block with this hash.
    pub(crate) fn link(&self, hash: &B256) -> Option<(u64, B256)> {
        self.header(hash, |header| (header.number, header.parent_hash))
    }

    /// The RLP of the header with this hash.
    pub(crate) fn rlp(&self, hash: &B256) -> Option<Bytes> {
        self.header(hash, |header| alloy_rlp::encode(header).into())
    }

    fn header<T>(&self, hash: &B256, of: impl Fn(&Header) -> T) -> Option<T> {
        let known = self.known.read().expect(NO_PANIC);
        known.iter().find(|(known, _)| known == hash).map(|(_, header)| of(header))
    }
}

/// Number and hash of the header that is wanted behind those that are known.
fn next(first: (u64, B256), known: &[(B256, Header)]) -> Option<(u64, B256)> {
    let (number, parent) =
        known.last().map_or(first, |(_, header)| (header.number, header.parent_hash));
    // The child of the first block reaches so far.
    let lowest = (first.0 + 1).saturating_sub(BLOCK_HASHES);
    number.checked_sub(1).filter(|number| *number >= lowest).map(|number| (number, parent))
}

fn is_at(header: &Header, (number, hash): (u64, B256)) -> bool {
    header.number == number && header.hash_slow() == hash
}

fn key(number: u64) -> String {
    format!("header before the first block: {number}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use state::{MemoryDisk, Options};

    /// Headers of blocks 0 to `last`, each the child of the one before.
    fn headers(last: u64) -> Vec<Header> {
        let mut headers: Vec<Header> = Vec::new();
        for number in 0..=last {
            let parent_hash = headers.last().map_or(B256::ZERO, Header::hash_slow);
            headers.push(Header { number, parent_hash, ..Header::default() });
        }
        headers
    }

    #[test]
    fn headers_are_taken_in_order_and_found_again() {
        let disk = MemoryDisk::new();
        let headers = headers(300);
        let database = Database::open(disk.clone(), &Options::default()).expect("new");
        let first = (300, headers[299].hash_slow());
        let before = Before::open(&database, first).expect("empty");
        let mut other = headers[299].clone();
        other.gas_limit = 1;
        for wrong in [&headers[298], &headers[300], &other] {
            assert!(!before.add(&database, wrong.clone()).expect("refused"));
        }
        for number in (250..300).rev() {
            assert_eq!(before.wanted(), Some((number, headers[number as usize].hash_slow())));
            assert!(before.add(&database, headers[number as usize].clone()).expect("kept"));
        }
        database.persist().expect("written");
        drop(database);
        let database = Database::open(disk, &Options::default()).expect("there");
        let before = Before::open(&database, first).expect("there");
        for number in (45..250).rev() {
            assert!(before.add(&database, headers[number as usize].clone()).expect("kept"));
        }
        // Block 301 reaches back to 45.
        assert_eq!(before.wanted(), None);
        for number in 45..300 {
            let hash = headers[number as usize].hash_slow();
            let parent = headers[number as usize - 1].hash_slow();
            assert_eq!(before.link(&hash), Some((number, parent)));
            assert_eq!(
                before.rlp(&hash),
                Some(alloy_rlp::encode(&headers[number as usize]).into())
            );
        }
        assert_eq!(before.link(&headers[44].hash_slow()), None);
    }

    #[test]
    fn a_chain_that_begins_early_wants_all_that_there_are() {
        let database = Database::open(MemoryDisk::new(), &Options::default()).expect("new");
        let headers = headers(3);
        let before = Before::open(&database, (0, B256::ZERO)).expect("empty");
        assert_eq!(before.wanted(), None);
        let before = Before::open(&database, (3, headers[2].hash_slow())).expect("empty");
        for header in headers[..3].iter().rev() {
            assert!(before.add(&database, header.clone()).expect("kept"));
        }
        assert_eq!(before.wanted(), None);
    }
}
