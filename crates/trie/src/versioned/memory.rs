use super::{NodeAddress, RecordError, RecordSink, Records};
use alloy_primitives::Bytes;
use std::sync::{Arc, PoisonError, RwLock};

/// Records in memory: for tests, benchmarks, and whoever wants no disk.
///
/// The address of a record is its number, from one. A clone is the same store.
///
/// ```
/// use trie::versioned::{MemoryRecords, RecordSink, Records};
///
/// let mut records = MemoryRecords::default();
/// let address = records.append(&[1, 2, 3]);
/// assert_eq!(records.record(address).unwrap().as_ref(), [1, 2, 3]);
/// ```
#[derive(Clone, Debug, Default)]
pub struct MemoryRecords(Arc<RwLock<Vec<Bytes>>>);

impl MemoryRecords {
    /// The address that the next record will have.
    pub fn end(&self) -> NodeAddress {
        let records = self.0.read().unwrap_or_else(PoisonError::into_inner);
        NodeAddress::new(records.len() as u64 + 1)
    }

    /// Puts other bytes in the place of a record, as a broken disk does.
    ///
    /// # Panics
    /// If there is no record at the address.
    pub fn replace(&self, at: NodeAddress, record: &[u8]) {
        let mut records = self.0.write().unwrap_or_else(PoisonError::into_inner);
        records[at.offset() as usize - 1] = Bytes::copy_from_slice(record);
    }
}

impl Records for MemoryRecords {
    type Record = Bytes;

    fn record(&self, at: NodeAddress) -> Result<Bytes, RecordError> {
        let records = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let index = at.offset().checked_sub(1).and_then(|index| usize::try_from(index).ok());
        let record = index.and_then(|index| records.get(index));
        record.cloned().ok_or_else(|| RecordError(format!("no record {}", at.offset())))
    }
}

impl RecordSink for MemoryRecords {
    fn append(&mut self, record: &[u8]) -> NodeAddress {
        assert!(record.len() <= Self::MAX_RECORD_BYTES, "a record of {} bytes", record.len());
        let mut records = self.0.write().unwrap_or_else(PoisonError::into_inner);
        records.push(Bytes::copy_from_slice(record));
        NodeAddress::new(records.len() as u64)
    }
}
