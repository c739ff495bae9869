use alloy_primitives::Address;
use execution::{Candidates, Transaction, TransactionSource};

use crate::best::Best;
use crate::pool::Pool;

/// The candidates of a block under construction.
#[derive(Debug)]
struct BlockCandidates {
    best: Best,
    last: Address,
}

impl Candidates for BlockCandidates {
    fn next(&mut self) -> Option<(Transaction, Address)> {
        let next = self.best.next()?;
        self.last = next.sender();
        Some((next.transaction().clone(), self.last))
    }

    fn skip_sender(&mut self) {
        self.best.skip_sender(self.last);
    }
}

impl TransactionSource for Pool {
    fn candidates(&self, base_fee: u64) -> Box<dyn Candidates + '_> {
        Box::new(BlockCandidates { best: self.best(base_fee), last: Address::ZERO })
    }

    fn arrivals(&self) -> u64 {
        self.arrived()
    }
}
