//! Floor 2. The blocks that have run, or run, and are not sealed yet.

use crate::error::NO_PANIC;
use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

/// Blocks that are validated or wait to be sealed: each needs its parent's state until then, and
/// holds what it read.
#[derive(Debug, Default)]
pub(crate) struct Unsealed {
    blocks: Mutex<UnsealedBlocks>,
    one_sealed: Condvar,
}

#[derive(Debug, Default)]
struct UnsealedBlocks {
    /// How many have which number.
    numbers: BTreeMap<u64, usize>,
    bytes: u64,
}

impl Unsealed {
    /// Notes a block with this number, until what this gives is dropped.
    pub(crate) fn begin(self: &Arc<Self>, number: u64) -> UnsealedBlock {
        *self.blocks().numbers.entry(number).or_default() += 1;
        UnsealedBlock { unsealed: self.clone(), number, bytes: 0 }
    }

    /// The lowest number that one has.
    pub(crate) fn lowest(&self) -> Option<u64> {
        self.blocks().numbers.first_key_value().map(|(number, _)| *number)
    }

    /// Whether they hold more than `most_bytes`.
    pub(crate) fn are_above(&self, most_bytes: u64) -> bool {
        self.blocks().bytes > most_bytes
    }

    /// Waits until they hold `most_bytes` at most.
    pub(crate) fn wait(&self, most_bytes: u64) {
        let is_above = |blocks: &mut UnsealedBlocks| blocks.bytes > most_bytes;
        drop(self.one_sealed.wait_while(self.blocks(), is_above).expect(NO_PANIC));
    }

    fn blocks(&self) -> MutexGuard<'_, UnsealedBlocks> {
        self.blocks.lock().expect(NO_PANIC)
    }
}

/// One of the [`Unsealed`].
#[derive(Debug)]
pub(crate) struct UnsealedBlock {
    unsealed: Arc<Unsealed>,
    number: u64,
    bytes: u64,
}

impl UnsealedBlock {
    /// Notes how much it holds.
    pub(crate) fn holds(&mut self, bytes: u64) {
        self.bytes += bytes;
        self.unsealed.blocks().bytes += bytes;
    }
}

impl Drop for UnsealedBlock {
    fn drop(&mut self) {
        let mut blocks = self.unsealed.blocks();
        blocks.bytes -= self.bytes;
        if let Some(count) = blocks.numbers.get_mut(&self.number) {
            *count -= 1;
            if *count == 0 {
                blocks.numbers.remove(&self.number);
            }
        }
        self.unsealed.one_sealed.notify_all();
    }
}
