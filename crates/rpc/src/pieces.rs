//! Bodies and messages as byte slices in order, never joined, some of them as hex digits.

mod prefetch;

use std::any::Any;
use std::collections::VecDeque;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use crate::limits::{FETCHED_BYTES, FETCHED_ITEMS, HEX_CHUNK_BYTES, LARGE_PIECE_BYTES};
use crate::spare;

/// A body or a message as a list of byte slices, which are sent one after the other without being
/// joined. A slice may be sent as its hex digits, which are rendered while it is sent.
///
/// ```
/// let mut pieces = deponent_rpc::Pieces::default();
/// pieces.push(&b"\"0x"[..]);
/// pieces.push_hex(vec![0x12, 0xab]);
/// pieces.push(&b"\""[..]);
/// assert_eq!(pieces.len_bytes(), 8);
/// assert_eq!(pieces.to_vec(), b"\"0x12ab\"");
/// ```
#[derive(Clone, Default)]
pub struct Pieces {
    list: VecDeque<Piece>,
    len_bytes: usize,
    /// The files in which slices may lie.
    files: Option<&'static dyn MappedFiles>,
    until_sent: Vec<Kept>,
}

/// A value that is kept until an answer is sent.
pub(crate) type Kept = Arc<dyn Any + Send + Sync>;

/// Mapped files whose memory slices may be. Such slices are read from the file while they are sent,
/// into buffers that are reused, since pages that are touched in a mapping become resident memory
/// of the process. Bytes that cannot be read so are taken from the mapping.
pub trait MappedFiles: Sync {
    /// Whether these bytes lie in such a file, and are not resident.
    fn have(&self, bytes: &[u8]) -> bool;

    /// Reads bytes that lie in such a file; false when they cannot be read.
    fn read(&self, bytes: &[u8], out: &mut [u8]) -> bool;

    /// Fills `out` with bytes, which are read if they lie in such a file.
    fn copy(&self, bytes: &[u8], out: &mut [u8]) {
        if !self.have(bytes) || !self.read(bytes, out) {
            out.copy_from_slice(bytes);
        }
    }

    /// Appends bytes, which are read if they lie in such a file.
    fn append(&self, bytes: &[u8], out: &mut Vec<u8>) {
        if !self.have(bytes) {
            return out.extend_from_slice(bytes);
        }
        let start = out.len();
        out.resize(start + bytes.len(), 0);
        self.copy(bytes, &mut out[start..]);
    }
}

/// A list of byte strings with a shared owner, which does not change. Small ones are copied while
/// they are sent: that is faster than counting the references of a slice of each.
pub trait ItemList: Send + Sync {
    /// A byte string, by its index.
    fn get(&self, index: usize) -> Option<&[u8]>;

    /// The same as a slice that keeps its memory alive.
    fn share(&self, index: usize) -> Option<Bytes>;

    /// Calls `take` on the byte strings from an index on, as long as it returns true. It is a
    /// method of the trait so that it is compiled for each list: only `take` is a dynamic call.
    fn each(&self, first: usize, take: &mut dyn FnMut(&[u8]) -> bool) {
        for index in first.. {
            // They lie anywhere in memory, and copying small ones is mostly waiting for it.
            if let Some(item) = self.get(index + FETCHED_ITEMS) {
                prefetch::prefetch(&item[..item.len().min(FETCHED_BYTES)]);
            }
            if !self.get(index).is_some_and(&mut *take) {
                break;
            }
        }
    }
}

#[derive(Clone)]
enum Piece {
    AsIs(Bytes),
    /// Two digits for each byte.
    Hex(Bytes),
    Items(ItemRun),
}

/// Consecutive items of a list.
#[derive(Clone)]
struct ItemRun {
    items: Arc<dyn ItemList>,
    /// The index of the first.
    first: usize,
    /// Bytes of the first item that were sent already.
    skipped: usize,
    /// Bytes in all; the last item may be cut.
    len_bytes: usize,
}

impl ItemRun {
    /// The rest of the first item.
    ///
    /// # Panics
    /// If the items have fewer bytes than [`Pieces::push_items`] was told.
    fn front(&self) -> &[u8] {
        if self.len_bytes == 0 {
            return &[];
        }
        let item = self.items.get(self.first).expect("the items have so many bytes");
        &item[self.skipped..][..(item.len() - self.skipped).min(self.len_bytes)]
    }

    /// The same, shared.
    fn share_front(&self) -> Bytes {
        let len = self.front().len();
        let item = self.items.share(self.first);
        item.map_or_else(Bytes::new, |item| item.slice(self.skipped..self.skipped + len))
    }

    /// Skips so many bytes, at most the rest of the first item, and empty items behind them.
    fn skip(&mut self, bytes: usize) {
        self.skipped += bytes;
        self.len_bytes -= bytes;
        while self.len_bytes > 0 && self.front().is_empty() {
            (self.first, self.skipped) = (self.first + 1, 0);
        }
    }

    /// Copies items until the buffer has so many bytes, or up to an item that is not copied.
    fn copy(&mut self, files: Option<&dyn MappedFiles>, buffer: &mut Vec<u8>, most_bytes: usize) {
        let Self { items, first, skipped, len_bytes } = self;
        items.each(*first, &mut |item| {
            let item = &item[*skipped..];
            let item = &item[..item.len().min(*len_bytes)];
            if !buffer.is_empty() && is_uncopied(files, item) {
                return false;
            }
            let bytes = item.len().min(most_bytes - buffer.len());
            extend(buffer, files, &item[..bytes]);
            *len_bytes -= bytes;
            (*first, *skipped) = match bytes == item.len() {
                true => (*first + 1, 0),
                false => (*first, *skipped + bytes),
            };
            *len_bytes > 0 && buffer.len() < most_bytes
        });
        self.skip(0);
    }

    /// Calls `take` on the rest of each item.
    fn each(&self, mut take: impl FnMut(&[u8])) {
        let (mut skipped, mut left) = (self.skipped, self.len_bytes);
        self.items.each(self.first, &mut |item| {
            let item = &item[std::mem::take(&mut skipped)..];
            let item = &item[..item.len().min(left)];
            take(item);
            left -= item.len();
            left > 0
        });
    }

    fn slice(&self, Range { start, end }: Range<usize>) -> Self {
        let mut sliced = Self { len_bytes: end, ..self.clone() };
        let mut left = start;
        while left > 0 {
            let bytes = left.min(sliced.front().len());
            sliced.skip(bytes);
            left -= bytes;
        }
        sliced
    }
}

impl Piece {
    /// Bytes as they are sent.
    fn len(&self) -> usize {
        match self {
            Self::AsIs(bytes) => bytes.len(),
            Self::Hex(bytes) => 2 * bytes.len(),
            Self::Items(run) => run.len_bytes,
        }
    }
}

impl Pieces {
    /// An empty list with capacity for so many slices.
    pub fn with_capacity(count: usize) -> Self {
        Self { list: VecDeque::with_capacity(count), ..Self::default() }
    }

    /// Adds a slice.
    pub fn push(&mut self, bytes: impl Into<Bytes>) {
        self.push_piece(Piece::AsIs(bytes.into()));
    }

    /// Adds a slice as its hex digits, without prefix and quotes.
    pub fn push_hex(&mut self, bytes: impl Into<Bytes>) {
        self.push_piece(Piece::Hex(bytes.into()));
    }

    /// Adds all items of a list, which have so many bytes in all.
    ///
    /// Sending them panics if they have fewer.
    pub fn push_items(&mut self, items: Arc<dyn ItemList>, len_bytes: usize) {
        let mut run = ItemRun { items, first: 0, skipped: 0, len_bytes };
        run.skip(0);
        self.push_piece(Piece::Items(run));
    }

    /// Names the files in which slices may lie.
    pub fn read_from(&mut self, files: &'static dyn MappedFiles) {
        self.files = Some(files);
    }

    /// Keeps a value until the bytes are sent, or will not be: as part of an answer, until the last
    /// of them was handed to the system, or written to a memory file.
    pub fn keep_until_sent(&mut self, value: Arc<dyn Any + Send + Sync>) {
        self.until_sent.push(value);
    }

    /// The values that are kept until the bytes are sent.
    pub(crate) fn until_sent(&self) -> &[Kept] {
        &self.until_sent
    }

    /// Adds all of `others`, and reads from their files.
    pub fn append(&mut self, mut others: Self) {
        self.until_sent.append(&mut others.until_sent);
        self.len_bytes += others.len_bytes;
        self.files = self.files.or(others.files);
        self.list.append(&mut others.list);
    }

    fn push_piece(&mut self, piece: Piece) {
        if piece.len() > 0 {
            self.len_bytes += piece.len();
            self.list.push_back(piece);
        }
    }

    /// Bytes in all, as they are sent.
    pub const fn len_bytes(&self) -> usize {
        self.len_bytes
    }

    /// Whether there is nothing to send.
    pub const fn is_empty(&self) -> bool {
        self.len_bytes == 0
    }

    /// Bytes of memory of the slices: half of those that are sent, for hex digits.
    pub fn held_bytes(&self) -> usize {
        let held = |piece: &Piece| match piece {
            Piece::AsIs(bytes) | Piece::Hex(bytes) => bytes.len(),
            Piece::Items(run) => run.len_bytes,
        };
        self.list.iter().map(held).sum()
    }

    /// Whether any slice is sent as digits.
    #[cfg(target_os = "linux")]
    pub(crate) fn has_digits(&self) -> bool {
        self.list.iter().any(|piece| matches!(piece, Piece::Hex(_)))
    }

    /// Copies all bytes, as they are sent, into `out`, which has the same length.
    #[cfg(target_os = "linux")]
    pub(crate) fn copy_to(&self, mut out: &mut [u8]) {
        let files = self.files;
        let mut copy = |bytes: &[u8]| {
            let (place, behind) = std::mem::take(&mut out).split_at_mut(bytes.len());
            read(files, bytes, place);
            out = behind;
        };
        for piece in &self.list {
            match piece {
                Piece::AsIs(bytes) => copy(bytes),
                Piece::Hex(bytes) => {
                    let mut digits = Vec::new();
                    extend_digits(&mut digits, files, bytes);
                    copy(&digits);
                }
                Piece::Items(run) => run.each(&mut copy),
            }
        }
    }

    /// The part of the sent bytes that lies in `range`, uncopied.
    ///
    /// # Panics
    /// If the range is not within [`len_bytes`](Self::len_bytes).
    pub fn slice(&self, range: Range<usize>) -> Self {
        assert!(range.start <= range.end && range.end <= self.len_bytes, "the range is within");
        let until_sent = self.until_sent.clone();
        let mut sliced = Self { files: self.files, until_sent, ..Self::default() };
        let mut start = 0;
        for piece in &self.list {
            let end = start + piece.len();
            let (from, to) = (range.start.max(start), range.end.min(end));
            if from < to {
                sliced.push_part(piece, from - start..to - start);
            }
            start = end;
        }
        sliced
    }

    fn push_part(&mut self, piece: &Piece, Range { start, end }: Range<usize>) {
        match piece {
            Piece::AsIs(bytes) => self.push(bytes.slice(start..end)),
            Piece::Items(run) => self.push_piece(Piece::Items(run.slice(start..end))),
            Piece::Hex(bytes) => {
                // A digit alone at either edge is sent as it is.
                let (first, last) = (start.div_ceil(2), end / 2);
                let digit = |at: usize| Bytes::copy_from_slice(&hex(&bytes[at / 2])[at % 2..][..1]);
                if start % 2 == 1 {
                    self.push(digit(start));
                }
                if first < last {
                    self.push_hex(bytes.slice(first..last));
                }
                if end % 2 == 1 {
                    self.push(digit(end - 1));
                }
            }
        }
    }

    /// Takes the bytes to be sent next: at most `most_bytes`, and at least one while any are left.
    /// A large slice is returned as it is, and so is a single one, unless it may lie in a file.
    /// Small slices, those of files, and digits are copied into one buffer.
    ///
    /// # Panics
    /// If `most_bytes` is below two, the digits of one byte.
    pub fn take(&mut self, most_bytes: usize) -> Bytes {
        assert!(most_bytes >= 2, "there is room for a byte's digits");
        if let Some(taken) = self.take_large(most_bytes) {
            return taken;
        }
        let files = self.files;
        let mut buffer = spare::chunk(most_bytes.min(self.len_bytes));
        // Slices are dropped after all copies: dropping one waits for the copies before. A first
        // slice that has become resident since is copied all the same: the result is never empty.
        let mut done = 0;
        while let Some(piece) = self.list.get_mut(done) {
            let room = most_bytes - buffer.len();
            let is_done = match piece {
                Piece::AsIs(bytes) if !buffer.is_empty() && is_uncopied(files, bytes) => break,
                Piece::AsIs(bytes) if bytes.len() <= room => {
                    extend(&mut buffer, files, bytes);
                    true
                }
                Piece::AsIs(bytes) => {
                    extend(&mut buffer, files, &bytes.split_to(room));
                    false
                }
                Piece::Hex(bytes) => {
                    let bytes_now = bytes.len().min(room / 2);
                    extend_digits(&mut buffer, files, &bytes.split_to(bytes_now));
                    bytes.is_empty()
                }
                Piece::Items(run) => {
                    run.copy(files, &mut buffer, most_bytes);
                    run.len_bytes == 0
                }
            };
            if !is_done {
                break;
            }
            done += 1;
        }
        self.list.drain(..done);
        self.len_bytes -= buffer.len();
        spare::lend_chunk(buffer)
    }

    /// Takes the first slice as it is, if it is large or the only one.
    fn take_large(&mut self, most_bytes: usize) -> Option<Bytes> {
        let files = self.files;
        let is_alone = self.list.len() == 1 && files.is_none();
        let is_large = |bytes: &[u8]| match bytes.len() >= LARGE_PIECE_BYTES {
            true => is_uncopied(files, bytes),
            false => bytes.len() >= most_bytes,
        };
        let piece = self.list.front_mut()?;
        let taken = match piece {
            Piece::AsIs(first) if is_alone || is_large(first) => {
                first.split_to(first.len().min(most_bytes))
            }
            Piece::Items(run) if is_large(run.front()) => {
                let mut taken = run.share_front();
                taken.truncate(most_bytes);
                run.skip(taken.len());
                taken
            }
            _ => return None,
        };
        if piece.len() == 0 {
            self.list.pop_front();
        }
        self.len_bytes -= taken.len();
        Some(taken)
    }

    /// All bytes joined: a copy, for tests and small values.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.len_bytes);
        for piece in &self.list {
            match piece {
                Piece::AsIs(bytes) => extend(&mut out, self.files, bytes),
                Piece::Hex(bytes) => extend_digits(&mut out, self.files, bytes),
                Piece::Items(run) => run.each(|item| extend(&mut out, self.files, item)),
            }
        }
        out
    }
}

impl From<Vec<u8>> for Pieces {
    fn from(bytes: Vec<u8>) -> Self {
        vec![Bytes::from(bytes)].into()
    }
}

impl From<Vec<Bytes>> for Pieces {
    fn from(slices: Vec<Bytes>) -> Self {
        let mut pieces = Self::with_capacity(slices.len());
        slices.into_iter().for_each(|slice| pieces.push(slice));
        pieces
    }
}

impl fmt::Debug for Pieces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes in {} pieces", self.len_bytes, self.list.len())
    }
}

/// Whether a slice is large and resident, so that it is not copied.
fn is_uncopied(files: Option<&dyn MappedFiles>, bytes: &[u8]) -> bool {
    bytes.len() >= LARGE_PIECE_BYTES && files.is_none_or(|files| !files.have(bytes))
}

/// Fills `out` with bytes, which are read from their file if they lie in one.
fn read(files: Option<&dyn MappedFiles>, bytes: &[u8], out: &mut [u8]) {
    match files {
        Some(files) => files.copy(bytes, out),
        None => out.copy_from_slice(bytes),
    }
}

fn extend(out: &mut Vec<u8>, files: Option<&dyn MappedFiles>, bytes: &[u8]) {
    match files {
        Some(files) => files.append(bytes, out),
        None => out.extend_from_slice(bytes),
    }
}

fn extend_digits(out: &mut Vec<u8>, files: Option<&dyn MappedFiles>, bytes: &[u8]) {
    if files.is_none_or(|files| !files.have(bytes)) {
        return push_digits(out, bytes);
    }
    let mut chunk = [0; HEX_CHUNK_BYTES];
    for bytes in bytes.chunks(chunk.len()) {
        let chunk = &mut chunk[..bytes.len()];
        read(files, bytes, chunk);
        push_digits(out, chunk);
    }
}

fn hex(byte: &u8) -> [u8; 2] {
    let mut digits = [0; 2];
    const_hex::encode_to_slice([*byte], &mut digits).expect("two digits for each byte");
    digits
}

/// Appends the digits of `bytes`, without prefix and quotes.
fn push_digits(out: &mut Vec<u8>, bytes: &[u8]) {
    out.reserve(2 * bytes.len());
    // In chunks, so that the zeroes are overwritten while they are in the cache.
    for chunk in bytes.chunks(HEX_CHUNK_BYTES) {
        let start = out.len();
        out.resize(start + 2 * chunk.len(), 0);
        const_hex::encode_to_slice(chunk, &mut out[start..]).expect("two digits for each byte");
    }
}

#[cfg(test)]
mod tests;
