use std::fs::{self, File, Metadata};
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::error::{Error, Place};

/// A file being written, as `NAME.partial` beside where it will be: it gets its name when it is
/// whole and on the disk. Dropped before, the partial file stays, so that it can be gone on with.
///
/// The standard output, `-`, and what is there and no file (a device, a pipe) is written as it is.
#[derive(Debug)]
pub(super) struct Output {
    /// What the file will be called.
    path: PathBuf,
    /// What is written: the partial file, or what is no file.
    written: Arc<Path>,
    writer: Writer,
    /// Bytes of content written so far.
    bytes: u64,
}

#[derive(Debug)]
enum Writer {
    Plain(BufWriter<File>),
    Gzip(GzEncoder<BufWriter<File>>),
}

/// The name that a file has until it is whole.
pub(super) fn partial(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".partial");
    name.into()
}

/// Whether this is written as it is, and not replaced: it is the standard output, or no file.
pub fn is_stream(path: &Path) -> bool {
    let is_no_file = |data: Metadata| !data.is_file() && !data.is_dir();
    is_stdout(path) || is_descriptor(path) || path.metadata().is_ok_and(is_no_file)
}

/// Whether this is the standard output, under whatever name.
fn is_stdout(path: &Path) -> bool {
    let is_it = || {
        let (file, ours) = (rustix::fs::stat(path)?, rustix::fs::fstat(io::stdout())?);
        rustix::io::Result::Ok((file.st_dev, file.st_ino) == (ours.st_dev, ours.st_ino))
    };
    path.as_os_str() == "-" || is_descriptor(path) && is_it().unwrap_or(false)
}

/// Whether this names what is open already, which may be a file.
fn is_descriptor(path: &Path) -> bool {
    ["/proc", "/dev/fd", "/dev/stdout", "/dev/stderr"].iter().any(|at| path.starts_with(at))
}

/// The file that a link leads to, which may not be there yet: it is written, and not the link.
///
/// # Errors
/// If only one of their names says that it is packed.
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
        let problem = format!(
            "a link to {}: the names of both end in .gz, and it is packed, or neither does",
            file.display()
        );
        return Err(Error::content(&path.into(), Place::default(), problem));
    }
    Ok(file)
}

/// Links that lead to each other, as the system bounds them.
const MOST_LINKS: usize = 40;

/// Whether a file of this name is packed with gzip.
pub(super) fn is_gzip(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("gz"))
}

impl Output {
    /// Begins a file. One whose name ends in `.gz` is packed.
    pub(super) fn create(path: &Path) -> Result<Self, Error> {
        Self::open(path, 0)
    }

    /// Goes on with the partial file after its first `bytes`; what follows them is cut off. Only
    /// files that are not packed can be gone on with.
    pub(super) fn go_on(path: &Path, bytes: u64) -> Result<Self, Error> {
        assert!(!is_gzip(path), "a packed file begins anew");
        Self::open(path, bytes)
    }

    fn open(path: &Path, bytes: u64) -> Result<Self, Error> {
        let (written, file): (Arc<Path>, _) = if is_stdout(path) {
            // It goes on where that is, behind what is there.
            let stdout = io::stdout().as_fd().try_clone_to_owned();
            (path.into(), stdout.map(File::from))
        } else if is_stream(path) {
            (path.into(), File::options().append(true).open(path))
        } else if path.is_dir() {
            (path.into(), Err(io::ErrorKind::IsADirectory.into()))
        } else {
            let partial = partial(path);
            let open = || {
                let mut file =
                    File::options().write(true).create(true).truncate(false).open(&partial)?;
                file.set_len(bytes)?;
                file.seek(SeekFrom::End(0))?;
                Ok(file)
            };
            let file = open();
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

    /// Bytes of content written so far.
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

    /// The error that something cannot be written into this file.
    pub(super) fn refuse(&self, problem: String) -> Error {
        Error::content(&self.path.as_path().into(), Place::default(), problem)
    }

    /// Brings the file to the disk, and gives it its name. A file that has the name is replaced.
    pub(super) fn finish(self) -> Result<(), Error> {
        let path = self.path.clone();
        self.finish_as(&path)
    }

    /// As [`Self::finish`], with another name in the same folder.
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

/// Brings the names in the folder of `path` to the disk.
pub(super) fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}
