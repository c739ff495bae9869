//! Append-only logs of frames: blocks, codes and witnesses.
//!
//! A frame is its payload's length and a CRC-32 over its address, length and all that follows, then
//! the payload, then what its segment's header says: nothing, or behind a code as many zeros as it
//! takes to run there, and the table of where it may jump to. Frames fill segments one after
//! another; one that is longer than a segment gets a longer file.

use crate::Error;
use crate::disk::Directory;
use crate::header::HEADER_BYTES;
use crate::limits::{CODE_FIRST_BYTES, MAX_FRAME_BYTES, WRITE_BUFFER_BYTES};
use crate::segments::{Kind, Segment, Segments, Tail};
use alloy_primitives::Bytes;
use std::borrow::Cow;
use std::fs;
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

/// A code, and what is stored with it.
#[derive(Clone, Debug)]
pub struct StoredCode {
    /// The code, and zeros behind it.
    pub padded: Bytes,
    /// How many of the bytes are zeros behind the code.
    pub padding: usize,
    /// The first bytes of the code, zeros behind them: whoever puts codes in order need not look
    /// at what lies in a file.
    pub first: [u8; CODE_FIRST_BYTES],
    /// Where the bytes lie in their file, when they are no memory of this process but what the
    /// system can have back at any time.
    pub place: Option<Place>,
    /// Where the code may jump to: a bit for each of its bytes, the lowest first. It lies where the
    /// code does; `None` where it is not stored.
    pub jumps: Option<Cow<'static, [u8]>>,
}

/// Where a code lies in the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The segment: where in the log it begins, which names its file.
    pub segment: u64,
    /// Bytes in the file before it.
    pub offset: u64,
}

impl StoredCode {
    /// A code with nothing behind it.
    pub(crate) fn bare(code: Bytes) -> Self {
        Self { first: first(&code), padded: code, padding: 0, place: None, jumps: None }
    }

    /// The code alone.
    pub fn code(&self) -> Bytes {
        self.padded.slice(..self.padded.len() - self.padding)
    }
}

/// The first bytes of a code, zeros behind them.
fn first(code: &[u8]) -> [u8; CODE_FIRST_BYTES] {
    let mut first = [0; CODE_FIRST_BYTES];
    let length = code.len().min(first.len());
    first[..length].copy_from_slice(&code[..length]);
    first
}

/// A frame that was read and checked.
struct Frame {
    segment: Arc<Segment>,
    /// Where the payload lies.
    place: Place,
    /// The payload, and what lies behind it.
    behind_header: Bytes,
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
    dirty: Option<(u64, Arc<Segment>)>,
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
        let tail = writer.dirty.as_ref().expect("opened above").1.tail;
        let location = Location { address: writer.end, bytes: payload.len() as u32 };
        let mut behind = Vec::new();
        tail.push(payload, &mut behind);
        let header = frame_header(location, payload, &behind);
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
        writer.end += behind.len() as u64;
        writer.buffer.extend_from_slice(&behind);
        if writer.buffer.len() >= WRITE_BUFFER_BYTES {
            writer.write_buffer(0)?;
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

    /// Reads what a frame holds, and checks it.
    pub(crate) fn read(&self, location: Location) -> Result<Bytes, Error> {
        let Frame { behind_header, .. } = self.read_frame(location)?;
        Ok(behind_header.slice(..location.bytes as usize))
    }

    /// Reads a code, which stays in the file where that can be mapped: it is read to be checked
    /// alone. It is then most likely in the system's memory, and no memory of ours: the mapping is
    /// not looked at before the code runs.
    pub(crate) fn code(&self, location: Location) -> Result<StoredCode, Error> {
        let Frame { segment, place, behind_header } = self.read_frame(location)?;
        let (length, tail) = (location.bytes as usize, segment.tail);
        let padding = tail.padding();
        let first = first(&behind_header[..length]);
        let mapped = segment.mapped(self.segment_bytes, place.offset, behind_header.len())?;
        let (padded, jumps, place) = match mapped {
            Some(bytes) => {
                let (padded, jumps) = bytes.split_at(length + padding);
                (Bytes::from_static(padded), Cow::Borrowed(jumps), Some(place))
            }
            None => {
                let jumps = behind_header[length + padding..].to_vec();
                (behind_header.slice(..length + padding), Cow::Owned(jumps), None)
            }
        };
        let jumps = (tail == Tail::ZerosAndJumps).then_some(jumps);
        Ok(StoredCode { padded, padding, first, place, jumps })
    }

    fn read_frame(&self, location: Location) -> Result<Frame, Error> {
        let Location { address, bytes } = location;
        let log = self.segments.kind.name;
        let start = self.start();
        let segment = self.segments.containing(address).filter(|_| address >= start);
        let Some((segment, _)) = segment else {
            return Err(Error::Deleted { log, address, start });
        };
        let file = self.segments.open(segment)?;
        let payload_bytes = bytes as usize;
        let frame_bytes = FRAME_HEADER_BYTES + payload_bytes + file.tail.bytes(payload_bytes);
        let mut frame = vec![0; frame_bytes];
        file.read_at(address - segment, &mut frame)?;
        let (header, behind) = frame.split_at(FRAME_HEADER_BYTES);
        let (payload, tail) = behind.split_at(payload_bytes);
        let zeros = &tail[..file.tail.padding()];
        if header != frame_header(location, payload, tail) || zeros.iter().any(|byte| *byte != 0) {
            return Err(damaged(&file, address - segment));
        }
        let behind_header = Bytes::from(frame).slice(FRAME_HEADER_BYTES..);
        let place = Place { segment, offset: address - segment + FRAME_HEADER_BYTES as u64 };
        Ok(Frame { segment: file, place, behind_header })
    }

    /// The file of the segment that begins at `start`, to be read by somebody else; `None` when
    /// there is no such segment, or when it is in no file that can be handed on.
    pub(crate) fn file(&self, start: u64) -> Result<Option<fs::File>, Error> {
        match self.segments.containing(start) {
            Some((found, _)) if found == start => self.segments.open(start)?.reopen(),
            _ => Ok(None),
        }
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
        let tail = self.segments.tail(start, &file)?;
        let mut address = start + HEADER_BYTES as u64;
        while address < end {
            let mut header = [0; FRAME_HEADER_BYTES];
            let offset = address - start;
            if end - address < header.len() as u64 {
                return Err(damaged(&file, offset));
            }
            file.read_at(offset, &mut header)?;
            let bytes = u32::from_le_bytes(header[..4].try_into().expect("four bytes"));
            let behind_header = u64::from(bytes) + tail.bytes(bytes as usize) as u64;
            let next = address + FRAME_HEADER_BYTES as u64 + behind_header;
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
fn ends_with_a_frame(file: &Segment, bytes: u64) -> Result<bool, Error> {
    let mut end = HEADER_BYTES as u64;
    while end + FRAME_HEADER_BYTES as u64 <= bytes {
        let mut length = [0; 4];
        file.read_at(end, &mut length)?;
        let length = u32::from_le_bytes(length);
        let tail_bytes = file.tail.bytes(length as usize) as u64;
        end += FRAME_HEADER_BYTES as u64 + u64::from(length) + tail_bytes;
    }
    Ok(end == bytes)
}

fn damaged(file: &Segment, offset: u64) -> Error {
    file.damaged(offset, "the frame does not match its length and checksum")
}

fn frame_header(location: Location, payload: &[u8], tail: &[u8]) -> [u8; FRAME_HEADER_BYTES] {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::MemoryDisk;
    use crate::segments::CODES;

    /// Segments of codes had nothing behind each once, then zeros. They stay as they are until
    /// they are full.
    #[test]
    fn segments_of_before_are_read_and_filled() {
        let directory = Directory::new(Arc::new(MemoryDisk::new()));
        let frames: Vec<_> = (1..150_u8).map(|tag| vec![tag; usize::from(tag)]).collect();
        let tails = [Tail::Nothing, Tail::Zeros, Tail::ZerosAndJumps];
        let open =
            |kind, end| Log::recover(kind, directory.clone(), (0, end), 1024).expect("memory");
        let (mut locations, mut end, mut counts) = (Vec::new(), 0, Vec::new());
        for (tail, frames) in tails.into_iter().zip(frames.chunks(50)) {
            let log = open(Kind { tail, ..CODES }, end);
            locations.extend(frames.iter().map(|frame| log.append(frame).expect("memory")));
            end = log.sync().expect("memory");
            counts.push(log.segments().starts().len());
        }
        let log = open(CODES, end);
        let starts = log.segments().starts();
        for (index, start) in starts.iter().enumerate() {
            let tail = log.segments().open(*start).expect("memory").tail;
            let expected = counts.iter().position(|count| index < *count).expect("one of them");
            assert_eq!(tail, tails[expected], "segment {index}");
        }
        assert!(counts.is_sorted_by(|count, next| count < next), "{counts:?}");
        for (location, frame) in locations.iter().zip(&frames) {
            assert_eq!(log.read(*location).expect("memory"), *frame);
            assert_eq!(log.code(*location).expect("memory").code(), *frame);
        }
        let mut bytes = 0;
        log.verify(end, |outcome| bytes += outcome.expect("whole"));
        assert_eq!(bytes, end - (starts.len() * HEADER_BYTES) as u64);
        // A program of before would say that it does not know this segment.
        let kind = Kind { tail: Tail::Zeros, ..CODES };
        let before = Log::recover(kind, directory, (0, end), 1024);
        assert!(matches!(before, Err(Error::Foreign { .. })), "{before:?}");
    }
}
