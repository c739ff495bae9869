//! What a block's reads leave for those of the next one.

use crate::limits::{AHEAD_PATH_BYTES, AHEAD_SLOT_BYTES, PATH_CACHE_BYTES, SLOT_CACHE_BYTES};
use alloy_primitives::map::DefaultHashBuilder;
use alloy_primitives::{Address, B256, U256, keccak256};
use std::fmt;
use std::hash::BuildHasher;
use std::sync::Mutex;
use trie::versioned::{NodeAddress, PathCache, SlotRead};

/// What is remembered of reads, for whatever block comes next: all of it is said of records, which
/// never change, so it holds in every version. The default is nothing, and stays so.
#[derive(Debug, Default)]
pub(crate) struct Remembered {
    pub(crate) paths: PathCache,
    pub(crate) slots: SlotCache,
}

/// Where what is remembered is while no block runs. Who reads takes it, and brings it back.
#[derive(Debug)]
pub(crate) struct Shelf {
    /// For the block.
    first: Mutex<Option<Remembered>>,
    /// For those who run transactions ahead of it, as many as there have been at once.
    others: Mutex<Vec<Remembered>>,
}

/// Who reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reader {
    /// The block's thread.
    Block,
    /// Another one, ahead of it.
    Ahead,
}

impl Shelf {
    pub(crate) fn new() -> Self {
        let first = Remembered::new(PATH_CACHE_BYTES, SLOT_CACHE_BYTES);
        Self { first: Some(first).into(), others: Mutex::default() }
    }

    /// What is there, or, for the block, nothing while somebody else has it.
    pub(crate) fn take(&self, reader: Reader) -> Remembered {
        match reader {
            Reader::Block => self.first.lock().expect(NO_PANIC).take().unwrap_or_default(),
            Reader::Ahead => {
                let other = self.others.lock().expect(NO_PANIC).pop();
                other.unwrap_or_else(|| Remembered::new(AHEAD_PATH_BYTES, AHEAD_SLOT_BYTES))
            }
        }
    }

    /// Brings back what was taken; who had nothing brings nothing.
    pub(crate) fn put(&self, reader: Reader, remembered: Remembered) {
        if remembered.slots.entries.is_empty() {
            return;
        }
        match reader {
            Reader::Block => *self.first.lock().expect(NO_PANIC) = Some(remembered),
            Reader::Ahead => self.others.lock().expect(NO_PANIC).push(remembered),
        }
    }
}

impl Remembered {
    fn new(path_bytes: usize, slot_bytes: usize) -> Self {
        Self { paths: PathCache::new(path_bytes), slots: SlotCache::new(slot_bytes) }
    }
}

const NO_PANIC: &str = "no thread panics while it holds the lock";

/// What slots were read of late: their hashes, and their values with the records they were read
/// past. A read of one that was read before waits for the memory once, and hashes nothing.
#[derive(Default)]
pub(crate) struct SlotCache {
    /// Two lines of the processor's caches each: the limbs of the slot, of its hash and of its
    /// value, and the address of a record. A slot has one place, which is the last one's. They are
    /// numbers for the allocator to give out memory that is zero as it is.
    entries: Vec<[u64; 16]>,
    /// Of contracts and slots: nobody outside can tell which ones share a place.
    hasher: DefaultHashBuilder,
}

/// Where the parts of an entry are.
const SLOT: usize = 0;
const HASH: usize = 4;
const VALUE: usize = 8;
const PAST: usize = 12;

impl SlotCache {
    fn new(bytes: usize) -> Self {
        let entries = vec![[0; 16]; bytes / size_of::<[u64; 16]>()];
        Self { entries, hasher: DefaultHashBuilder::default() }
    }

    /// The hash of a slot, and what an earlier read of it gave, if that is remembered.
    pub(crate) fn get(&self, owner: Address, slot: U256) -> (B256, Option<SlotRead>) {
        let entry = self.entries.get(self.place(owner, slot));
        // No slot has a hash of zero that anybody knows.
        match entry.filter(|entry| number(entry, SLOT) == slot && !number(entry, HASH).is_zero()) {
            Some(entry) => {
                let past = NodeAddress::new(entry[PAST]);
                let read = SlotRead { past, value: number(entry, VALUE) };
                (B256::from(number(entry, HASH)), Some(read))
            }
            None => (keccak256(slot.to_be_bytes::<32>()), None),
        }
    }

    pub(crate) fn put(&mut self, owner: Address, slot: U256, hash: B256, read: SlotRead) {
        let place = self.place(owner, slot);
        if let Some(entry) = self.entries.get_mut(place) {
            entry[SLOT..HASH].copy_from_slice(slot.as_limbs());
            entry[HASH..VALUE].copy_from_slice(U256::from_be_bytes(hash.0).as_limbs());
            entry[VALUE..PAST].copy_from_slice(read.value.as_limbs());
            entry[PAST] = read.past.offset();
        }
    }

    fn place(&self, owner: Address, slot: U256) -> usize {
        let hash = self.hasher.hash_one((owner, slot));
        ((u128::from(hash) * self.entries.len() as u128) >> 64) as usize
    }
}

fn number(entry: &[u64; 16], from: usize) -> U256 {
    let limbs = entry[from..].first_chunk().expect("an entry has four limbs of each number");
    U256::from_limbs(*limbs)
}

impl fmt::Debug for SlotCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SlotCache").field("entries", &self.entries.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};
    use std::collections::HashMap;

    #[test]
    fn who_had_nothing_takes_nothing_away() {
        for is_first_back_first in [true, false] {
            let shelf = Shelf::new();
            let take = || shelf.take(Reader::Block);
            let (first, second) = (take(), take());
            assert!(!first.slots.entries.is_empty() && second.slots.entries.is_empty());
            let back = if is_first_back_first { [first, second] } else { [second, first] };
            back.into_iter().for_each(|remembered| shelf.put(Reader::Block, remembered));
            assert!(!take().slots.entries.is_empty());
        }
    }

    #[test]
    fn what_is_remembered_is_what_was_read_last() {
        let seed = rand::random();
        println!("seed {seed}");
        let rng = &mut StdRng::seed_from_u64(seed);
        for entries_count in [0, 1, 7, 1 << 16] {
            let mut cache = SlotCache::new(128 * entries_count);
            let mut last = HashMap::new();
            let mut found_count = 0;
            for _ in 0..20_000 {
                let owner = Address::with_last_byte(rng.random_range(0..4));
                let slot = U256::from(rng.random_range(0..200u64)) << (64 * rng.random_range(0..4));
                let (hash, found) = cache.get(owner, slot);
                assert_eq!(hash, keccak256(slot.to_be_bytes::<32>()));
                // Another contract's slot of the same number may be found: its record is another.
                let is_own = |read: &SlotRead| read.past.offset() % 4 == u64::from(owner[19]);
                if let Some(found) = found.filter(is_own) {
                    assert_eq!(last.get(&(owner, slot)), Some(&found));
                    found_count += 1;
                }
                let past = rng.random_range(1..1u64 << 40) << 2 | u64::from(owner[19]);
                let value = U256::from_limbs(rng.random());
                let read = SlotRead { past: NodeAddress::new(past), value };
                cache.put(owner, slot, hash, read);
                last.insert((owner, slot), read);
            }
            assert_eq!(found_count > 15_000, entries_count == 1 << 16, "{found_count}");
            assert_eq!(found_count > 0, entries_count > 0);
        }
    }
}
