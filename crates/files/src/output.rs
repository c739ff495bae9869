use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use flate2::Compression;
use flate2::write::GzEncoder;
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::process::geteuid;

use crate::error::{Error, Location};
use crate::limits::MOST_LINKS;

/// A file being written as `NAME.partial`: it is renamed once it is complete and durable. If the
/// output is dropped before, the partial file stays, and can be continued.
///
/// The standard output, `-`, and existing devices and pipes are written directly.
#[derive(Debug)]
pub(super) struct Output {
    /// The final path.
    path: PathBuf,
    /// The path that is written: the partial file, a device or a pipe.
    written: Arc<Path>,
    writer: Writer,
    /// The number of bytes of content written so far.
    bytes: u64,
}

#[derive(Debug)]
enum Writer {
    Plain(BufWriter<File>),
    Gzip(GzEncoder<BufWriter<File>>),
}

/// The exit status of a program for which a disk, or its standard output, takes no more: `EX_IOERR`
/// of sysexits.h.
pub const WRITE_FAILURE_STATUS: u8 = 74;

/// Whether an error is that of a disk or a file that takes no more: the system's number is at the
/// end of its text, which layers keep that keep nothing else of it.
pub fn is_write_failure(error: &(dyn std::error::Error + 'static)) -> bool {
    let numbers = [Errno::NOSPC, Errno::DQUOT, Errno::FBIG, Errno::ROFS, Errno::IO];
    let words = numbers.map(|number| format!("(os error {})", number.raw_os_error()));
    let mut causes = std::iter::successors(Some(error), |error| (*error).source());
    causes.any(|cause| {
        let text = cause.to_string();
        words.iter().any(|words| text.contains(words))
    })
}

/// The name of a file that is not complete.
pub(super) fn partial(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".partial");
    name.into()
}

/// Whether this path is the standard output, a device or a pipe, which is written directly instead
/// of being replaced.
pub fn is_stream(path: &Path) -> bool {
    let is_no_file = |data: Metadata| !data.is_file() && !data.is_dir();
    is_stdout(path) || is_descriptor(path) || path.metadata().is_ok_and(is_no_file)
}

/// Whether this is the standard output, by any of its names.
fn is_stdout(path: &Path) -> bool {
    let is_it = || {
        let (file, ours) = (rustix::fs::stat(path)?, rustix::fs::fstat(io::stdout())?);
        rustix::io::Result::Ok((file.st_dev, file.st_ino) == (ours.st_dev, ours.st_ino))
    };
    path.as_os_str() == "-" || is_descriptor(path) && is_it().unwrap_or(false)
}

/// Whether this names an open file descriptor, which may be a file.
fn is_descriptor(path: &Path) -> bool {
    ["/proc", "/dev/fd", "/dev/stdout", "/dev/stderr"].iter().any(|at| path.starts_with(at))
}

/// The target of a link, which may not exist yet: it is written instead of the link.
///
/// # Errors
/// If only one of their names ends in `.gz`.
pub(super) fn resolve(path: &Path) -> Result<PathBuf, Error> {
    let mut file = path.to_owned();
    for _ in 0..MOST_LINKS {
        match fs::read_link(&file) {
            Ok(next) if !is_descriptor(&file) => {
                file = file.parent().unwrap_or(Path::new("")).join(next);
            }
            _ => break,
        }
    }
    if is_gzip(&file) != is_gzip(path) {
        let problem =
            format!("a link to {}: the names of both end in .gz, or neither does", file.display());
        return Err(Error::content(&path.into(), Location::default(), problem));
    }
    Ok(file)
}

/// Whether a file of this name is compressed with gzip.
pub(super) fn is_gzip(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("gz"))
}

impl Output {
    /// Begins a file, compressed if its name ends in `.gz`.
    pub(super) fn create(path: &Path) -> Result<Self, Error> {
        Self::open(path, 0)
    }

    /// Continues the partial file after its first `bytes`; the rest is truncated. Compressed files
    /// cannot be continued.
    pub(super) fn go_on(path: &Path, bytes: u64) -> Result<Self, Error> {
        assert!(!is_gzip(path), "a compressed file is started over");
        Self::open(path, bytes)
    }

    fn open(path: &Path, bytes: u64) -> Result<Self, Error> {
        let (written, file): (Arc<Path>, _) = if is_stdout(path) {
            // An open descriptor is written from its position on.
            let stdout = io::stdout().as_fd().try_clone_to_owned();
            (path.into(), stdout.map(File::from))
        } else if is_stream(path) {
            (path.into(), File::options().append(true).open(path))
        } else if path.is_dir() {
            (path.into(), Err(io::ErrorKind::IsADirectory.into()))
        } else {
            let partial = partial(path);
            let file = match bytes {
                0 => create_partial(&partial),
                _ => open_partial(&partial, bytes),
            };
            (partial.into(), file)
        };
        let file = file.map_err(|error| Error::io(&written, error))?;
        let file = BufWriter::with_capacity(1 << 20, file);
        let writer = match is_gzip(path) {
            true => Writer::Gzip(GzEncoder::new(file, Compression::default())),
            false => Writer::Plain(file),
        };
        Ok(Self { path: path.into(), written, writer, bytes })
    }

    /// The path that it is to have.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The number of bytes of content written so far.
    pub(super) const fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let written = match &mut self.writer {
            Writer::Plain(file) => file.write_all(bytes),
            Writer::Gzip(file) => file.write_all(bytes),
        };
        self.bytes += bytes.len() as u64;
        written.map_err(|error| Error::io(&self.written, error))
    }

    /// The error that this content cannot be written to the file.
    pub(super) fn refuse(&self, problem: String) -> Error {
        Error::content(&self.path.as_path().into(), Location::default(), problem)
    }

    /// Syncs the file and renames it. An earlier file of that name is replaced.
    pub(super) fn finish(self) -> Result<(), Error> {
        let path = self.path.clone();
        self.finish_as(&path)
    }

    /// As [`Self::finish`], with another name in the same directory.
    pub(super) fn finish_as(self, path: &Path) -> Result<(), Error> {
        let Self { written, writer, .. } = self;
        let finish = || -> io::Result<()> {
            let file = match writer {
                Writer::Plain(file) => file.into_inner()?,
                Writer::Gzip(file) => file.finish()?.into_inner()?,
            };
            if &*written == path {
                return Ok(());
            }
            file.sync_all()?;
            fs::rename(&written, path)?;
            sync_folder(path)
        };
        finish().map_err(|error| Error::io(&written, error))
    }
}

/// Creates a file in place of an unfinished one. It is always a new one: whoever else may write to
/// the directory could have put a link to another file of ours there.
fn create_partial(path: &Path) -> io::Result<File> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    File::options().write(true).create_new(true).open(path)
}

/// Opens an unfinished file behind its first `bytes`, and truncates the rest.
fn open_partial(path: &Path, bytes: u64) -> io::Result<File> {
    let mut file = open_unfinished(path, File::options().write(true))?;
    file.set_len(bytes)?;
    file.seek(SeekFrom::End(0))?;
    Ok(file)
}

/// Opens an unfinished file, which is no link and not another user's.
pub(super) fn open_unfinished(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let file = options.custom_flags(flags).open(path)?;
    let data = file.metadata()?;
    if !data.is_file() || data.nlink() != 1 || data.uid() != geteuid().as_raw() {
        let problem = "it is a link, or another user's: remove it, and the export begins anew";
        return Err(io::Error::other(problem));
    }
    Ok(file)
}

/// Syncs the directory of `path`.
pub(super) fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}
