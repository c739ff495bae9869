use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::Path;
use std::sync::Arc;

use alloy_primitives::{B256, Bytes, KECCAK256_EMPTY, U256};

use super::manifest::{Folder, Manifest, Run};
use super::record::{AccountRecord, damaged, read_slot};
use super::{SortedEntry, StateForm};
use crate::error::{Error, Location};
use crate::input::Input;
use crate::limits::{CODE_TEXT_BYTES, INPUT_BUFFER_BYTES, MERGE_BUFFER_BYTES};

/// Merges the accounts of several sorted runs.
#[derive(Debug)]
pub(super) struct MergedRuns {
    inputs: Vec<Input>,
    /// The next account of each run.
    next: Vec<Option<AccountRecord>>,
    /// Their hashed addresses, the lowest first, with their runs.
    heap: BinaryHeap<Reverse<(B256, usize)>>,
    /// The run of the last account, and how many of its slots are still to come.
    now: Option<(usize, u64)>,
}

impl MergedRuns {
    pub(super) fn open(folder: &Folder, runs: &[Run]) -> Result<Self, Error> {
        let mut merge = Self {
            inputs: Vec::with_capacity(runs.len()),
            next: vec![None; runs.len()],
            heap: BinaryHeap::with_capacity(runs.len()),
            now: None,
        };
        for (index, run) in runs.iter().enumerate() {
            let input = Input::open_plain(&folder.run(run.number), MERGE_BUFFER_BYTES)?;
            if input.file_bytes() != Some(run.bytes) {
                return Err(damaged(&input, run.bytes));
            }
            merge.inputs.push(input);
            merge.read(index)?;
        }
        Ok(merge)
    }

    fn read(&mut self, run: usize) -> Result<(), Error> {
        if let Some(record) = AccountRecord::read(&mut self.inputs[run])? {
            self.heap.push(Reverse((record.hashed_address, run)));
            self.next[run] = Some(record);
        }
        Ok(())
    }

    /// The next account. The slots of the previous one must have been read.
    pub(super) fn next(&mut self) -> Result<Option<AccountRecord>, Error> {
        if let Some((run, left)) = self.now.take() {
            assert_eq!(left, 0, "all slots come before the next account");
            self.read(run)?;
        }
        let Some(Reverse((_, run))) = self.heap.pop() else { return Ok(None) };
        let record = self.next[run].take().expect("what is on the heap was read");
        self.now = Some((run, record.slots));
        Ok(Some(record))
    }

    fn damaged(&self) -> Error {
        let run = self.now.map_or(0, |(run, _)| run);
        let input = &self.inputs[run];
        damaged(input, input.offset())
    }

    /// The next slot of the last account, which has their number.
    pub(super) fn slot(&mut self) -> Result<(B256, U256), Error> {
        let (run, left) = self.now.as_mut().expect("there is an account");
        *left -= 1;
        let input = &mut self.inputs[*run];
        read_slot(input)?.ok_or_else(|| damaged(input, input.offset()))
    }
}

/// Merges the slots of one account from several files.
#[derive(Debug)]
pub(super) struct MergedSlots {
    inputs: Vec<Input>,
    heap: BinaryHeap<Reverse<(B256, usize, U256)>>,
    last: Option<B256>,
}

impl MergedSlots {
    pub(super) fn open(folder: &Folder, parts: &[u32]) -> Result<Self, Error> {
        let open = |part: &u32| Input::open_plain(&folder.part(*part), MERGE_BUFFER_BYTES);
        let inputs = parts.iter().map(open).collect::<Result<_, _>>()?;
        let mut parts = Self { inputs, heap: BinaryHeap::new(), last: None };
        for index in 0..parts.inputs.len() {
            parts.read(index)?;
        }
        Ok(parts)
    }

    fn read(&mut self, index: usize) -> Result<(), Error> {
        if let Some((slot, value)) = read_slot(&mut self.inputs[index])? {
            self.heap.push(Reverse((slot, index, value)));
        }
        Ok(())
    }

    /// The next slot of the account; `error` makes the error about it.
    pub(super) fn next(
        &mut self,
        error: impl FnOnce(String) -> Error,
    ) -> Result<Option<(B256, U256)>, Error> {
        let Some(Reverse((slot, index, value))) = self.heap.pop() else { return Ok(None) };
        if self.last == Some(slot) {
            let problem = format!("the slot that hashes to {slot} twice in one account");
            return Err(error(problem));
        }
        self.last = Some(slot);
        self.read(index)?;
        Ok(Some((slot, value)))
    }
}

/// All accounts and slots of a [`super::SortedState`], in the order of the trie. The iterator ends
/// after the first error.
#[derive(Debug)]
pub struct SortedEntries {
    folder: Folder,
    file: Arc<Path>,
    form: StateForm,
    runs: MergedRuns,
    /// The slots of the last account that follow it, and those in files of their own.
    slots_left: u64,
    parts: Option<MergedSlots>,
    /// The hashed address and the position of the last account.
    last: Option<(B256, u64)>,
    accounts_left: u64,
    ended: bool,
}

impl SortedEntries {
    pub(super) fn open(folder: &Folder, manifest: &Manifest) -> Result<Self, Error> {
        let source = manifest.source.as_ref().map(|source| source.path());
        Ok(Self {
            folder: folder.clone(),
            file: source.unwrap_or(Path::new("-")).into(),
            form: manifest.form,
            runs: MergedRuns::open(folder, &manifest.runs)?,
            slots_left: 0,
            parts: None,
            last: None,
            accounts_left: manifest.runs.iter().map(|run| run.accounts).sum(),
            ended: false,
        })
    }

    /// The number of accounts still to come.
    pub const fn accounts_left(&self) -> u64 {
        self.accounts_left
    }

    fn read(&mut self) -> Result<Option<SortedEntry>, Error> {
        while let Some(parts) = &mut self.parts {
            let at = self.last.map_or(0, |(_, at)| at);
            let (file, place) = (&self.file, place(self.form, at));
            match parts.next(|problem| Error::content(file, place, problem))? {
                Some((_, value)) if value.is_zero() => {}
                Some((hashed_slot, value)) => {
                    return Ok(Some(SortedEntry::Slot { hashed_slot, value }));
                }
                None => self.parts = None,
            }
        }
        if self.slots_left > 0 {
            self.slots_left -= 1;
            let (hashed_slot, value) = self.runs.slot()?;
            return Ok(Some(SortedEntry::Slot { hashed_slot, value }));
        }
        let Some(record) = self.runs.next()? else {
            return match self.accounts_left {
                0 => Ok(None),
                _ => Err(self.runs.damaged()),
            };
        };
        self.check_order(&record)?;
        if !record.parts.is_empty() {
            self.parts = Some(MergedSlots::open(&self.folder, &record.parts)?);
        }
        self.slots_left = record.slots;
        self.accounts_left =
            self.accounts_left.checked_sub(1).ok_or_else(|| self.runs.damaged())?;
        Ok(Some(SortedEntry::Account {
            hashed_address: record.hashed_address,
            nonce: record.nonce,
            balance: record.balance,
            code_hash: record.code_hash.unwrap_or(KECCAK256_EMPTY),
            storage_root: record.storage_root,
        }))
    }

    fn check_order(&mut self, record: &AccountRecord) -> Result<(), Error> {
        let AccountRecord { hashed_address, place: at, .. } = *record;
        if let Some((last, before)) = self.last
            && last == hashed_address
        {
            let (first, second) = (before.min(at), before.max(at));
            let what = match self.form {
                StateForm::Lines => "on line",
                StateForm::Object => "behind byte",
            };
            let problem = format!("the account that hashes to {last} is {what} {first} already");
            return Err(Error::content(&self.file, place(self.form, second), problem));
        }
        self.last = Some((hashed_address, at));
        Ok(())
    }
}

/// The position of an account in the source.
fn place(form: StateForm, at: u64) -> Location {
    match form {
        StateForm::Lines => on_line(at),
        StateForm::Object => Location { offset: Some(at), ..Location::default() },
    }
}

pub(super) fn on_line(line: u64) -> Location {
    Location { line: Some(line), ..Location::default() }
}

impl Iterator for SortedEntries {
    type Item = Result<SortedEntry, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let next = self.read().transpose();
        self.ended = !matches!(next, Some(Ok(_)));
        next
    }
}

/// The codes of a [`super::SortedState`]. The iterator ends after the first error.
#[derive(Debug)]
pub struct SortedCodes {
    input: Input,
    left_bytes: u64,
}

impl SortedCodes {
    pub(super) fn open(folder: &Folder, manifest: &Manifest) -> Result<Self, Error> {
        let input = Input::open_plain(&folder.codes(), INPUT_BUFFER_BYTES)?;
        if input.file_bytes() != Some(manifest.codes_bytes) {
            return Err(damaged(&input, manifest.codes_bytes));
        }
        Ok(Self { input, left_bytes: manifest.codes_bytes })
    }

    fn read(&mut self) -> Result<(B256, Bytes), Error> {
        let start = self.input.offset();
        let hash = B256::from(self.input.array()?);
        let bytes = u32::from_le_bytes(self.input.array()?);
        if bytes as usize > CODE_TEXT_BYTES {
            return Err(damaged(&self.input, start));
        }
        let mut code = Vec::with_capacity(bytes as usize);
        self.input.read_into(&mut code, u64::from(bytes))?;
        self.left_bytes = self.left_bytes.saturating_sub(36 + u64::from(bytes));
        Ok((hash, code.into()))
    }
}

impl Iterator for SortedCodes {
    type Item = Result<(B256, Bytes), Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.left_bytes == 0 {
            return None;
        }
        let next = self.read();
        if next.is_err() {
            self.left_bytes = 0;
        }
        Some(next)
    }
}
