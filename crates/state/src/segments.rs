//! The files of one log: contiguous pieces of it, each named by the log's offset where it begins.

use crate::Error;
use crate::disk::{Directory, NamedFile};
use crate::header::Header;
use crate::limits::{CODE_PADDING_BYTES, MAPPED_BEYOND_BYTES, MAX_OPEN_SEGMENTS};
use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound::{Excluded, Unbounded};
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

/// The kind of a log: its name, which is the prefix of its file names, and the letters in the
/// headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LogKind {
    pub(crate) name: &'static str,
    pub(crate) letters: [u8; 4],
    /// Whether a tail follows each payload: [`CODE_PADDING_BYTES`] zeros, then a table of one bit a
    /// byte of the payload. A reader uses both where they lie.
    pub(crate) has_tail: bool,
}

impl LogKind {
    /// The layout of frames, as the header of a segment names it.
    const fn layout(self) -> u64 {
        if self.has_tail { CODE_PADDING_BYTES as u64 | 1 << 32 } else { 0 }
    }

    /// The length of the zeros that follow each payload, in bytes.
    pub(crate) const fn padding_bytes(self) -> usize {
        if self.has_tail { CODE_PADDING_BYTES } else { 0 }
    }

    /// The length of the table that follows a payload of this length, in bytes.
    pub(crate) const fn table_bytes(self, payload_bytes: usize) -> usize {
        if self.has_tail { payload_bytes.div_ceil(8) } else { 0 }
    }

    /// The length of all that follows a payload of this length in its frame, in bytes.
    pub(crate) const fn tail_bytes(self, payload_bytes: usize) -> usize {
        self.padding_bytes() + self.table_bytes(payload_bytes)
    }
}

pub(crate) const NODES: LogKind = LogKind { name: "nodes", letters: *b"NODE", has_tail: false };
pub(crate) const BLOCKS: LogKind = LogKind { name: "blocks", letters: *b"BLCK", has_tail: false };
pub(crate) const CODES: LogKind = LogKind { name: "codes", letters: *b"CODE", has_tail: true };
pub(crate) const WITNESSES: LogKind =
    LogKind { name: "witnesses", letters: *b"WTNS", has_tail: false };

/// The file of one segment, open.
#[derive(Debug)]
pub(crate) struct Segment {
    file: NamedFile,
    /// The mapping of the file; `None` if it cannot be mapped.
    mapped: OnceLock<Option<&'static [u8]>>,
    /// A lower bound of the length of the file, in bytes.
    known_bytes: AtomicU64,
}

impl Deref for Segment {
    type Target = NamedFile;

    fn deref(&self) -> &NamedFile {
        &self.file
    }
}

impl Segment {
    fn new(file: NamedFile) -> Arc<Self> {
        Arc::new(Self { file, mapped: OnceLock::new(), known_bytes: AtomicU64::new(0) })
    }

    /// A mapping of these bytes of the file, which are written already; `None` if the file cannot
    /// be mapped, or not that far.
    pub(crate) fn mapped(
        &self,
        segment_bytes: u64,
        offset: u64,
        bytes: usize,
    ) -> Result<Option<&'static [u8]>, Error> {
        let map = || self.file.map(segment_bytes + MAPPED_BEYOND_BYTES);
        let end = offset + bytes as u64;
        let Some(map) = self.mapped.get_or_init(map) else { return Ok(None) };
        if end > map.len() as u64 {
            return Ok(None);
        }
        if end > self.known_bytes.load(Ordering::Relaxed) {
            // The mapping extends beyond the end of the file, where it must not be touched.
            let found_bytes = self.file.len()?;
            if end > found_bytes {
                let file = self.file.path().into();
                return Err(Error::Short { file, found_bytes, expected_bytes: end });
            }
            self.known_bytes.store(found_bytes, Ordering::Relaxed);
        }
        Ok(Some(&map[offset as usize..end as usize]))
    }
}

#[derive(Debug)]
pub(crate) struct Segments {
    pub(crate) kind: LogKind,
    directory: Directory,
    files: Mutex<SegmentFiles>,
}

/// All segments, with their files if these are open.
#[derive(Debug, Default)]
struct SegmentFiles {
    all: BTreeMap<u64, Option<Arc<Segment>>>,
    /// The open segments, in the order in which they were opened.
    open: VecDeque<u64>,
}

impl SegmentFiles {
    /// Keeps a file open, and closes the one that was opened first if there are too many.
    fn keep(&mut self, start: u64, file: &Arc<Segment>) {
        if self.all.insert(start, Some(file.clone())).flatten().is_some() {
            return;
        }
        if self.open.len() >= MAX_OPEN_SEGMENTS
            && let Some(first) = self.open.pop_front()
            && let Some(file) = self.all.get_mut(&first)
        {
            *file = None;
        }
        self.open.push_back(start);
    }
}

impl Segments {
    /// The segments of a log that reaches from `start` to `end`. Bytes and files beyond the end
    /// were never committed and are removed, durably once the directory is synced. If a segment
    /// ends too early, `is_full` decides whether one of that length may be whole, so that another
    /// is missing.
    pub(crate) fn recover(
        kind: LogKind,
        directory: Directory,
        (start, end): (u64, u64),
        is_full: impl Fn(&Segment, u64) -> Result<bool, Error>,
    ) -> Result<Self, Error> {
        let segments = Self { kind, directory, files: Mutex::default() };
        let mut kept = BTreeMap::new();
        for name in segments.directory.list()? {
            let Some(at) = segments.start_of(&name) else { continue };
            if at < start || at >= end {
                segments.directory.remove(&name)?;
            } else {
                kept.insert(at, None);
            }
        }
        if start < end && kept.keys().next() != Some(&start) {
            let file = segments.directory.path(&segments.file_name(start));
            return Err(Error::Short { file, found_bytes: 0, expected_bytes: 1 });
        }
        segments.files().all = kept;
        segments.cut(end, is_full)?;
        Ok(segments)
    }

    /// Every segment ends where the next begins, the last one at `end`.
    fn cut(
        &self,
        end: u64,
        is_full: impl Fn(&Segment, u64) -> Result<bool, Error>,
    ) -> Result<(), Error> {
        let starts = self.starts();
        let ends = starts.iter().skip(1).copied().chain([end]);
        for (&start, end) in starts.iter().zip(ends) {
            let file = self.open(start)?;
            let (found_bytes, expected_bytes) = (file.len()?, end - start);
            if found_bytes < expected_bytes && is_full(&file, found_bytes)? {
                // The next segment is missing.
                let file = self.directory.path(&self.file_name(start + found_bytes));
                return Err(Error::Short { file, found_bytes: 0, expected_bytes: 1 });
            }
            if found_bytes < expected_bytes {
                let file = file.path().into();
                return Err(Error::Short { file, found_bytes, expected_bytes });
            }
            if found_bytes > expected_bytes {
                file.set_len(expected_bytes)?;
            }
        }
        Ok(())
    }

    /// The starts of all segments, ascending.
    pub(crate) fn starts(&self) -> Vec<u64> {
        self.files().all.keys().copied().collect()
    }

    /// The start of the last segment.
    pub(crate) fn last(&self) -> Option<u64> {
        self.files().all.keys().next_back().copied()
    }

    /// The start of the segment that has `address`, and the start of the next one.
    pub(crate) fn containing(&self, address: u64) -> Option<(u64, Option<u64>)> {
        let files = self.files();
        let (&start, _) = files.all.range(..=address).next_back()?;
        let next = files.all.range((Excluded(start), Unbounded)).next().map(|(&next, _)| next);
        Some((start, next))
    }

    /// The file of the segment that begins at `start`; its header is checked when it is opened.
    pub(crate) fn open(&self, start: u64) -> Result<Arc<Segment>, Error> {
        if let Some(file) = self.opened(start) {
            return Ok(file);
        }
        let name = self.file_name(start);
        let Some(file) = self.directory.open(&name)? else {
            let file = self.directory.path(&name);
            return Err(Error::Short { file, found_bytes: 0, expected_bytes: 1 });
        };
        self.advise(&file);
        self.header(start).expect(&file)?;
        let file = Segment::new(file);
        let mut files = self.files();
        if files.all.contains_key(&start) {
            files.keep(start, &file);
        }
        Ok(file)
    }

    /// The file of the segment that begins at `start`, if it is open. Nothing is read.
    fn opened(&self, start: u64) -> Option<Arc<Segment>> {
        self.files().all.get(&start).cloned().flatten()
    }

    /// A new segment with its header, not durable yet.
    pub(crate) fn create(&self, start: u64, header: &[u8]) -> Result<Arc<Segment>, Error> {
        let file = self.directory.create(&self.file_name(start))?;
        self.advise(&file);
        file.write_at(0, header)?;
        let file = Segment::new(file);
        self.files().keep(start, &file);
        Ok(file)
    }

    /// Advises the system before the first read of a file.
    fn advise(&self, file: &NamedFile) {
        if self.kind == NODES {
            file.reads_are_random();
        }
    }

    /// Drops the segments that end at or below `start` and removes their files. That needs no sync:
    /// a file that comes back lies below the start in the index, and is removed again.
    pub(crate) fn remove_below(&self, start: u64) -> Result<(), Error> {
        let mut files = self.files();
        let kept = files.all.split_off(&start);
        let removed = std::mem::replace(&mut files.all, kept);
        files.open.retain(|at| *at >= start);
        drop(files);
        for at in removed.keys() {
            self.directory.remove(&self.file_name(*at))?;
        }
        Ok(())
    }

    /// Makes created and removed files durable.
    pub(crate) fn sync_directory(&self) -> Result<(), Error> {
        self.directory.sync()
    }

    /// The header of the segment that begins at `start`: where that is, and the layout of frames.
    pub(crate) fn header(&self, start: u64) -> Header {
        Header { kind: self.kind.letters, numbers: [start, self.kind.layout()] }
    }

    fn file_name(&self, start: u64) -> String {
        format!("{}-{start:016x}", self.kind.name)
    }

    fn start_of(&self, name: &str) -> Option<u64> {
        let digits = name.strip_prefix(self.kind.name)?.strip_prefix('-')?;
        let start = u64::from_str_radix(digits, 16).ok()?;
        (self.file_name(start) == name).then_some(start)
    }

    fn files(&self) -> MutexGuard<'_, SegmentFiles> {
        self.files.lock().expect("no thread panics with it")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryDisk;

    #[test]
    fn of_many_files_the_last_ones_are_open() {
        let directory = Directory::new(Arc::new(MemoryDisk::new()));
        let segments = Segments { kind: NODES, directory, files: Mutex::default() };
        let count = 3 * MAX_OPEN_SEGMENTS as u64;
        for start in 0..count {
            segments.create(start, &segments.header(start).to_bytes()).unwrap();
        }
        let is_open = |start| segments.files().all[&start].is_some();
        let open = || (0..count).filter(|start| is_open(*start)).collect::<Vec<_>>();
        assert_eq!(open(), (count - MAX_OPEN_SEGMENTS as u64..count).collect::<Vec<_>>());
        for start in [5, count - 1, 5, 6] {
            assert_eq!(segments.opened(start).is_some(), is_open(start));
            segments.open(start).unwrap();
            assert!(segments.opened(start).is_some());
        }
        assert!(segments.opened(count).is_none());
        assert!(is_open(5) && is_open(6) && is_open(count - 1));
        assert_eq!(open().len(), MAX_OPEN_SEGMENTS);
        segments.remove_below(count - 2).unwrap();
        assert_eq!(segments.files().open, [count - 2, count - 1]);
    }
}
