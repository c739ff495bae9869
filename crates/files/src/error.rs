use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Why a file could not be read or written: which file, where, and what was wrong.
#[derive(Debug)]
pub struct Error {
    file: Arc<Path>,
    place: Place,
    problem: Problem,
}

/// Where in a file something is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Place {
    /// Bytes before it.
    pub(super) offset: Option<u64>,
    /// Whether these are bytes of what a compressed file unpacks to.
    pub(super) packed: bool,
    /// The line, from 1.
    pub(super) line: Option<u64>,
    /// The block's place among the file's blocks, from 0.
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
        Self { file: file.clone(), place: Place::default(), problem: Problem::Io(error) }
    }

    /// What `file` holds is not what it should be.
    pub(super) fn content(file: &Arc<Path>, place: Place, problem: impl Into<String>) -> Self {
        Self { file: file.clone(), place, problem: Problem::Content(problem.into()) }
    }

    /// The same error, about the block that is `index` in the file.
    pub(super) fn in_block(mut self, index: u64) -> Self {
        self.place.block.get_or_insert(index);
        self
    }

    /// The same error, on this line of the file.
    pub(super) fn on_line(mut self, line: u64) -> Self {
        self.place.line.get_or_insert(line);
        self
    }

    /// The file.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Bytes before the problem, in what the file unpacks to, where it has a place.
    pub const fn offset(&self) -> Option<u64> {
        self.place.offset
    }

    /// Whether the file's content is at fault, and not the disk or the system: trying again with
    /// the same file cannot help.
    pub const fn is_content(&self) -> bool {
        matches!(self.problem, Problem::Content(_))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.file.display())?;
        let Place { offset, packed, line, block } = self.place;
        if let Some(line) = line {
            write!(f, "line {line}, ")?;
        }
        if let Some(block) = block {
            write!(f, "block {} of the file, ", block + 1)?;
        }
        if let Some(offset) = offset {
            write!(f, "byte {offset}{}: ", if packed { " of the unpacked content" } else { "" })?;
        }
        match &self.problem {
            Problem::Io(error) => write!(f, "{error}"),
            Problem::Content(problem) => f.write_str(problem),
        }
    }
}

/// What the system said is in the text, and no source beside it: chains are shown whole.
impl std::error::Error for Error {}
