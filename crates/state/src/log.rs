//! Append-only logs of frames: blocks, codes and witnesses.
//!
//! A frame is its payload's length and a CRC-32 over its address, length and payload, then the
//! payload. Frames fill segments one after another; one that is longer than a segment gets a
//! longer file.

use crate::Error;
use crate::disk::{Directory, Named};
use crate::header::HEADER_BYTES;
use crate::limits::{MAX_FRAME_BYTES, WRITE_BUFFER_BYTES};
use crate::segments::{Kind, Segments};
use alloy_primitives::Bytes;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

const FRAME_HEADER_BYTES: usize = 8;

/// Where a frame is, as the index has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Location {
    /// The offset in the log where its header begins.
    pub(crate) address: u64,
    /// Its payload's length.
    pub(crate) bytes: u32,
}

#[derive(Debug)]
pub(crate) struct Log {
    segments: Segments,
    segment_bytes: u64,
    /// Nothing below is read: it is deleted.
    start: AtomicU64,
    writer: Mutex<Writer>,
}

#[derive(Debug)]
struct Writer {
    /// Where the next frame goes, or the next segment begins.
    end: u64,
    /// The segment that is written, since it was synced.
    dirty: Option<(u64, Arc<Named>)>,
    created: bool,
    /// What is not written yet, the last bytes before `end`.
    buffer: Vec<u8>,
}

impl Log {
    pub(crate) fn recover(
        kind: Kind,
        directory: Directory,
        (start, end): (u64, u64),
        segment_bytes: u64,
    ) -> Result<Self, Error> {
        let segments = Segments::recover(kind, directory, (start, end), |file, bytes| {
            Ok(bytes >= segment_bytes && ends_with_a_frame(file, bytes)?)
        })?;
        let writer = Writer { end, dirty: None, created: false, buffer: Vec::new() };
        Ok(Self { segments, segment_bytes, start: start.into(), writer: Mutex::new(writer) })
    }

    /// Appends a frame. It can be read once it is synced.
    pub(crate) fn append(&self, payload: &[u8]) -> Result<Location, Error> {
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
        let location = Location { address: writer.end, bytes: payload.len() as u32 };
        let header = frame_header(location.address, payload);
        writer.end += (FRAME_HEADER_BYTES + payload.len()) as u64;
        writer.buffer.extend_from_slice(&header);
        if payload.len() >= WRITE_BUFFER_BYTES {
            let gathered = payload.len() as u64;
            writer.write_buffer(gathered)?;
            let (start, file) = writer.dirty.as_ref().expect("opened above");
            file.write_at(writer.end - gathered - start, payload)?;
        } else {
            writer.buffer.extend_from_slice(payload);
            if writer.buffer.len() >= WRITE_BUFFER_BYTES {
                writer.write_buffer(0)?;
            }
        }
        Ok(location)
    }

    /// Writes and syncs what was appended; says where the log ends.
    pub(crate) fn sync(&self) -> Result<u64, Error> {
        let mut writer = self.writer();
        self.sync_writer(&mut writer)?;
        Ok(writer.end)
    }

    fn sync_writer(&self, writer: &mut Writer) -> Result<(), Error> {
        writer.write_buffer(0)?;
        if let Some((_, file)) = writer.dirty.take() {
            file.sync()?;
        }
        if std::mem::take(&mut writer.created) {
            self.segments.sync_directory()?;
        }
        Ok(())
    }

    /// Reads a frame, and checks it.
    pub(crate) fn read(&self, location: Location) -> Result<Bytes, Error> {
        let Location { address, bytes } = location;
        let log = self.segments.kind.name;
        let start = self.start();
        let segment = self.segments.containing(address).filter(|_| address >= start);
        let Some((segment, _)) = segment else {
            return Err(Error::Deleted { log, address, start });
        };
        let file = self.segments.open(segment)?;
        let mut frame = vec![0; FRAME_HEADER_BYTES + bytes as usize];
        file.read_at(address - segment, &mut frame)?;
        let (header, payload) = frame.split_at(FRAME_HEADER_BYTES);
        if header != frame_header(address, payload) {
            return Err(damaged(&file, address - segment));
        }
        Ok(Bytes::from(frame).slice(FRAME_HEADER_BYTES..))
    }

    /// The first offset that is kept.
    pub(crate) fn start(&self) -> u64 {
        self.start.load(Ordering::Relaxed)
    }

    pub(crate) fn segments(&self) -> &Segments {
        &self.segments
    }

    /// Removes the files below `start`, which the index has forgotten.
    pub(crate) fn remove_below(&self, start: u64) -> Result<(), Error> {
        self.start.fetch_max(start, Ordering::Relaxed);
        self.segments.remove_below(start)
    }

    /// Reads every frame from the files, and gives `each` its outcome: the bytes read. After damage
    /// the rest of the segment is not read: where the next frame begins is not known.
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
            let next = address + FRAME_HEADER_BYTES as u64 + u64::from(bytes);
            if next > end {
                return Err(damaged(&file, offset));
            }
            self.read(Location { address, bytes })?;
            each(Ok(next - address));
            address = next;
        }
        Ok(())
    }

    fn writer(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock().expect("no thread panics with it")
    }
}

impl Writer {
    /// Writes the buffer, which ends `after` bytes before the log's end.
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

/// Whether a file of this length ends where a frame does, by the lengths of all before it.
fn ends_with_a_frame(file: &Named, bytes: u64) -> Result<bool, Error> {
    let mut end = HEADER_BYTES as u64;
    while end + FRAME_HEADER_BYTES as u64 <= bytes {
        let mut length = [0; 4];
        file.read_at(end, &mut length)?;
        end += FRAME_HEADER_BYTES as u64 + u64::from(u32::from_le_bytes(length));
    }
    Ok(end == bytes)
}

fn damaged(file: &Named, offset: u64) -> Error {
    file.damaged(offset, "the frame does not match its length and checksum")
}

fn frame_header(address: u64, payload: &[u8]) -> [u8; FRAME_HEADER_BYTES] {
    let length = (payload.len() as u32).to_le_bytes();
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&address.to_le_bytes());
    hasher.update(&length);
    hasher.update(payload);
    let mut header = [0; FRAME_HEADER_BYTES];
    header[..4].copy_from_slice(&length);
    header[4..].copy_from_slice(&hasher.finalize().to_le_bytes());
    header
}
