//! Codes by their hash, for witnesses that lack them.

use std::collections::{BTreeMap, HashMap};

use alloy_primitives::{B256, Bytes, keccak256};

/// The codes that verified blocks read last, so many bytes of them.
#[derive(Debug)]
pub(crate) struct RecentCodes {
    most_bytes: usize,
    bytes: usize,
    codes: HashMap<B256, (u64, Bytes)>,
    /// Their hashes by when they were read last.
    order: BTreeMap<u64, B256>,
    next: u64,
}

impl RecentCodes {
    pub(crate) fn new(most_bytes: usize) -> Self {
        let (codes, order) = Default::default();
        Self { most_bytes, bytes: 0, codes, order, next: 0 }
    }

    /// Keeps the codes that a block has read, and forgets those that were not read for longest.
    pub(crate) fn keep(&mut self, codes: &[Bytes]) {
        for code in codes {
            let hash = keccak256(code);
            if let Some((read, _)) = self.codes.get(&hash) {
                self.order.remove(read);
            } else {
                self.bytes += code.len();
            }
            // A slice of a witness would keep all of it in memory.
            let copy = || Bytes::copy_from_slice(code);
            let (read, _) = self.codes.entry(hash).or_insert_with(|| (0, copy()));
            *read = self.next;
            self.order.insert(self.next, hash);
            self.next += 1;
        }
        while self.bytes > self.most_bytes {
            let (_, oldest) = self.order.pop_first().expect("its bytes are counted");
            let (_, code) = self.codes.remove(&oldest).expect("it is in both");
            self.bytes -= code.len();
        }
    }

    pub(crate) fn has(&self, hash: &B256) -> bool {
        self.codes.contains_key(hash)
    }

    /// All of them.
    pub(crate) fn all(&self) -> impl Iterator<Item = Bytes> {
        self.codes.values().map(|(_, code)| code.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A list in the order of the last reads, the slow twin.
    fn check(most_bytes: usize, reads: &[Vec<u8>]) {
        let (mut codes, mut list) = (RecentCodes::new(most_bytes), Vec::<Bytes>::new());
        for read in reads {
            let code = Bytes::copy_from_slice(read);
            codes.keep(std::slice::from_ref(&code));
            list.retain(|kept| *kept != code);
            list.push(code);
            while list.iter().map(|kept| kept.len()).sum::<usize>() > most_bytes {
                list.remove(0);
            }
            let mut kept: Vec<_> = codes.all().collect();
            let mut expected = list.clone();
            kept.sort();
            expected.sort();
            assert_eq!(kept, expected, "{reads:?}");
            assert!(list.iter().all(|code| codes.has(&keccak256(code))));
        }
    }

    #[test]
    fn the_codes_that_were_read_last_are_kept() {
        let mut state = testing::seed();
        for _ in 0..200 {
            let mut next = || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (state >> 33) as usize
            };
            let reads: Vec<_> = (0..30).map(|_| vec![next() as u8 % 9; next() % 5]).collect();
            check(next() % 20, &reads);
        }
    }
}
