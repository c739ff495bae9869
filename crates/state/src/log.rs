//! Append-only logs of frames: blocks, codes and witnesses.
//!
//! A frame is the payload's length, a CRC-32 over the frame's address, the length and all that
//! follows, then the payload. In the log of codes a tail follows each payload: zeros, and a table
//! of one bit a byte ([`StoredCode`]). Frames fill segments one after another; a frame that is
//! longer than a segment gets a longer file.

use crate::Error;
use crate::disk::Directory;
use crate::header::HEADER_BYTES;
use crate::limits::{CODE_FIRST_BYTES, CODE_PADDING_BYTES, MAX_FRAME_BYTES, WRITE_BUFFER_BYTES};
use crate::segments::{LogKind, Segment, Segments};
use alloy_primitives::{B256, Bytes};
use std::borrow::Cow;
use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

pub(crate) const FRAME_HEADER_BYTES: usize = 8;

/// The place of a frame, as the index names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FrameLocation {
    /// The offset in the log where its header begins.
    pub(crate) address: u64,
    /// Its payload's length.
    pub(crate) bytes: u32,
}

/// A code to store, with its table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewCode {
    hash: B256,
    code: Bytes,
    table: Bytes,
}

impl NewCode {
    /// A code by its hash. `table` has one bit for each byte of the code, and is opaque to the
    /// store, which gives it back with the code.
    ///
    /// # Panics
    /// If the table is not an eighth as long as the code, rounded up.
    pub fn new(hash: B256, code: Bytes, table: Bytes) -> Self {
        assert_eq!(table.len(), code.len().div_ceil(8), "a table has a bit for each byte");
        Self { hash, code, table }
    }

    /// The Keccak-256 hash of the code.
    pub const fn hash(&self) -> B256 {
        self.hash
    }

    /// The code.
    pub const fn code(&self) -> &Bytes {
        &self.code
    }

    /// The bytes that this code takes in memory, about.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.code.len() + self.table.len() + 64
    }
}

/// A code as it was read, with its tail.
#[derive(Clone, Debug)]
pub struct StoredCode {
    /// The code, followed by `padding` zeros.
    pub padded: Bytes,
    /// The number of zeros that follow the code in `padded`: [`CODE_PADDING_BYTES`], or none for a
    /// code that is not persisted yet.
    ///
    /// [`CODE_PADDING_BYTES`]: crate::limits::CODE_PADDING_BYTES
    pub padding: usize,
    /// The first bytes of the code, padded with zeros. They suffice to order most codes without a
    /// read of a mapped file.
    pub first: [u8; CODE_FIRST_BYTES],
    /// The location of the code in its file, if `padded` is a mapping of that file; `None` if it is
    /// memory of this process.
    pub location: Option<CodeLocation>,
    /// The table that the code was added with. It is mapped where the code is; `None` for a code
    /// that is not persisted yet.
    pub table: Option<Cow<'static, [u8]>>,
}

/// The location of a code in the files of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeLocation {
    /// The offset in the log at which the file's segment begins. It names the file.
    pub segment: u64,
    /// The offset of the code in that file, in bytes.
    pub offset: u64,
}

impl StoredCode {
    /// A code without a tail.
    pub(crate) fn bare(code: Bytes) -> Self {
        Self { first: first(&code), padded: code, padding: 0, location: None, table: None }
    }

    /// The code alone.
    pub fn code(&self) -> Bytes {
        self.padded.slice(..self.padded.len() - self.padding)
    }
}

/// The first bytes of a code, padded with zeros.
fn first(code: &[u8]) -> [u8; CODE_FIRST_BYTES] {
    let mut first = [0; CODE_FIRST_BYTES];
    let length = code.len().min(first.len());
    first[..length].copy_from_slice(&code[..length]);
    first
}

/// A frame that was read and checked.
struct Frame {
    segment: Arc<Segment>,
    /// The location of the payload.
    location: CodeLocation,
    /// The payload and its tail.
    body: Bytes,
}

#[derive(Debug)]
pub(crate) struct Log {
    segments: Segments,
    segment_bytes: u64,
    /// The first offset that is not deleted.
    start: AtomicU64,
    writer: Mutex<LogWriter>,
}

#[derive(Debug)]
struct LogWriter {
    /// The end of the log: the offset of the next frame or segment.
    end: u64,
    /// The segment with unsynced writes, and its start.
    dirty: Option<(u64, Arc<Segment>)>,
    created: bool,
    /// The last bytes before `end`, which are not written yet.
    buffer: Vec<u8>,
}

impl Log {
    pub(crate) fn recover(
        kind: LogKind,
        directory: Directory,
        (start, end): (u64, u64),
        segment_bytes: u64,
    ) -> Result<Self, Error> {
        let segments = Segments::recover(kind, directory, (start, end), |file, bytes| {
            Ok(bytes >= segment_bytes && ends_with_a_frame(kind, file, bytes)?)
        })?;
        let writer = LogWriter { end, dirty: None, created: false, buffer: Vec::new() };
        Ok(Self { segments, segment_bytes, start: start.into(), writer: Mutex::new(writer) })
    }

    /// Appends a frame without a tail. It can be read once it is synced.
    pub(crate) fn append(&self, payload: &[u8]) -> Result<FrameLocation, Error> {
        self.append_with(payload, &[])
    }

    /// Appends a code and its table. It can be read once it is synced.
    pub(crate) fn append_code(&self, code: &NewCode) -> Result<FrameLocation, Error> {
        let zeros = [0; CODE_PADDING_BYTES];
        self.append_with(&code.code, &[&zeros[..], &code.table].concat())
    }

    fn append_with(&self, payload: &[u8], tail: &[u8]) -> Result<FrameLocation, Error> {
        assert_eq!(tail.len(), self.segments.kind.tail_bytes(payload.len()), "as the layout says");
        assert!(payload.len() <= MAX_FRAME_BYTES, "a frame is at most {MAX_FRAME_BYTES} bytes");
        let mut writer = self.writer();
        let last = self.segments.last();
        let is_full = last.is_none_or(|last| writer.end - last >= self.segment_bytes);
        if is_full {
            self.sync_writer(&mut writer)?;
            let start = writer.end;
            let file = self.segments.create(start, &self.segments.header(start).to_bytes())?;
            writer.dirty = Some((start, file));
            writer.created = true;
            writer.end += HEADER_BYTES as u64;
        } else if writer.dirty.is_none() {
            let last = last.expect("there is a segment, or a new one");
            writer.dirty = Some((last, self.segments.open(last)?));
        }
        let location = FrameLocation { address: writer.end, bytes: payload.len() as u32 };
        let header = frame_header(location, payload, tail);
        writer.end += (FRAME_HEADER_BYTES + payload.len()) as u64;
        writer.buffer.extend_from_slice(&header);
        if payload.len() >= WRITE_BUFFER_BYTES {
            let gathered = payload.len() as u64;
            writer.write_buffer(gathered)?;
            let (start, file) = writer.dirty.as_ref().expect("opened above");
            let mut at = writer.end - gathered - start;
            for part in payload.chunks(WRITE_BUFFER_BYTES) {
                file.write_at(at, part)?;
                at += part.len() as u64;
            }
        } else {
            writer.buffer.extend_from_slice(payload);
        }
        writer.end += tail.len() as u64;
        writer.buffer.extend_from_slice(tail);
        if writer.buffer.len() >= WRITE_BUFFER_BYTES {
            writer.write_buffer(0)?;
        }
        Ok(location)
    }

    /// Writes and syncs all that was appended. Returns the end of the log.
    pub(crate) fn sync(&self) -> Result<u64, Error> {
        let mut writer = self.writer();
        self.sync_writer(&mut writer)?;
        Ok(writer.end)
    }

    fn sync_writer(&self, writer: &mut LogWriter) -> Result<(), Error> {
        writer.write_buffer(0)?;
        if let Some((_, file)) = writer.dirty.take() {
            file.sync()?;
        }
        if std::mem::take(&mut writer.created) {
            self.segments.sync_directory()?;
        }
        Ok(())
    }

    /// Reads and checks the payload of a frame.
    pub(crate) fn read(&self, location: FrameLocation) -> Result<Bytes, Error> {
        let Frame { body, .. } = self.read_frame(location)?;
        Ok(body.slice(..location.bytes as usize))
    }

    /// Reads a code. If its file can be mapped, the code is read only to be checked, and the
    /// mapping is returned, of which no page has been touched: the code is most likely in the
    /// system's page cache, and takes no memory of this process until it runs.
    pub(crate) fn code(&self, location: FrameLocation) -> Result<StoredCode, Error> {
        let length = location.bytes as usize;
        let Frame { segment, location, body } = self.read_frame(location)?;
        let padding = self.segments.kind.padding_bytes();
        let first = first(&body[..length]);
        let mapped = segment.mapped(self.segment_bytes, location.offset, body.len())?;
        let (padded, table, location) = match mapped {
            Some(bytes) => {
                let (padded, table) = bytes.split_at(length + padding);
                (Bytes::from_static(padded), Cow::Borrowed(table), Some(location))
            }
            None => {
                let table = body[length + padding..].to_vec();
                (body.slice(..length + padding), Cow::Owned(table), None)
            }
        };
        Ok(StoredCode { padded, padding, first, location, table: Some(table) })
    }

    fn read_frame(&self, location: FrameLocation) -> Result<Frame, Error> {
        let FrameLocation { address, bytes } = location;
        let log = self.segments.kind.name;
        let start = self.start();
        let segment = self.segments.containing(address).filter(|_| address >= start);
        let Some((segment, _)) = segment else {
            return Err(Error::Deleted { log, address, start });
        };
        let file = self.segments.open(segment)?;
        let payload_bytes = bytes as usize;
        let frame_bytes =
            FRAME_HEADER_BYTES + payload_bytes + self.segments.kind.tail_bytes(payload_bytes);
        let mut frame = vec![0; frame_bytes];
        file.read_at(address - segment, &mut frame)?;
        let (header, body) = frame.split_at(FRAME_HEADER_BYTES);
        let (payload, tail) = body.split_at(payload_bytes);
        let zeros = &tail[..self.segments.kind.padding_bytes()];
        if header != frame_header(location, payload, tail) || zeros.iter().any(|byte| *byte != 0) {
            return Err(damaged(&file, address - segment));
        }
        let body = Bytes::from(frame).slice(FRAME_HEADER_BYTES..);
        let offset = address - segment + FRAME_HEADER_BYTES as u64;
        Ok(Frame { segment: file, location: CodeLocation { segment, offset }, body })
    }

    /// The file of the segment that begins at `start`, for another process to read; `None` if there
    /// is no such segment, or no file that can be handed on.
    pub(crate) fn file(&self, start: u64) -> Result<Option<fs::File>, Error> {
        match self.segments.containing(start) {
            Some((found, _)) if found == start => self.segments.open(start)?.reopen(),
            _ => Ok(None),
        }
    }

    /// The first offset that is not deleted.
    pub(crate) fn start(&self) -> u64 {
        self.start.load(Ordering::Relaxed)
    }

    pub(crate) fn segments(&self) -> &Segments {
        &self.segments
    }

    /// Removes the files below `start`, which the index no longer names.
    pub(crate) fn remove_below(&self, start: u64) -> Result<(), Error> {
        self.start.fetch_max(start, Ordering::Relaxed);
        self.segments.remove_below(start)
    }

    /// Reads every frame from the files, and calls `each` with the outcome: the bytes read. After
    /// damage the rest of the segment is skipped, since the start of the next frame is unknown.
    pub(crate) fn verify(&self, end: u64, mut each: impl FnMut(Result<u64, Error>)) {
        let starts: Vec<_> = self.segments.starts().into_iter().filter(|&at| at < end).collect();
        let ends = starts.iter().skip(1).copied().chain([end]);
        for (&start, end) in starts.iter().zip(ends) {
            if let Err(error) = self.verify_segment(start, end, &mut each) {
                each(Err(error));
            }
        }
    }

    fn verify_segment(
        &self,
        start: u64,
        end: u64,
        each: &mut impl FnMut(Result<u64, Error>),
    ) -> Result<(), Error> {
        let file = self.segments.open(start)?;
        self.segments.header(start).expect(&file)?;
        let mut address = start + HEADER_BYTES as u64;
        while address < end {
            let mut header = [0; FRAME_HEADER_BYTES];
            let offset = address - start;
            if end - address < header.len() as u64 {
                return Err(damaged(&file, offset));
            }
            file.read_at(offset, &mut header)?;
            let bytes = u32::from_le_bytes(header[..4].try_into().expect("four bytes"));
            let tail_bytes = self.segments.kind.tail_bytes(bytes as usize) as u64;
            let next = address + FRAME_HEADER_BYTES as u64 + u64::from(bytes) + tail_bytes;
            if next > end {
                return Err(damaged(&file, offset));
            }
            self.read(FrameLocation { address, bytes })?;
            each(Ok(next - address));
            address = next;
        }
        Ok(())
    }

    fn writer(&self) -> MutexGuard<'_, LogWriter> {
        self.writer.lock().expect("no thread panics with it")
    }
}

impl LogWriter {
    /// Writes the buffer, which ends `after` bytes before the end of the log.
    fn write_buffer(&mut self, after: u64) -> Result<(), Error> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let (start, file) = self.dirty.as_ref().expect("what is gathered has a segment");
        file.write_at(self.end - after - self.buffer.len() as u64 - start, &self.buffer)?;
        self.buffer.clear();
        Ok(())
    }
}

/// Whether the end of a file of this length is the end of a frame.
fn ends_with_a_frame(kind: LogKind, file: &Segment, bytes: u64) -> Result<bool, Error> {
    let mut end = HEADER_BYTES as u64;
    while end + FRAME_HEADER_BYTES as u64 <= bytes {
        let mut length = [0; 4];
        file.read_at(end, &mut length)?;
        let length = u32::from_le_bytes(length);
        let tail_bytes = kind.tail_bytes(length as usize) as u64;
        end += FRAME_HEADER_BYTES as u64 + u64::from(length) + tail_bytes;
    }
    Ok(end == bytes)
}

fn damaged(file: &Segment, offset: u64) -> Error {
    file.damaged(offset, "the frame does not match its length and checksum")
}

/// The header of a frame: its payload's length, and the checksum.
pub(crate) fn frame_header(
    location: FrameLocation,
    payload: &[u8],
    tail: &[u8],
) -> [u8; FRAME_HEADER_BYTES] {
    let length = location.bytes.to_le_bytes();
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&location.address.to_le_bytes());
    hasher.update(&length);
    hasher.update(payload);
    hasher.update(tail);
    let mut header = [0; FRAME_HEADER_BYTES];
    header[..4].copy_from_slice(&length);
    header[4..].copy_from_slice(&hasher.finalize().to_le_bytes());
    header
}
