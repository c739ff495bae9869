use std::fmt;
use std::path::Path;

use crate::FileBlock;
use crate::e2store;
use crate::era::Era;
use crate::era1::Era1;
use crate::error::Error;
use crate::input::Input;
use crate::json::{Scanner, name};
use crate::payloads::Payloads;
use crate::rlp;

/// The forms of block files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockForm {
    /// The RLP of the blocks, concatenated.
    Rlp,
    /// An archive of proof-of-work blocks.
    Era1,
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
    /// The number of blocks read or skipped.
    index: u64,
    ended: bool,
}

#[allow(clippy::large_enum_variant)] // there is one a file
enum Content {
    Rlp(Input),
    Era1(Input, Era1),
    Era(Input, Era),
    Json(Scanner, Payloads),
}

impl BlockReader {
    /// Opens a file, or the standard input if `path` is `-`, and determines its form.
    ///
    /// # Errors
    /// If it cannot be read, is empty, or has an unknown form.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let content = Content::open(Input::open(path)?)?;
        Ok(Self { content, buffer: Vec::new(), first: 0, index: 0, ended: false })
    }

    /// As [`open`](Self::open), of what is in memory: the content of a file that is called `name`
    /// in errors.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn from_bytes(name: &Path, content: Vec<u8>) -> Result<Self, Error> {
        let content = Content::open(Input::of_bytes(name, content)?)?;
        Ok(Self { content, buffer: Vec::new(), first: 0, index: 0, ended: false })
    }

    /// Skips all blocks below `number` without decoding their bodies, such as those that are
    /// imported already. The file's own checksums and indices are still checked.
    #[must_use]
    pub const fn from_number(mut self, number: u64) -> Self {
        self.first = number;
        self
    }

    /// The form of the file.
    pub const fn form(&self) -> BlockForm {
        match self.content {
            Content::Rlp(_) => BlockForm::Rlp,
            Content::Era1(..) => BlockForm::Era1,
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

    /// The number of bytes of content consumed: in an uncompressed file the offset of the next
    /// block.
    pub(super) const fn offset(&self) -> u64 {
        self.content.input().offset()
    }

    fn read(&mut self) -> Result<Option<FileBlock>, Error> {
        let Self { content, buffer, first, index, .. } = self;
        let mut block = match content {
            Content::Rlp(input) => rlp::next(input, buffer, *first, index)?,
            Content::Era1(input, era1) => era1.next(input, *first, index)?,
            Content::Era(input, era) => era.next(input, *first, index)?,
            Content::Json(json, payloads) => payloads.next(json, *first, index)?,
        };
        if let Some(block) = &mut block {
            block.position.file = content.input().file().clone();
            block.position.index = *index - 1;
        }
        Ok(block)
    }
}

impl Iterator for BlockReader {
    type Item = Result<FileBlock, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let next = self.read().map_err(|error| error.in_block(self.index)).transpose();
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
                Some(e2store::COMPRESSED_HEADER) => Ok(Self::Era1(input, Era1::default())),
                Some(
                    e2store::COMPRESSED_BEACON_BLOCK
                    | e2store::COMPRESSED_BEACON_STATE
                    | e2store::VERSION,
                ) => Ok(Self::Era(input, Era::default())),
                other => {
                    let found = other.map_or("the end of the file".into(), e2store::name);
                    let problem = format!("neither an era1 nor an era file: {found} comes first");
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
            None => Err(json.error("a file with blocks expected, this one is empty")),
            found => Err(json.error(format!(
                "blocks expected, as RLP, era1, era or JSON: none of them begins with {}",
                name(found)
            ))),
        }
    }

    const fn input(&self) -> &Input {
        match self {
            Self::Rlp(input) | Self::Era1(input, _) | Self::Era(input, _) => input,
            Self::Json(json, _) => json.input(),
        }
    }
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
        write!(f, "BlockReader({file}, {:?}, {} blocks read)", self.form(), self.index)
    }
}
