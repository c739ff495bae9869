use std::fmt;
use std::path::Path;

use crate::FileBlock;
use crate::block::Seen;
use crate::e2store;
use crate::era::Era;
use crate::era1::Era1;
use crate::ere::Ere;
use crate::error::Error;
use crate::input::Input;
use crate::json::{Scanner, begins_hex, name};
use crate::limits::ARCHIVE_HEADER_BYTES;
use crate::payloads::Payloads;
use crate::rlp;

/// The forms of block files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockForm {
    /// The RLP of the blocks, concatenated.
    Rlp,
    /// An archive of proof-of-work blocks.
    Era1,
    /// An archive of blocks before and after the merge.
    Ere,
    /// An archive of beacon blocks.
    Era,
    /// Payloads or blocks in JSON.
    Json,
}

/// Reads the blocks of a file in order. The content determines the form, not the name.
///
/// The iterator ends after the first error. Its memory is bounded by the longest block.
pub struct BlockReader {
    content: Content,
    buffer: Vec<u8>,
    /// The number below which blocks are skipped.
    first: u64,
    seen: Seen,
    /// The first block of the file, read ahead of its turn.
    ahead: Option<FileBlock>,
    ended: bool,
}

#[allow(clippy::large_enum_variant)] // there is one a file
enum Content {
    Rlp(Input),
    Era1(Input, Era1),
    Ere(Input, Ere),
    Era(Input, Era),
    Json(Scanner, Payloads),
}

impl BlockReader {
    /// Opens a file, or the standard input if `path` is `-`, and determines its form.
    ///
    /// # Errors
    /// If it cannot be read, is empty, or has an unknown form.
    pub fn open(path: &Path) -> Result<Self, Error> {
        Self::of(Input::open(path)?)
    }

    /// As [`open`](Self::open), of what is in memory: the content of a file that is called `name`
    /// in errors.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn from_bytes(name: &Path, content: Vec<u8>) -> Result<Self, Error> {
        Self::of(Input::of_bytes(name, content)?)
    }

    fn of(input: Input) -> Result<Self, Error> {
        let (content, seen) = (Content::open(input)?, Seen::default());
        Ok(Self { content, buffer: Vec::new(), first: 0, seen, ahead: None, ended: false })
    }

    /// Skips all blocks below `number` without decoding their bodies, such as those that are
    /// imported already. The file's own checksums and indices are still checked.
    #[must_use]
    pub const fn from_number(mut self, number: u64) -> Self {
        self.first = number;
        self
    }

    /// Reads the first block ahead of its turn; it is still the first that the iterator gives.
    /// `None`: the file has none.
    pub(super) fn look_ahead(&mut self) -> Result<Option<&FileBlock>, Error> {
        self.ahead = self.next().transpose()?;
        Ok(self.ahead.as_ref())
    }

    /// Skips the rest of the file. Returns the highest number of a block in it.
    pub(super) fn highest(self) -> Result<Option<u64>, Error> {
        let mut reader = self.from_number(u64::MAX);
        while reader.next().transpose()?.is_some() {}
        Ok(reader.seen.highest)
    }

    /// The form of the file. That of an ere file of a single block, which begins as an era1 file,
    /// is known only when the block has been read.
    pub fn form(&self) -> BlockForm {
        match &self.content {
            Content::Rlp(_) => BlockForm::Rlp,
            Content::Era1(_, era1) if era1.is_ere() => BlockForm::Ere,
            Content::Era1(..) => BlockForm::Era1,
            Content::Ere(..) => BlockForm::Ere,
            Content::Era(..) => BlockForm::Era,
            Content::Json(..) => BlockForm::Json,
        }
    }

    /// The number of bytes consumed; of a compressed file, those read so far.
    pub fn done_bytes(&self) -> u64 {
        self.content.input().done_bytes()
    }

    /// The length of the file in bytes; `None` if it has none, like the standard input.
    pub const fn file_bytes(&self) -> Option<u64> {
        self.content.input().file_bytes()
    }

    /// Whether the file is compressed.
    pub(super) const fn is_packed(&self) -> bool {
        self.content.input().is_packed()
    }

    fn read(&mut self) -> Result<Option<FileBlock>, Error> {
        let Self { content, buffer, first, seen, .. } = self;
        let mut block = match content {
            Content::Rlp(input) => rlp::next(input, buffer, *first, seen)?,
            Content::Era1(input, era1) => era1.next(input, *first, seen)?,
            Content::Ere(input, ere) => ere.next(input, *first, seen)?,
            Content::Era(input, era) => era.next(input, *first, seen)?,
            Content::Json(json, payloads) => payloads.next(json, *first, seen)?,
        };
        if let Some(block) = &mut block {
            block.position.file = content.input().file().clone();
            block.position.index = seen.blocks - 1;
        }
        Ok(block)
    }
}

impl Iterator for BlockReader {
    type Item = Result<FileBlock, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let ahead = self.ahead.take().filter(|ahead| ahead.block.header.number >= self.first);
        if let Some(block) = ahead {
            return Some(Ok(block));
        }
        if self.ended {
            return None;
        }
        let next = self.read().map_err(|error| error.in_block(self.seen.blocks)).transpose();
        self.ended = !matches!(next, Some(Ok(_)));
        next
    }
}

impl Content {
    fn open(mut input: Input) -> Result<Self, Error> {
        const BYTE_ORDER_MARK: &[u8] = &[0xef, 0xbb, 0xbf];
        let head = input.fill(2 * e2store::HEADER_BYTES as usize)?;
        if head.starts_with(&e2store::MAGIC) {
            let next = head.get(8..10).map(|kind| u16::from_le_bytes([kind[0], kind[1]]));
            return match next {
                Some(e2store::COMPRESSED_HEADER) => match is_ere(&mut input)? {
                    true => Ok(Self::Ere(input, Ere::default())),
                    false => Ok(Self::Era1(input, Era1::default())),
                },
                Some(
                    e2store::COMPRESSED_BEACON_BLOCK
                    | e2store::COMPRESSED_BEACON_STATE
                    | e2store::VERSION,
                ) => Ok(Self::Era(input, Era::default())),
                other => {
                    let found = other.map_or("the end of the file".into(), e2store::name);
                    let problem =
                        format!("neither an era1, an ere nor an era file: {found} comes first");
                    Err(input.error(8, problem))
                }
            };
        }
        if head.starts_with(BYTE_ORDER_MARK) {
            input.advance(BYTE_ORDER_MARK.len());
        } else if let Some(0xc0..) = head.first() {
            return Ok(Self::Rlp(input));
        }
        let mut json = Scanner::new(input, 1);
        match json.peek()? {
            Some(b'{' | b'[') => Ok(Self::Json(json, Payloads::default())),
            Some(first) if begins_hex(first) => Ok(Self::Json(json, Payloads::default())),
            None => Err(json.error("a file with blocks expected, this one is empty")),
            found => Err(json.error(format!(
                "blocks expected, as RLP, era1, ere, era or JSON, or RLP in hex: none of them \
                 begins with {}",
                name(found)
            ))),
        }
    }

    const fn input(&self) -> &Input {
        match self {
            Self::Rlp(input) | Self::Era1(input, _) | Self::Ere(input, _) | Self::Era(input, _) => {
                input
            }
            Self::Json(json, _) => json.input(),
        }
    }
}

/// Whether the second entry of an archive that begins with a header is another header. An era1 file
/// has a body there, as has an ere file of a single block.
fn is_ere(input: &mut Input) -> Result<bool, Error> {
    // Version, and the head of the first entry.
    const HEADS: usize = 2 * e2store::HEADER_BYTES as usize;
    let Some(&[_, _, l0, l1, l2, l3, _, _]) = input.fill(HEADS)?.get(8..HEADS) else {
        return Ok(false);
    };
    let value_bytes = u32::from_le_bytes([l0, l1, l2, l3]) as usize;
    // A longer header is refused when it is read.
    if value_bytes > 2 * ARCHIVE_HEADER_BYTES as usize {
        return Ok(false);
    }
    let second = input.fill(HEADS + value_bytes + 2)?.get(HEADS + value_bytes..);
    let kind = e2store::COMPRESSED_HEADER.to_le_bytes();
    Ok(second.is_some_and(|second| second.starts_with(&kind)))
}

/// Reads a whole file, or the standard input if `path` is `-`, decompressed, if that is no more
/// than `most_bytes`.
///
/// # Errors
/// If it cannot be read, is longer, or is compressed otherwise than with gzip or zstd.
pub fn read_file(path: &Path, most_bytes: u64) -> Result<Vec<u8>, Error> {
    Input::open(path)?.read_all(most_bytes)
}

impl fmt::Debug for BlockReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = self.content.input().file().display();
        write!(f, "BlockReader({file}, {:?}, {} blocks read)", self.form(), self.seen.blocks)
    }
}
