use super::{Disk, File, mapped};
use crate::Error;
use std::fs::{self, OpenOptions, TryLockError};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
#[cfg(target_os = "linux")]
use {crate::limits::ANNOUNCED_BYTES, rustix::fs::Advice, std::num::NonZeroU64};

/// A directory of the file system. A lock file keeps other processes out.
#[derive(Debug)]
pub struct DirectoryDisk {
    directory: PathBuf,
    /// The directory itself, kept open so that it can be synced when no descriptors are left.
    handle: fs::File,
    /// The lock file. The lock ends with the process.
    _lock: fs::File,
}

/// The lock file's name.
const LOCK: &str = "lock";

impl DirectoryDisk {
    /// The directory, created if need be, durably.
    ///
    /// # Errors
    /// [`Error::InUse`] when another process (or another value of this type) has it, and the
    /// system's.
    pub fn open(directory: impl Into<PathBuf>) -> Result<Self, Error> {
        let directory = directory.into();
        let failed = |path: &Path, action, source| {
            super::io_error(path.display().to_string(), action, 0, source)
        };
        create_directory(&directory)
            .map_err(|source| failed(&directory, "create the directory", source))?;
        let path = directory.join(LOCK);
        let lock = OpenOptions::new().create(true).truncate(false).write(true).open(&path);
        let lock = lock.map_err(|source| failed(&path, "open the lock file", source))?;
        let handle = fs::File::open(&directory);
        let handle = handle.map_err(|source| failed(&directory, "open the directory", source))?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { directory, handle, _lock: lock }),
            Err(TryLockError::WouldBlock) => {
                Err(Error::InUse { directory: directory.display().to_string() })
            }
            Err(TryLockError::Error(source)) => Err(failed(&path, "lock", source)),
        }
    }
}

/// Creates a directory and those above it that are not there, each made durable in the one above.
///
/// # Errors
/// The system's.
pub fn create_directory(directory: &Path) -> io::Result<()> {
    if directory.is_dir() {
        return Ok(());
    }
    let above = match directory.parent() {
        Some(above) if !above.as_os_str().is_empty() => above,
        _ => Path::new("."),
    };
    create_directory(above)?;
    match fs::create_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && directory.is_dir() => {}
        other => other?,
    }
    fs::File::open(above)?.sync_all()
}

impl Disk for DirectoryDisk {
    fn open(&self, name: &str, create: bool) -> io::Result<Option<Arc<dyn File>>> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(create).truncate(false);
        match options.open(self.directory.join(name)) {
            Ok(file) => Ok(Some(Arc::new(file))),
            Err(error) if error.kind() == io::ErrorKind::NotFound && !create => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.directory)? {
            names.extend(entry?.file_name().into_string().ok());
        }
        Ok(names)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        match fs::remove_file(self.directory.join(name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other,
        }
    }

    fn sync(&self) -> io::Result<()> {
        self.handle.sync_all()
    }

    fn path(&self, name: &str) -> String {
        self.directory.join(name).display().to_string()
    }
}

impl File for fs::File {
    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        self.read_exact_at(bytes, offset)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.write_all_at(bytes, offset)
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        fs::File::set_len(self, bytes)
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }

    // Both are advice; reads work without it.
    #[cfg(target_os = "linux")]
    fn reads_are_random(&self) {
        rustix::fs::fadvise(self, 0, None, Advice::Random).ok();
    }

    #[cfg(target_os = "linux")]
    fn read_ahead(&self, offset: u64, bytes: u64) {
        let end = offset + bytes;
        for from in (offset..end).step_by(ANNOUNCED_BYTES as usize) {
            let bytes = NonZeroU64::new(ANNOUNCED_BYTES.min(end - from));
            rustix::fs::fadvise(self, from, bytes, Advice::WillNeed).ok();
        }
    }

    fn reopen(&self) -> io::Result<Option<fs::File>> {
        // The file may have been removed by name.
        fs::File::open(format!("/proc/self/fd/{}", self.as_raw_fd())).map(Some)
    }

    fn map(&self, bytes: u64) -> Option<&'static [u8]> {
        mapped::map(self, bytes)
    }
}
