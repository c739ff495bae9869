//! era files: the beacon blocks of 8192 slots, each with its execution payload, and a state.
//!
//! `era := Version | block* | era-state | other-entries* | slot-index(block)? | slot-index(state)`,
//! and a file may hold several in sequence
//! (<https://github.com/status-im/nimbus-eth2/blob/stable/docs/e2store.md>).

use crate::FileBlock;
use crate::beacon::{BeaconBlock, Payload};
use crate::block::Seen;
use crate::e2store::{self, EntryHeader, OffsetIndex};
use crate::error::Error;
use crate::input::Input;
use crate::limits::{BLOCK_BYTES, ERA_SLOTS};
use crate::seal::seal;

/// The state of reading an era file.
#[derive(Default)]
pub(super) struct Era {
    /// Slots of this group's blocks, and the offsets of their entries.
    slots: Vec<(u64, u64)>,
    /// Whether a state has ended the group's blocks.
    state: bool,
    /// Whether the group has its mandatory index, that of the state's single slot.
    indexed: bool,
    buffer: Vec<u8>,
}

impl Era {
    /// The execution block of the next beacon block with one; `None` at the end.
    pub(super) fn next(
        &mut self,
        input: &mut Input,
        first: u64,
        seen: &mut Seen,
    ) -> Result<Option<FileBlock>, Error> {
        loop {
            let Some(entry) = e2store::next(input)? else {
                self.check_end(input)?;
                return Ok(None);
            };
            match entry.kind {
                e2store::VERSION => {
                    if !self.slots.is_empty() || self.state {
                        self.check_end(input)?;
                    }
                    let buffer = std::mem::take(&mut self.buffer);
                    *self = Self { buffer, ..Self::default() };
                    input.skip(entry.value_bytes)?;
                }
                e2store::COMPRESSED_BEACON_BLOCK => {
                    let (number, block) = self.block(input, entry, first)?;
                    seen.block(number);
                    if block.is_some() {
                        return Ok(block);
                    }
                }
                e2store::COMPRESSED_BEACON_STATE => {
                    self.state = true;
                    input.skip(entry.value_bytes)?;
                }
                e2store::SLOT_INDEX => {
                    let slots = e2store::index(input, entry, ERA_SLOTS)?;
                    self.check_index(input, entry, &slots)?;
                }
                _ => input.skip(entry.value_bytes)?,
            }
        }
    }

    /// The number of the execution block in a beacon block, and the block unless it is skipped.
    fn block(
        &mut self,
        input: &mut Input,
        entry: EntryHeader,
        first: u64,
    ) -> Result<(Option<u64>, Option<FileBlock>), Error> {
        let wrong = |input: &Input, problem: String| input.error(entry.offset, problem);
        e2store::unpacked(input, entry, BLOCK_BYTES, &mut self.buffer)?;
        let BeaconBlock { slot, payload } =
            BeaconBlock::read(&self.buffer, first).map_err(|problem| wrong(input, problem))?;
        if self.state {
            return Err(wrong(input, format!("the block of slot {slot} behind the era's state")));
        }
        if let Some((last, _)) = self.slots.last().filter(|(last, _)| *last >= slot) {
            return Err(wrong(input, format!("the block of slot {slot} after that of {last}")));
        }
        if self.slots.len() as u64 == ERA_SLOTS {
            return Err(wrong(input, format!("more than {ERA_SLOTS} blocks in one era")));
        }
        self.slots.push((slot, entry.offset));
        let (execution, beside) = match payload {
            Payload::None => return Ok((None, None)),
            Payload::Below(number) => return Ok((Some(number), None)),
            Payload::Whole(execution, beside) => (*execution, beside),
        };
        let number = execution.block_number();
        let block = seal(execution, beside)
            .map_err(|problem| wrong(input, format!("slot {slot}: {problem}")))?;
        Ok((Some(number), Some(block.at(entry.offset))))
    }

    /// Checks an index: that of a single slot is the state's, others must match the blocks read.
    fn check_index(
        &mut self,
        input: &Input,
        entry: EntryHeader,
        index: &OffsetIndex,
    ) -> Result<(), Error> {
        if let [_] = index.offsets[..] {
            self.indexed = true;
            return Ok(());
        }
        let begins = entry.offset as i64;
        let there = index.offsets.iter().zip(index.first..).filter(|(offset, _)| **offset != 0);
        let there = there.map(|(offset, slot)| (slot, *offset));
        let read = self.slots.iter().map(|(slot, offset)| (*slot, *offset as i64 - begins));
        if !there.eq(read) {
            let (first, blocks) = (index.first, self.slots.len());
            let problem = format!("SlotIndex from {first} on is not that of the {blocks} blocks");
            return Err(input.error(entry.offset, problem));
        }
        Ok(())
    }

    fn check_end(&self, input: &Input) -> Result<(), Error> {
        if self.indexed {
            return Ok(());
        }
        let missing = if self.state { "SlotIndex" } else { "CompressedBeaconState" };
        Err(input.error(input.offset(), format!("{missing} expected, the era ends")))
    }
}
