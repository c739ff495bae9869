//! The journal: valid blocks and fork choices, written before they are answered and kept until the
//! blocks are persisted.
//!
//! A record is one write without a sync, so it survives the process, and with
//! [`JournalMode::Sync`] the machine. Files are appended to one after another. A file is removed
//! when all its blocks are persisted and a later one has begun, which repeats the last fork choice.
//! A process never appends to a file of an earlier one, so a torn record is the end of its file.

use crate::Error;
use crate::disk::{Directory, NamedFile};
use crate::frames::{self, FrameFile, JournalTail, read_frames};
use crate::limits::MAX_FRAME_BYTES;
use crate::log::{FRAME_HEADER_BYTES, FrameLocation};
use alloy_primitives::map::B256Set;
use alloy_primitives::{B256, Bytes};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};

/// How long a record of the journal lasts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum JournalMode {
    /// Nothing is written. The records of earlier processes are read all the same.
    Off,
    /// A record survives the end of the process, however it ends.
    #[default]
    Write,
    /// A record also survives a power cut: it is synced before [`Journal::sync`] returns.
    Sync,
}

/// A fork choice: its number, by which the last one is known, and what the engine notes of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalChoice {
    /// Ascends with each fork choice.
    pub number: u64,
    /// Opaque here.
    pub choice: Bytes,
}

/// Valid blocks and fork choices until they are persisted.
#[derive(Debug)]
pub struct Journal {
    directory: Directory,
    mode: JournalMode,
    file_bytes: u64,
    /// Blocks of earlier processes that the index does not have, in the order of their records.
    found: Vec<FoundBlock>,
    tails: Vec<JournalTail>,
    files: Mutex<JournalFiles>,
    /// Held while a file is synced: a record of a thread that waits for it may be in that file.
    syncing: Mutex<()>,
}

#[derive(Debug)]
struct FoundBlock {
    hash: B256,
    sequence: u64,
    location: FrameLocation,
}

#[derive(Debug, Default)]
struct JournalFiles {
    /// By sequence, the blocks that are not persisted.
    unpersisted: BTreeMap<u64, B256Set>,
    /// The file that is appended to.
    open: Option<OpenFile>,
    last_choice: Option<JournalChoice>,
}

#[derive(Clone, Debug)]
struct OpenFile {
    frames: FrameFile,
    /// Whether its name is not durable.
    is_new: bool,
    /// Whether it has records that are not synced.
    is_dirty: bool,
}

const NAME: &str = "journal";
const KIND: [u8; 4] = *b"JRNL";
const BLOCK_TAG: u8 = 0;
const CHOICE_TAG: u8 = 1;
/// Bytes before a block in its payload: the tag and the block's hash.
const BLOCK_AT: usize = 33;
/// Bytes before the engine's note in a fork choice: the tag and the number.
const CHOICE_AT: usize = 9;

impl Journal {
    /// Reads the files that earlier processes left. `is_persisted` says of a block whether the
    /// index has it.
    pub(crate) fn recover(
        directory: Directory,
        (mode, file_bytes): (JournalMode, u64),
        mut is_persisted: impl FnMut(&B256) -> Result<bool, Error>,
    ) -> Result<Self, Error> {
        let names = directory.list()?;
        let mut sequences: Vec<_> = names.iter().filter_map(|name| sequence_of(name)).collect();
        sequences.sort_unstable();
        let (mut found, mut tails) = (Vec::new(), Vec::new());
        let mut files = JournalFiles::default();
        for sequence in sequences {
            let unpersisted = files.unpersisted.entry(sequence).or_default();
            let Some(file) = directory.open(&file_name(sequence))? else { continue };
            let tail = read_frames(&file, (KIND, sequence), |location, payload| {
                let record = record(payload, location);
                match record.ok_or_else(|| unknown(&file, location))? {
                    Record::Block { hash, location } => {
                        if !is_persisted(&hash)? && unpersisted.insert(hash) {
                            found.push(FoundBlock { hash, sequence, location });
                        }
                    }
                    // Their numbers ascend, from file to file too.
                    Record::Choice(choice) => files.last_choice = Some(choice),
                }
                Ok(())
            })?;
            tails.extend(tail);
            if mode == JournalMode::Sync {
                // The process that wrote it may have been killed before it was durable.
                file.sync()?;
            }
        }
        let files = Mutex::new(files);
        let syncing = Mutex::default();
        Ok(Self { directory, mode, file_bytes, found, tails, files, syncing })
    }

    /// Notes a valid block before it is answered: its hash, and the block as `encode` appends it,
    /// about `bytes` long.
    ///
    /// # Errors
    /// The system's. After one, all writes are refused until the store is opened again.
    ///
    /// # Panics
    /// When the block has more than [`MAX_FRAME_BYTES`].
    pub fn append_block(
        &self,
        hash: B256,
        bytes: usize,
        encode: impl FnOnce(&mut Vec<u8>),
    ) -> Result<(), Error> {
        if self.mode == JournalMode::Off {
            return Ok(());
        }
        // Before the lock is taken, for which a fork choice may wait.
        let mut frame = Vec::with_capacity(FRAME_HEADER_BYTES + BLOCK_AT + bytes);
        frame.resize(FRAME_HEADER_BYTES, 0);
        frame.push(BLOCK_TAG);
        frame.extend_from_slice(&hash[..]);
        encode(&mut frame);
        let mut files = self.files();
        let sequence = self.append(&mut files, frame)?;
        files.unpersisted.entry(sequence).or_default().insert(hash);
        Ok(())
    }

    /// Notes a fork choice before it is answered. Its number is larger than those before.
    ///
    /// # Errors
    /// As for [`append_block`](Self::append_block).
    pub fn append_choice(&self, choice: JournalChoice) -> Result<(), Error> {
        if self.mode == JournalMode::Off {
            return Ok(());
        }
        let mut files = self.files();
        self.append(&mut files, choice_frame(&choice))?;
        files.last_choice = Some(choice);
        Ok(())
    }

    /// Makes durable all that was appended before, in [`JournalMode::Sync`]; else does nothing.
    ///
    /// # Errors
    /// As for [`append_block`](Self::append_block).
    #[expect(clippy::missing_panics_doc, reason = "no thread panics while it syncs")]
    pub fn sync(&self) -> Result<(), Error> {
        if self.mode != JournalMode::Sync {
            return Ok(());
        }
        let _one_at_a_time = self.syncing.lock().expect("no thread panics with it");
        // The sync that this thread has waited for may have failed.
        self.directory.health.check()?;
        let taken = self.files().take_dirty();
        let Some(synced) = taken else { return Ok(()) };
        self.sync_file(&synced)?;
        if let Some(open) =
            self.files().open.as_mut().filter(|it| it.frames.sequence == synced.frames.sequence)
        {
            open.is_new = false;
        }
        Ok(())
    }

    /// The blocks of earlier processes that were not persisted when the store was opened, in the
    /// order in which they were valid: their hashes, and what was appended.
    ///
    /// # Errors
    /// When one cannot be read, and those of `each`.
    pub fn replay<E: From<Error>>(
        &self,
        mut each: impl FnMut(B256, Bytes) -> Result<(), E>,
    ) -> Result<(), E> {
        for FoundBlock { hash, sequence, location } in &self.found {
            // It may have been removed: a block has records in two files where a process was killed
            // while it ran those of an earlier one again.
            let Some(file) = self.directory.open(&file_name(*sequence))? else { continue };
            let mut payload = vec![0; location.bytes as usize];
            file.read_at(location.address + FRAME_HEADER_BYTES as u64, &mut payload)?;
            each(*hash, Bytes::from(payload).slice(BLOCK_AT..))?;
        }
        Ok(())
    }

    /// How many blocks [`replay`](Self::replay) gives.
    pub fn found_count(&self) -> usize {
        self.found.len()
    }

    /// The last fork choice.
    pub fn last_choice(&self) -> Option<JournalChoice> {
        self.files().last_choice.clone()
    }

    /// The ends of files that could not be read when the store was opened.
    pub fn tails(&self) -> &[JournalTail] {
        &self.tails
    }

    /// Notes that these blocks are persisted, and removes the files that have no others.
    pub(crate) fn persisted(&self, blocks: impl Iterator<Item = B256>) -> Result<(), Error> {
        let removed = self.files().persisted(blocks, self.mode == JournalMode::Sync);
        removed.into_iter().try_for_each(|sequence| self.directory.remove(&file_name(sequence)))
    }

    /// Removes everything.
    pub(crate) fn clear(&self) -> Result<(), Error> {
        let removed = std::mem::take(&mut *self.files());
        let mut sequences = removed.unpersisted.into_keys();
        sequences.try_for_each(|sequence| self.directory.remove(&file_name(sequence)))?;
        self.directory.sync()
    }

    /// Appends a frame whose header is yet to be filled. Returns its file.
    fn append(&self, files: &mut JournalFiles, mut frame: Vec<u8>) -> Result<u64, Error> {
        let payload_bytes = frame.len() - FRAME_HEADER_BYTES;
        assert!(payload_bytes <= MAX_FRAME_BYTES, "a frame is at most {MAX_FRAME_BYTES} bytes");
        if files.open.as_ref().is_none_or(|open| open.frames.end >= self.file_bytes) {
            self.begin_file(files)?;
        }
        let open = files.open.as_mut().expect("begun above");
        open.write(&mut frame)?;
        Ok(open.frames.sequence)
    }

    /// Begins a file, with the last fork choice.
    fn begin_file(&self, files: &mut JournalFiles) -> Result<(), Error> {
        if self.mode == JournalMode::Sync
            && let Some(full) = files.take_dirty()
        {
            self.sync_file(&full)?;
        }
        let sequence = files.unpersisted.last_key_value().map_or(1, |(last, _)| last + 1);
        let frames = FrameFile::begin(&self.directory, &file_name(sequence), (KIND, sequence))?;
        let mut open = OpenFile { frames, is_new: true, is_dirty: true };
        if let Some(choice) = &files.last_choice {
            open.write(&mut choice_frame(choice))?;
        }
        files.unpersisted.entry(sequence).or_default();
        files.open = Some(open);
        Ok(())
    }

    fn sync_file(&self, open: &OpenFile) -> Result<(), Error> {
        open.frames.sync()?;
        if open.is_new { self.directory.sync() } else { Ok(()) }
    }

    fn files(&self) -> MutexGuard<'_, JournalFiles> {
        self.files.lock().expect("no thread panics with it")
    }
}

impl JournalFiles {
    /// The file that is appended to, if it has records that are not synced, to be synced now.
    fn take_dirty(&mut self) -> Option<OpenFile> {
        let open = self.open.as_mut().filter(|open| open.is_dirty)?;
        let taken = open.clone();
        open.is_dirty = false;
        Some(taken)
    }

    /// Forgets blocks that are persisted. Returns the files that are not needed any more: the last
    /// fork choice is in the one that is open, whose name must be durable if `is_synced`.
    fn persisted(&mut self, blocks: impl Iterator<Item = B256>, is_synced: bool) -> Vec<u64> {
        for hash in blocks {
            self.unpersisted.values_mut().for_each(|unpersisted| _ = unpersisted.remove(&hash));
        }
        let open = self.open.as_ref().filter(|open| !(is_synced && open.is_new));
        let Some(open) = open else { return Vec::new() };
        let is_done =
            |sequence: u64, blocks: &B256Set| sequence < open.frames.sequence && blocks.is_empty();
        let done = self.unpersisted.iter().filter(|(sequence, blocks)| is_done(**sequence, blocks));
        let done: Vec<_> = done.map(|(sequence, _)| *sequence).collect();
        done.iter().for_each(|sequence| _ = self.unpersisted.remove(sequence));
        done
    }
}

impl OpenFile {
    fn write(&mut self, frame: &mut [u8]) -> Result<(), Error> {
        self.frames.write(frame)?;
        self.is_dirty = true;
        Ok(())
    }
}

/// A record that was read.
enum Record {
    Block { hash: B256, location: FrameLocation },
    Choice(JournalChoice),
}

fn record(payload: &[u8], location: FrameLocation) -> Option<Record> {
    match *payload.first()? {
        BLOCK_TAG if payload.len() >= BLOCK_AT => {
            Some(Record::Block { hash: B256::from_slice(&payload[1..BLOCK_AT]), location })
        }
        CHOICE_TAG if payload.len() >= CHOICE_AT => {
            let number = u64::from_le_bytes(payload[1..CHOICE_AT].try_into().expect("eight"));
            let choice = Bytes::copy_from_slice(&payload[CHOICE_AT..]);
            Some(Record::Choice(JournalChoice { number, choice }))
        }
        _ => None,
    }
}

fn unknown(file: &NamedFile, location: FrameLocation) -> Error {
    file.damaged(location.address, "a record has no known form")
}

fn choice_frame(choice: &JournalChoice) -> Vec<u8> {
    let mut frame = vec![0; FRAME_HEADER_BYTES];
    frame.push(CHOICE_TAG);
    frame.extend_from_slice(&choice.number.to_le_bytes());
    frame.extend_from_slice(&choice.choice);
    frame
}

fn file_name(sequence: u64) -> String {
    frames::file_name(NAME, sequence)
}

fn sequence_of(name: &str) -> Option<u64> {
    frames::sequence_of(NAME, name)
}
