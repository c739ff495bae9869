//! Files of frames, one write each: what a process wrote is read up to the first frame that is not
//! whole.

use crate::Error;
use crate::disk::{Directory, NamedFile};
use crate::header::{HEADER_BYTES, Header};
use crate::log::{FRAME_HEADER_BYTES, FrameLocation, frame_header};
use std::sync::Arc;

/// The end of a file that could not be read: a record that a killed process was writing, or that a
/// power cut took away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalTail {
    /// The file.
    pub file: String,
    /// Where the last whole record ends, in bytes.
    pub offset: u64,
    /// The bytes behind it, which are passed over.
    pub bytes: u64,
}

/// A file that frames are appended to.
#[derive(Clone, Debug)]
pub(crate) struct FrameFile {
    /// Its number among the files of its kind.
    pub(crate) sequence: u64,
    file: Arc<NamedFile>,
    pub(crate) end: u64,
}

/// The kind of a file, and its number among those.
pub(crate) type FileId = ([u8; 4], u64);

impl FrameFile {
    /// Begins a file.
    pub(crate) fn begin(directory: &Directory, name: &str, id: FileId) -> Result<Self, Error> {
        let file = Arc::new(directory.create(name)?);
        file.write_at(0, &header(id).to_bytes())?;
        Ok(Self { sequence: id.1, file, end: HEADER_BYTES as u64 })
    }

    /// Fills a frame's header and writes it behind the last one.
    pub(crate) fn write(&mut self, frame: &mut [u8]) -> Result<(), Error> {
        let (space, payload) = frame.split_at_mut(FRAME_HEADER_BYTES);
        space.copy_from_slice(&checked_header(self.sequence, self.end, payload));
        self.file.write_at(self.end, frame)?;
        self.end += frame.len() as u64;
        Ok(())
    }

    pub(crate) fn sync(&self) -> Result<(), Error> {
        self.file.sync()
    }
}

/// Gives the payloads of all whole frames of a file, and the bytes behind them, if there are some.
pub(crate) fn read_frames(
    file: &NamedFile,
    id: FileId,
    mut each: impl FnMut(FrameLocation, &[u8]) -> Result<(), Error>,
) -> Result<Option<JournalTail>, Error> {
    let length = file.len()?;
    let tail = |offset: u64| {
        let file = file.path().to_owned();
        (offset < length).then_some(JournalTail { file, offset, bytes: length - offset })
    };
    let mut head = [0; HEADER_BYTES];
    if length < HEADER_BYTES as u64 {
        return Ok(tail(0));
    }
    file.read_at(0, &mut head)?;
    if head == [0; HEADER_BYTES] {
        return Ok(tail(0));
    }
    header(id).expect(file)?;
    let mut at = HEADER_BYTES as u64;
    while length - at >= FRAME_HEADER_BYTES as u64 {
        let mut head = [0; FRAME_HEADER_BYTES];
        file.read_at(at, &mut head)?;
        let bytes = u32::from_le_bytes(head[..4].try_into().expect("four bytes"));
        let next = at + FRAME_HEADER_BYTES as u64 + u64::from(bytes);
        if next > length {
            break;
        }
        let mut payload = vec![0; bytes as usize];
        file.read_at(at + FRAME_HEADER_BYTES as u64, &mut payload)?;
        if head != checked_header(id.1, at, &payload) {
            break;
        }
        each(FrameLocation { address: at, bytes }, &payload)?;
        at = next;
    }
    Ok(tail(at))
}

/// The name of a file.
pub(crate) fn file_name(name: &str, sequence: u64) -> String {
    format!("{name}-{sequence:016x}")
}

/// The number of a file with this name, if it is one of `name`.
pub(crate) fn sequence_of(name: &str, file: &str) -> Option<u64> {
    let digits = file.strip_prefix(name)?.strip_prefix('-')?;
    let sequence = u64::from_str_radix(digits, 16).ok()?;
    (file_name(name, sequence) == file).then_some(sequence)
}

/// The header of the frame at an offset of a file. A frame of another file does not match it, so
/// one that a removed file left on the disk is not taken for one of this.
fn checked_header(sequence: u64, offset: u64, payload: &[u8]) -> [u8; FRAME_HEADER_BYTES] {
    let address = sequence << 32 | offset;
    frame_header(FrameLocation { address, bytes: payload.len() as u32 }, payload, &[])
}

fn header((kind, sequence): FileId) -> Header {
    Header { kind, numbers: [sequence, 0] }
}
