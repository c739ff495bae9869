use std::path::{Path, PathBuf};

use alloy_primitives::{B256, U256};

use super::record::{read_slot, write_slot};
use super::sort::{RunWriter, remove};
use crate::error::Error;
use crate::input::Input;
use crate::limits::MERGE_BUFFER_BYTES;

/// Slots that are kept in a file until it is known whether they are needed.
#[derive(Debug)]
pub struct SlotSpool {
    path: PathBuf,
    writer: Option<RunWriter>,
}

impl SlotSpool {
    /// Without slots. The file is created with the first one; one that a process has left behind
    /// is removed.
    pub fn new(path: &Path) -> Self {
        std::fs::remove_file(path).ok();
        Self { path: path.into(), writer: None }
    }

    /// Adds slots.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn push(&mut self, slots: &[(B256, U256)]) -> Result<(), Error> {
        let writer = match &mut self.writer {
            Some(writer) => writer,
            none => none.insert(RunWriter::create(self.path.as_path())?),
        };
        for (slot, value) in slots {
            write_slot(&mut writer.buffer, slot, *value);
            writer.flush_full()?;
        }
        Ok(())
    }

    /// Drops all slots.
    ///
    /// # Errors
    /// If the file cannot be removed.
    pub fn clear(&mut self) -> Result<(), Error> {
        self.writer.take().map_or(Ok(()), |_| remove(&self.path))
    }

    /// Passes all slots to `each`, in their order, and drops them.
    ///
    /// # Errors
    /// If they cannot be read, and those of `each`.
    pub fn drain<E: From<Error>>(
        &mut self,
        mut each: impl FnMut(B256, U256) -> Result<(), E>,
    ) -> Result<(), E> {
        let Some(writer) = self.writer.take() else { return Ok(()) };
        writer.finish()?;
        let mut input = Input::open_plain(&self.path, MERGE_BUFFER_BYTES)?;
        while let Some((slot, value)) = read_slot(&mut input)? {
            each(slot, value)?;
        }
        Ok(remove(&self.path)?)
    }
}

impl Drop for SlotSpool {
    fn drop(&mut self) {
        self.clear().ok();
    }
}
