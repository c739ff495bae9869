use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;

use crate::limits::QUOTE_CHARS;

/// The reason why a file could not be read or written, with the file and the position in it.
#[derive(Debug)]
pub struct Error {
    file: Arc<Path>,
    place: Location,
    problem: Problem,
}

/// A position in a file, as far as it is known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Location {
    /// The number of bytes before it.
    pub(super) offset: Option<u64>,
    /// Whether the offset counts decompressed bytes.
    pub(super) packed: bool,
    /// The line, from 1.
    pub(super) line: Option<u64>,
    /// The index of the block in the file, from 0.
    pub(super) block: Option<u64>,
}

#[derive(Debug)]
enum Problem {
    Io(io::Error),
    Content(String),
}

impl Error {
    /// Reading or writing `file` failed.
    pub(super) fn io(file: &Arc<Path>, error: io::Error) -> Self {
        Self { file: file.clone(), place: Location::default(), problem: Problem::Io(error) }
    }

    /// The content of `file` is wrong.
    pub(super) fn content(file: &Arc<Path>, place: Location, problem: impl Into<String>) -> Self {
        Self { file: file.clone(), place, problem: Problem::Content(problem.into()) }
    }

    /// Adds the index of the block, unless the problem is with the file as a whole.
    pub(super) fn in_block(mut self, index: u64) -> Self {
        if !self.is_content() || self.place.offset.is_some() || self.place.line.is_some() {
            self.place.block.get_or_insert(index);
        }
        self
    }

    /// Adds the line.
    pub(super) fn on_line(mut self, line: u64) -> Self {
        self.place.line.get_or_insert(line);
        self
    }

    /// The file.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// The offset of the problem in the decompressed content, in bytes, if it has one.
    pub const fn offset(&self) -> Option<u64> {
        self.place.offset
    }

    /// Whether the content is wrong, rather than the disk or the system: a retry with the same file
    /// cannot help.
    pub const fn is_content(&self) -> bool {
        matches!(self.problem, Problem::Content(_))
    }
}

/// The start of what a file says, for a problem: 200 characters, and `...` where there are more.
pub(super) fn quote(text: impl fmt::Display) -> String {
    struct Start(String, usize);
    impl fmt::Write for Start {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            for character in text.chars() {
                self.1 = self.1.checked_sub(1).ok_or(fmt::Error)?;
                self.0.push(character);
            }
            Ok(())
        }
    }
    let mut start = Start(String::new(), QUOTE_CHARS);
    if fmt::Write::write_fmt(&mut start, format_args!("{text}")).is_err() {
        start.0.push_str("...");
    }
    start.0
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.file.display())?;
        let Location { offset, packed, line, block } = self.place;
        if let Some(line) = line {
            write!(f, "line {line}, ")?;
        }
        if let Some(block) = block {
            write!(f, "block {} of the file, ", block + 1)?;
        }
        if let Some(offset) = offset {
            write!(
                f,
                "byte {offset}{}: ",
                if packed { " of the decompressed content" } else { "" }
            )?;
        }
        match &self.problem {
            Problem::Io(error) => write!(f, "{error}"),
            Problem::Content(problem) => f.write_str(problem),
        }
    }
}

/// The text includes the system's error, so there is no source: chains are printed whole.
impl std::error::Error for Error {}

/// The reason why the answers of a JSON-RPC server make no block.
#[derive(Debug)]
pub struct AnswerError(String);

impl AnswerError {
    /// The answer is wrong in this way.
    pub(super) fn content(problem: impl Into<String>) -> Self {
        Self(problem.into())
    }

    /// Adds what was asked for.
    pub(super) fn of(self, asked: impl fmt::Display) -> Self {
        Self(format!("{asked}: {}", self.0))
    }
}

impl fmt::Display for AnswerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for AnswerError {}
