use super::{NodeAddress, RecordError, RecordSink, Records};
use alloy_primitives::Bytes;
use std::sync::{Arc, PoisonError, RwLock};

/// Records in memory, for tests and benchmarks.
///
/// The address of a record is its number, from one, unless they are [spread
/// out](Self::spread_out). A clone is the same store.
///
/// ```
/// use deponent_trie::versioned::{MemoryRecords, RecordSink, Records};
///
/// let mut records = MemoryRecords::default();
/// let address = records.append(&[1, 2, 3]);
/// assert_eq!(records.record(address).unwrap().as_ref(), [1, 2, 3]);
/// ```
#[derive(Clone, Debug)]
pub struct MemoryRecords {
    records: Arc<RwLock<Vec<Bytes>>>,
    /// The number before the first address, and how far one is from the next.
    before: u64,
    apart: u64,
}

impl Default for MemoryRecords {
    fn default() -> Self {
        Self { records: Arc::default(), before: 0, apart: 1 }
    }
}

impl MemoryRecords {
    /// With addresses as large as those of a store of terabytes: each of their six bytes tells some
    /// from others.
    #[must_use]
    pub fn spread_out() -> Self {
        Self { before: 1 << 40, apart: 0x0101_0101, ..Self::default() }
    }

    /// The address that the next record will have.
    pub fn end(&self) -> NodeAddress {
        let records = self.records.read().unwrap_or_else(PoisonError::into_inner);
        self.address(records.len())
    }

    /// The addresses of the records from `first` on.
    pub fn addresses(&self, first: NodeAddress) -> impl Iterator<Item = NodeAddress> + use<> {
        let all = (first.offset()..self.end().offset()).step_by(self.apart as usize);
        all.map(NodeAddress::new)
    }

    /// The address of the first record.
    pub fn start(&self) -> NodeAddress {
        self.address(0)
    }

    fn address(&self, place: usize) -> NodeAddress {
        NodeAddress::new(self.before + (place as u64 + 1) * self.apart)
    }

    fn place(&self, at: NodeAddress) -> Option<usize> {
        let beyond = at.offset().checked_sub(self.before + self.apart)?;
        let is_one = beyond.is_multiple_of(self.apart);
        usize::try_from(beyond / self.apart).ok().filter(|_| is_one)
    }

    /// Replaces the bytes of a record, as a broken disk does.
    ///
    /// # Panics
    /// If there is no record at the address.
    pub fn replace(&self, at: NodeAddress, record: &[u8]) {
        let place = self.place(at).expect("the address of a record");
        let mut records = self.records.write().unwrap_or_else(PoisonError::into_inner);
        records[place] = Bytes::copy_from_slice(record);
    }
}

impl Records for MemoryRecords {
    type Record = Bytes;

    fn record(&self, at: NodeAddress) -> Result<Bytes, RecordError> {
        let records = self.records.read().unwrap_or_else(PoisonError::into_inner);
        let record = self.place(at).and_then(|place| records.get(place));
        record.cloned().ok_or_else(|| RecordError::Store(format!("no record {}", at.offset())))
    }
}

impl RecordSink for MemoryRecords {
    fn append(&mut self, record: &[u8]) -> NodeAddress {
        assert!(record.len() <= Self::MAX_RECORD_BYTES, "a record of {} bytes", record.len());
        let mut records = self.records.write().unwrap_or_else(PoisonError::into_inner);
        records.push(Bytes::copy_from_slice(record));
        self.address(records.len() - 1)
    }
}
