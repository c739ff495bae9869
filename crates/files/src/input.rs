use std::fmt;
use std::fs::File;
use std::io::{self, BufReader, Chain, Cursor, Read, Seek, SeekFrom, Stdin};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flate2::bufread::MultiGzDecoder;

use crate::error::{Error, Location};
use crate::limits::{
    BLOCK_BYTES, DOUBLED_BYTES, INPUT_BUFFER_BYTES, PACKED_BYTES, PACKED_TIMES, ZSTD_WINDOW_LOG,
};

/// A file or the standard input, decompressed and read in order, with positions for errors.
///
/// gzip and zstd are recognised by their first bytes.
pub(super) struct Input {
    file: Arc<Path>,
    source: Decoder,
    /// The number of bytes of the file read so far, and its length if it has one.
    file_read: Arc<AtomicU64>,
    file_bytes: Option<u64>,
    buffer: Box<[u8]>,
    /// The range of the buffer that is filled and not yet consumed.
    start: usize,
    end: usize,
    /// The number of bytes of content before `start`.
    offset: u64,
}

enum Decoder {
    Plain(CountingReader<RawInput>),
    Gzip(Box<MultiGzDecoder<CompressedReader>>),
    Zstd(zstd::Decoder<'static, CompressedReader>),
}

/// The bytes read to recognise the compression, and then the rest.
type CompressedReader = BufReader<Chain<Cursor<Vec<u8>>, CountingReader<RawInput>>>;

enum RawInput {
    File(File),
    Stdin(Stdin),
    Memory(Cursor<Vec<u8>>),
}

/// Makes room for so many more bytes of `most` in all. Growth by doubling would hold an old and a
/// new buffer of nearly that size; so a long one gets the room of the longest block at once, which
/// takes memory only where it is filled.
pub(super) fn make_room(out: &mut Vec<u8>, more: usize, most: u64) {
    let len = out.len() + more;
    if len > DOUBLED_BYTES && len > out.capacity() {
        let room = (2 * len as u64).max(BLOCK_BYTES).min(most).max(len as u64);
        out.reserve_exact(usize::try_from(room).map_or(more, |room| room - out.len()));
    }
}

impl Input {
    /// Opens `file`; `-` is the standard input.
    pub(super) fn open(path: &Path) -> Result<Self, Error> {
        Self::open_plain(path, INPUT_BUFFER_BYTES)?.unpacked()
    }

    /// Reads what is in memory, as the content of `file`.
    pub(super) fn of_bytes(file: &Path, bytes: Vec<u8>) -> Result<Self, Error> {
        let file_bytes = Some(bytes.len() as u64);
        Self::of(file.into(), RawInput::Memory(Cursor::new(bytes)), file_bytes, INPUT_BUFFER_BYTES)
            .unpacked()
    }

    /// Decompresses, if the first bytes are those of a compressed file.
    fn unpacked(mut self) -> Result<Self, Error> {
        let input = &mut self;
        let head = input.fill(8)?;
        let magic: [u8; 4] = std::array::from_fn(|at| head.get(at).copied().unwrap_or(0));
        match magic {
            [0x1f, 0x8b, ..] => {
                input.unpack(|raw| Ok(Decoder::Gzip(MultiGzDecoder::new(raw).into())))?;
            }
            // A frame, or a skippable frame.
            [0x28, 0xb5, 0x2f, 0xfd] | [0x50..=0x5f, 0x2a, 0x4d, 0x18] => input.unpack(|raw| {
                let mut decoder = zstd::Decoder::with_buffer(raw)?;
                decoder.window_log_max(ZSTD_WINDOW_LOG)?;
                Ok(Decoder::Zstd(decoder))
            })?,
            [b'B', b'Z', b'h', b'1'..=b'9'] => {
                let problem = "bzip2, which is not read: unpack it first (bunzip2)";
                return Err(input.error(0, problem));
            }
            [0xfd, b'7', b'z', b'X'] => {
                return Err(input.error(0, "xz, which is not read: unpack it first (unxz)"));
            }
            _ => {}
        }
        Ok(self)
    }

    /// Opens `file` without decompressing it, to read `buffer_bytes` at a time.
    pub(super) fn open_plain(path: &Path, buffer_bytes: usize) -> Result<Self, Error> {
        let file: Arc<Path> = path.into();
        let (raw, file_bytes) = if path.as_os_str() == "-" {
            (RawInput::Stdin(io::stdin()), None)
        } else {
            let open = || {
                let opened = File::open(path)?;
                let data = opened.metadata()?;
                if data.is_dir() {
                    return Err(io::Error::from(io::ErrorKind::IsADirectory));
                }
                Ok((opened, data.is_file().then_some(data.len())))
            };
            let (opened, bytes) = open().map_err(|error| Error::io(&file, error))?;
            (RawInput::File(opened), bytes)
        };
        Ok(Self::of(file, raw, file_bytes, buffer_bytes))
    }

    fn of(file: Arc<Path>, raw: RawInput, file_bytes: Option<u64>, buffer_bytes: usize) -> Self {
        let file_read = Arc::new(AtomicU64::new(0));
        let source = Decoder::Plain(CountingReader { raw, read: file_read.clone() });
        let buffer = vec![0; buffer_bytes].into_boxed_slice();
        Self { file, source, file_read, file_bytes, buffer, start: 0, end: 0, offset: 0 }
    }

    /// Reads through a decoder, from the beginning.
    fn unpack(
        &mut self,
        decoder: impl FnOnce(CompressedReader) -> io::Result<Decoder>,
    ) -> Result<(), Error> {
        let head = self.buffer[self.start..self.end].to_vec();
        let nothing = CountingReader { raw: RawInput::Stdin(io::stdin()), read: Arc::default() };
        match std::mem::replace(&mut self.source, Decoder::Plain(nothing)) {
            Decoder::Plain(rest) => {
                let packed = Cursor::new(head).chain(rest);
                let packed = BufReader::with_capacity(INPUT_BUFFER_BYTES, packed);
                self.source = decoder(packed).map_err(|error| Error::io(&self.file, error))?;
            }
            Decoder::Gzip(_) | Decoder::Zstd(_) => unreachable!("unpacked once"),
        }
        (self.start, self.end) = (0, 0);
        Ok(())
    }

    pub(super) const fn file(&self) -> &Arc<Path> {
        &self.file
    }

    /// The number of bytes of content consumed so far.
    pub(super) const fn offset(&self) -> u64 {
        self.offset
    }

    /// The number of bytes of the file consumed, for progress; of a compressed one, those read.
    pub(super) fn done_bytes(&self) -> u64 {
        match self.source {
            Decoder::Plain(_) => self.offset,
            Decoder::Gzip(_) | Decoder::Zstd(_) => self.file_read.load(Ordering::Relaxed),
        }
    }

    /// The length of the file in bytes, if it has one.
    pub(super) const fn file_bytes(&self) -> Option<u64> {
        self.file_bytes
    }

    /// Whether the file is compressed.
    pub(super) const fn is_packed(&self) -> bool {
        !matches!(self.source, Decoder::Plain(_))
    }

    /// A position in this file.
    pub(super) const fn place(&self, offset: u64) -> Location {
        Location { offset: Some(offset), packed: self.is_packed(), line: None, block: None }
    }

    /// An error about the content at `offset`.
    pub(super) fn error(&self, offset: u64, problem: impl Into<String>) -> Error {
        Error::content(&self.file, self.place(offset), problem)
    }

    /// Shows at least the next `bytes`, fewer only at the end. They must fit into the buffer.
    #[inline]
    pub(super) fn fill(&mut self, bytes: usize) -> Result<&[u8], Error> {
        if self.end - self.start < bytes {
            self.refill(bytes)?;
        }
        Ok(&self.buffer[self.start..self.end])
    }

    /// As [`Self::fill`], with a larger buffer where that is needed.
    pub(super) fn preview(&mut self, bytes: usize) -> Result<&[u8], Error> {
        if bytes > self.buffer.len() {
            let mut buffer = vec![0; bytes];
            let shown = &self.buffer[self.start..self.end];
            buffer[..shown.len()].copy_from_slice(shown);
            (self.start, self.end) = (0, shown.len());
            self.buffer = buffer.into_boxed_slice();
        }
        self.fill(bytes)
    }

    fn refill(&mut self, bytes: usize) -> Result<(), Error> {
        assert!(bytes <= self.buffer.len(), "the buffer holds {bytes} bytes");
        self.buffer.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        while self.end < bytes {
            match self.source.read(&mut self.buffer[self.end..]) {
                Ok(0) => break,
                Ok(read) => self.end += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.read_error(error)),
            }
        }
        Ok(())
    }

    /// Classifies an error: decoders report wrong content as I/O errors.
    fn read_error(&self, error: io::Error) -> Error {
        let name = match self.source {
            Decoder::Plain(_) => return Error::io(&self.file, error),
            Decoder::Gzip(_) => "gzip",
            Decoder::Zstd(_) => "zstd",
        };
        if error.raw_os_error().is_some() {
            return Error::io(&self.file, error);
        }
        let at = self.offset + (self.end - self.start) as u64;
        self.error(at, format!("the {name} wrapping cannot be read on: {error}"))
    }

    /// Consumes bytes that [`Self::fill`] has shown.
    #[inline]
    pub(super) fn advance(&mut self, bytes: usize) {
        assert!(bytes <= self.end - self.start, "taken what was not shown");
        self.start += bytes;
        self.offset += bytes as u64;
    }

    /// Appends the next `bytes` to `out`. Memory grows with the actual content, not with `bytes`.
    pub(super) fn read_into(&mut self, out: &mut Vec<u8>, bytes: u64) -> Result<(), Error> {
        let (start, mut left) = (self.offset, bytes);
        while left > 0 {
            let shown = self.fill(1)?;
            if shown.is_empty() {
                return Err(self.cut_off(start, bytes));
            }
            let taken = shown.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            out.extend_from_slice(&shown[..taken]);
            self.advance(taken);
            left -= taken as u64;
        }
        Ok(())
    }

    /// All that is left, if that is no more than `most` bytes.
    pub(super) fn read_all(&mut self, most: u64) -> Result<Vec<u8>, Error> {
        let mut out = Vec::new();
        loop {
            let shown = self.fill(1)?.len();
            if shown == 0 {
                return Ok(out);
            }
            self.check_whole((out.len() + shown) as u64, most)?;
            make_room(&mut out, shown, most);
            out.extend_from_slice(&self.buffer[self.start..self.end]);
            self.advance(shown);
        }
    }

    /// Refuses content that is too long to be read whole.
    fn check_whole(&self, bytes: u64, most: u64) -> Result<(), Error> {
        if bytes > most {
            let shown = most >> 20;
            let problem = format!("longer than {most} bytes ({shown} MiB), the most that is read");
            return Err(self.error(0, problem));
        }
        let read = self.file_read.load(Ordering::Relaxed);
        if self.is_packed() && bytes > PACKED_BYTES.max(read.saturating_mul(PACKED_TIMES)) {
            let (free, times) = (PACKED_BYTES >> 20, PACKED_TIMES);
            let problem = format!(
                "packed content of more than {free} MiB, and more than {times} times as long as \
                 the file is so far, as files are that are to fill the memory: if it is none of \
                 them, unpack it first"
            );
            return Err(self.error(0, problem));
        }
        Ok(())
    }

    /// The next `N` bytes.
    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let start = self.offset;
        let Some(bytes) = self.fill(N)?.first_chunk::<N>().copied() else {
            return Err(self.cut_off(start, N as u64));
        };
        self.advance(N);
        Ok(bytes)
    }

    /// Skips the next `bytes`, without reading them if the file is seekable.
    pub(super) fn skip(&mut self, bytes: u64) -> Result<(), Error> {
        let (start, mut left) = (self.offset, bytes);
        let buffered = ((self.end - self.start) as u64).min(left);
        self.advance(buffered as usize);
        left -= buffered;
        if left == 0 {
            return Ok(());
        }
        if let (Decoder::Plain(CountingReader { raw: RawInput::File(file), .. }), Some(length)) =
            (&mut self.source, self.file_bytes)
        {
            if length.saturating_sub(self.offset) < left {
                return Err(self.cut_off(start, bytes));
            }
            file.seek(SeekFrom::Start(self.offset + left))
                .map_err(|error| Error::io(&self.file, error))?;
            self.offset += left;
            return Ok(());
        }
        while left > 0 {
            let shown = self.fill(1)?.len();
            if shown == 0 {
                return Err(self.cut_off(start, bytes));
            }
            let taken = shown.min(usize::try_from(left).unwrap_or(usize::MAX));
            self.advance(taken);
            left -= taken as u64;
        }
        Ok(())
    }

    /// The error that the file ends within `bytes` from `start`.
    pub(super) fn cut_off(&self, start: u64, bytes: u64) -> Error {
        let end = self.offset + (self.end - self.start) as u64;
        let end = match (&self.source, self.file_bytes) {
            (Decoder::Plain(_), Some(length)) => length.max(end),
            _ => end,
        };
        let there = end.saturating_sub(start);
        self.error(start, format!("{bytes} bytes expected, the file ends after {there} of them"))
    }
}

impl fmt::Debug for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Input({}, at {})", self.file.display(), self.offset)
    }
}

impl Read for Input {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let shown = self.fill(1).map_err(io::Error::other)?;
        let taken = shown.len().min(out.len());
        out[..taken].copy_from_slice(&shown[..taken]);
        self.advance(taken);
        Ok(taken)
    }
}

impl Read for Decoder {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(raw) => raw.read(out),
            Self::Gzip(decoder) => decoder.read(out),
            Self::Zstd(decoder) => decoder.read(out),
        }
    }
}

impl Read for RawInput {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::File(file) => file.read(out),
            Self::Stdin(stdin) => stdin.read(out),
            Self::Memory(bytes) => bytes.read(out),
        }
    }
}

/// Counts the bytes read.
struct CountingReader<R> {
    raw: R,
    read: Arc<AtomicU64>,
}

impl<R: Read> Read for CountingReader<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = self.raw.read(out)?;
        self.read.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_content_is_moved_once() {
        let (mut out, mut moves) = (Vec::new(), 0);
        let piece = vec![0; 1 << 20];
        while out.len() < 4 * DOUBLED_BYTES + piece.len() {
            let before = out.capacity();
            make_room(&mut out, piece.len(), BLOCK_BYTES);
            out.extend_from_slice(&piece);
            moves += u32::from(out.capacity() != before && out.len() > DOUBLED_BYTES);
        }
        assert_eq!((moves, out.capacity() as u64), (1, BLOCK_BYTES));
        make_room(&mut out, 1 << 20, 140 << 20);
        assert_eq!(out.capacity() as u64, BLOCK_BYTES);
    }
}
