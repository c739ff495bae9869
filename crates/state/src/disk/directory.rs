use super::{Disk, File, mapped};
use crate::Error;
use std::fs::{self, OpenOptions, TryLockError};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::OFlags;
#[cfg(target_os = "linux")]
use {crate::limits::ANNOUNCED_BYTES, rustix::fs::Advice, std::num::NonZeroU64};

/// A directory of the file system. A lock file keeps other processes out.
#[derive(Debug)]
pub struct DirectoryDisk {
    directory: PathBuf,
    /// The directory itself, kept open so that it can be synced when no descriptors are left.
    handle: fs::File,
    /// The lock file. The lock ends with this value, or with the process.
    lock: fs::File,
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
            let source = with_owner(path, source, this_user());
            super::io_error(path.display().to_string(), action, 0, source)
        };
        create_directory(&directory)
            .map_err(|source| failed(&directory, "create the directory", source))?;
        let path = directory.join(LOCK);
        let lock = open_lock(&path);
        let lock = lock.map_err(|source| failed(&path, "open the lock file", source))?;
        let handle = fs::File::open(&directory);
        let handle = handle.map_err(|source| failed(&directory, "open the directory", source))?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { directory, handle, lock }),
            Err(TryLockError::WouldBlock) => {
                Err(Error::InUse { directory: directory.display().to_string() })
            }
            Err(TryLockError::Error(source)) => Err(failed(&path, "lock", source)),
        }
    }
}

impl Drop for DirectoryDisk {
    fn drop(&mut self) {
        // Closing the file does not suffice: a child process that another thread starts has the
        // descriptor, and so the lock, until it runs its program.
        self.lock.unlock().ok();
    }
}

/// A refusal to `user` with the owner of what was refused, or of the directory above it: it is that
/// user's process which may use it.
fn with_owner(path: &Path, source: io::Error, user: Option<u32>) -> io::Error {
    let found = |path: &Path| fs::metadata(path).ok().map(|data| (path.to_owned(), data.uid()));
    let (io::ErrorKind::PermissionDenied, Some((path, owner))) =
        (source.kind(), path.ancestors().find_map(found))
    else {
        return source;
    };
    // The process's own files are refused for another reason: a read-only directory, say.
    if user == Some(owner) {
        return source;
    }
    let owner = user_name(owner).unwrap_or_else(|| format!("with the id {owner}"));
    let path = path.display();
    io::Error::new(
        source.kind(),
        format!("{source}: {path} belongs to the user {owner}; run this as that user (sudo -u)"),
    )
}

/// The user that this process runs as.
fn this_user() -> Option<u32> {
    fs::metadata("/proc/self").ok().map(|own| own.uid())
}

/// The name of a user of this machine.
fn user_name(id: u32) -> Option<String> {
    let users = fs::read_to_string("/etc/passwd").ok()?;
    let mut users = users.lines().map(|line| line.split(':').collect::<Vec<_>>());
    let user = users.find(|user| user.get(2).is_some_and(|field| *field == id.to_string()))?;
    Some(user[0].to_owned())
}

/// Opens the lock file, for its owner alone: another user who may open it could lock it. An earlier
/// one that is open to others is closed to them.
fn open_lock(path: &Path) -> io::Result<fs::File> {
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).write(true).mode(0o600);
    // Without it, opening a pipe would wait for a reader.
    options.custom_flags((OFlags::NONBLOCK | OFlags::NOFOLLOW).bits().cast_signed());
    let lock = options.open(path)?;
    let data = lock.metadata()?;
    if !data.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    if data.permissions().mode() & 0o077 != 0 {
        lock.set_permissions(fs::Permissions::from_mode(0o600))?;
    }
    Ok(lock)
}

/// Creates a directory and those above it that are not there, each made durable in the one above.
/// Their owner alone may enter them.
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
    match fs::DirBuilder::new().mode(0o700).create(directory) {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).expect("there").permissions().mode() & 0o777
    }

    #[test]
    fn a_directory_and_its_lock_are_the_owners_alone() {
        let dir = tempfile::tempdir().expect("a directory");
        let chain = dir.path().join("data/chain");
        drop(DirectoryDisk::open(&chain).expect("made"));
        let lock = chain.join(LOCK);
        let modes = [dir.path().join("data"), chain.clone(), lock.clone()].map(|path| mode(&path));
        assert_eq!(modes, [0o700, 0o700, 0o600]);
        // Made by an earlier version, which let others open it, and so hold it.
        fs::set_permissions(&lock, fs::Permissions::from_mode(0o666)).expect("ours");
        drop(DirectoryDisk::open(&chain).expect("there"));
        assert_eq!(mode(&lock), 0o600);
    }

    #[test]
    fn the_lock_ends_with_the_value() {
        let dir = tempfile::tempdir().expect("a directory");
        let disk = DirectoryDisk::open(dir.path()).expect("made");
        // As a child process has it between fork and exec.
        let _inherited = disk.lock.try_clone().expect("a descriptor");
        assert!(matches!(DirectoryDisk::open(dir.path()), Err(Error::InUse { .. })));
        drop(disk);
        DirectoryDisk::open(dir.path()).expect("nobody has it");
    }

    #[test]
    fn a_refusal_names_the_owner() {
        let dir = tempfile::tempdir().expect("a directory");
        let lock = dir.path().join("chain").join(LOCK);
        let refused = |kind: io::ErrorKind, user| with_owner(&lock, kind.into(), user).to_string();
        let user = this_user().expect("Linux");
        let name = user_name(user).unwrap_or_else(|| format!("with the id {user}"));
        let other = refused(io::ErrorKind::PermissionDenied, Some(user + 1));
        let words = format!("{} belongs to the user {name}; run this as", dir.path().display());
        assert!(other.contains(&words), "{other}");
        let own = refused(io::ErrorKind::PermissionDenied, Some(user));
        let full = refused(io::ErrorKind::StorageFull, Some(user + 1));
        assert!(!own.contains("belongs") && !full.contains("belongs"), "{own} {full}");
    }

    #[test]
    fn a_lock_that_is_no_file_is_refused_at_once() {
        let dir = tempfile::tempdir().expect("a directory");
        let lock = dir.path().join(LOCK);
        let pipe = rustix::fs::mkfifoat(rustix::fs::CWD, &lock, rustix::fs::Mode::RWXU);
        pipe.expect("a pipe");
        DirectoryDisk::open(dir.path()).expect_err("a pipe without a reader");
        let _reader = OpenOptions::new().read(true).write(true).open(&lock).expect("both ends");
        DirectoryDisk::open(dir.path()).expect_err("a pipe with a reader");
        fs::remove_file(&lock).expect("ours");
        std::os::unix::fs::symlink("/dev/null", &lock).expect("a link");
        DirectoryDisk::open(dir.path()).expect_err("a link");
    }
}
