//! Where the time of the newest blocks went.

use std::collections::VecDeque;

use alloy_primitives::B256;
use engine::Timings;

use crate::limits::TIMED_BLOCKS;

/// The times of the newest blocks, the newest last.
#[derive(Debug, Default)]
pub(super) struct BlockTimes(VecDeque<(B256, Timings)>);

impl BlockTimes {
    pub(super) fn add(&mut self, hash: B256, timings: Timings) {
        self.0.retain(|(known, _)| *known != hash);
        if self.0.len() == TIMED_BLOCKS {
            self.0.pop_front();
        }
        self.0.push_back((hash, timings));
    }

    pub(super) fn get(&self, hash: &B256) -> Option<Timings> {
        self.0.iter().rev().find(|(known, _)| known == hash).map(|(_, timings)| *timings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn the_newest_blocks_are_kept_and_of_each_the_newest_times() {
        let mut times = BlockTimes::default();
        let taking = |ms| Timings { root: Duration::from_millis(ms), ..Timings::default() };
        let hash = |number| B256::from(alloy_primitives::U256::from(number));
        for number in 0..=TIMED_BLOCKS as u64 {
            times.add(hash(number), taking(number));
        }
        assert!(times.get(&hash(0)).is_none());
        assert_eq!(times.get(&hash(1)).map(|found| found.root), Some(Duration::from_millis(1)));
        times.add(hash(1), taking(9));
        times.add(hash(1 << 40), taking(1));
        assert_eq!(times.get(&hash(1)).map(|found| found.root), Some(Duration::from_millis(9)));
        assert!(times.get(&hash(2)).is_none());
        assert_eq!(times.0.len(), TIMED_BLOCKS);
    }
}
