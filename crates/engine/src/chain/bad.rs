//! Floor 1. The newest blocks that are invalid, whole, for those who look into them.

use crate::limits;
use alloy_rlp::Encodable as _;
use execution::SealedBlock;
use std::collections::VecDeque;
use std::sync::Arc;

/// The newest invalid blocks, within a number and a sum of bytes.
#[derive(Debug, Default)]
pub(crate) struct BadBlocks {
    /// With the bytes of each in RLP, the oldest first.
    blocks: VecDeque<(Arc<SealedBlock>, usize)>,
    bytes: usize,
}

impl BadBlocks {
    /// Adds a block, and forgets the oldest ones for which there is no room.
    pub(crate) fn add(&mut self, block: SealedBlock) {
        let bytes = block.length();
        self.bytes += bytes;
        self.blocks.push_back((Arc::new(block), bytes));
        while self.blocks.len() > limits::BAD_BLOCKS || self.bytes > limits::BAD_BLOCKS_BYTES {
            let Some((_, bytes)) = self.blocks.pop_front() else { return };
            self.bytes -= bytes;
        }
    }

    /// All of them, the highest number first.
    pub(crate) fn list(&self) -> Vec<Arc<SealedBlock>> {
        let mut list: Vec<_> = self.blocks.iter().rev().map(|(block, _)| block.clone()).collect();
        list.sort_by_key(|block| std::cmp::Reverse(block.header.number));
        list
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloy_consensus::Header;
    use alloy_primitives::Bytes;
    use execution::Block;

    fn block(number: u64, extra_bytes: usize) -> SealedBlock {
        let extra_data = Bytes::from(vec![7; extra_bytes]);
        SealedBlock::new(Block {
            header: Header { number, extra_data, ..Header::default() },
            ..Block::default()
        })
    }

    #[test]
    fn the_newest_stay_within_number_and_bytes() {
        let mut bad = BadBlocks::default();
        let numbers = |bad: &BadBlocks| -> Vec<_> {
            bad.list().iter().map(|block| block.header.number).collect()
        };
        (0..20).for_each(|number| bad.add(block(number, 0)));
        assert_eq!(numbers(&bad), (4..20).rev().collect::<Vec<_>>());
        bad.add(block(2, limits::BAD_BLOCKS_BYTES / 2));
        bad.add(block(3, limits::BAD_BLOCKS_BYTES / 2));
        assert_eq!(numbers(&bad), [3]);
        bad.add(block(9, limits::BAD_BLOCKS_BYTES));
        assert_eq!(numbers(&bad), [] as [u64; 0]);
        bad.add(block(5, 0));
        bad.add(block(4, 0));
        assert_eq!(numbers(&bad), [5, 4]);
    }
}
