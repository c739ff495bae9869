use std::collections::VecDeque;

use alloy_primitives::B256;

use crate::limits::BECAME_PENDING;

/// The hashes of transactions in the order in which they became pending, the newest of them.
#[derive(Debug, Default)]
pub(crate) struct BecamePending {
    hashes: VecDeque<B256>,
    /// How many came before the first of them.
    forgotten: u64,
}

impl BecamePending {
    pub(crate) fn push(&mut self, hash: B256) {
        if self.hashes.len() == BECAME_PENDING {
            self.hashes.pop_front();
            self.forgotten += 1;
        }
        self.hashes.push_back(hash);
    }

    /// How many there were so far.
    pub(crate) fn count(&self) -> u64 {
        self.forgotten + self.hashes.len() as u64
    }

    /// Those from the `from`-th on, at most so many; `None` where some of them are forgotten.
    pub(crate) fn since(&self, from: u64, most: usize) -> Option<Vec<B256>> {
        let skipped = from.checked_sub(self.forgotten)?;
        let skipped = usize::try_from(skipped).ok()?;
        Some(self.hashes.iter().skip(skipped).take(most).copied().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloy_primitives::U256;

    #[test]
    fn the_newest_are_kept_and_counted_on() {
        let mut all = BecamePending::default();
        let hash = |number: u64| B256::from(U256::from(number));
        let count = BECAME_PENDING as u64 + 3;
        (0..count).for_each(|number| all.push(hash(number)));
        assert_eq!(all.count(), count);
        assert_eq!(all.since(2, 10), None);
        assert_eq!(all.since(3, 2), Some(vec![hash(3), hash(4)]));
        assert_eq!(all.since(count - 1, 10), Some(vec![hash(count - 1)]));
        assert_eq!(all.since(count, 10), Some(Vec::new()));
        assert_eq!(all.since(3, usize::MAX).map(|all| all.len()), Some(BECAME_PENDING));
    }
}
