//! The interface to files: real ones, and ones in memory.

mod directory;
mod mapped;
mod memory;
mod veil;

pub use directory::{DirectoryDisk, create_directory};
pub use mapped::{is_out_of_memory, look_at_mapped, read_mapped};
pub use memory::MemoryDisk;

use crate::Error;
use crate::limits::{READ_AROUND_BYTES, READS_AFTER_WAITING, SLOW_READ};
use std::cell::Cell;
use std::fmt::Debug;
use std::fs;
use std::io;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

thread_local! {
    /// How many of the calling thread's next pages are read with what is around them.
    static READS_AROUND: Cell<u32> = const { Cell::new(0) };
}

/// Whether the calling thread waited for the device lately, so that what is around its next pages
/// is read with them.
fn waits_for_device() -> bool {
    READS_AROUND.get() > 0
}

/// A flat directory of files.
pub trait Disk: Debug + Send + Sync {
    /// Opens a file for reading and writing, `None` when it is not there and `create` is false.
    ///
    /// # Errors
    /// The system's.
    fn open(&self, name: &str, create: bool) -> io::Result<Option<Arc<dyn File>>>;

    /// The names of all files, in any order.
    ///
    /// # Errors
    /// The system's.
    fn list(&self) -> io::Result<Vec<String>>;

    /// Removes a file; a file that is not there is removed already.
    ///
    /// # Errors
    /// The system's.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Makes created and removed files durable.
    ///
    /// # Errors
    /// The system's.
    fn sync(&self) -> io::Result<()>;

    /// A file's name in messages: its path, where it has one.
    fn path(&self, name: &str) -> String;
}

/// An open file. Reads and writes name their place, so threads share it.
pub trait File: Debug + Send + Sync {
    /// Fills `bytes` from `offset` on.
    ///
    /// # Errors
    /// The system's; `UnexpectedEof` when the file ends before.
    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()>;

    /// Writes all of `bytes` at `offset`; the file grows as needed.
    ///
    /// # Errors
    /// The system's.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// Bytes in the file.
    ///
    /// # Errors
    /// The system's.
    fn len(&self) -> io::Result<u64>;

    /// Whether there are none.
    ///
    /// # Errors
    /// The system's.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Cuts the file, or lengthens it by zeros.
    ///
    /// # Errors
    /// The system's.
    fn set_len(&self, bytes: u64) -> io::Result<()>;

    /// Makes all that was written durable.
    ///
    /// # Errors
    /// The system's.
    fn sync(&self) -> io::Result<()>;

    /// Tells the system that reads follow no order, so that it reads no more than asked for. A read
    /// with read-ahead may take milliseconds in the kernel without a chance to be preempted.
    fn reads_are_random(&self) {}

    /// Asks the system to begin to read these bytes, which are needed soon.
    fn read_ahead(&self, _offset: u64, _bytes: u64) {}

    /// The file opened again for reading only, to be handed to another process; `None` if it is not
    /// in the file system.
    ///
    /// # Errors
    /// The system's.
    fn reopen(&self) -> io::Result<Option<fs::File>> {
        Ok(None)
    }

    /// A read-only mapping of the first `bytes` of the file, for as long as the process lasts. No
    /// byte beyond the end of the file may be touched. `None` if the file cannot be mapped.
    fn map(&self, _bytes: u64) -> Option<&'static [u8]> {
        None
    }
}

/// The first write that failed. All later writes are refused.
#[derive(Debug, Default)]
pub(crate) struct WriteHealth {
    first: OnceLock<Error>,
}

impl WriteHealth {
    pub(crate) fn check(&self) -> Result<(), Error> {
        match self.first.get() {
            Some(first) => Err(Error::Refused(Box::new(first.clone()))),
            None => Ok(()),
        }
    }

    pub(crate) fn failed(&self, error: Error) -> Error {
        if !matches!(error, Error::Refused(_)) {
            let _ = self.first.set(error.clone());
        }
        error
    }
}

/// The directory as the store uses it: errors name their file, and a failed write is the last.
#[derive(Clone, Debug)]
pub(crate) struct Directory {
    disk: Arc<dyn Disk>,
    pub(crate) health: Arc<WriteHealth>,
}

impl Directory {
    pub(crate) fn new(disk: Arc<dyn Disk>) -> Self {
        Self { disk, health: Arc::default() }
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.disk.path(name)
    }

    /// The same files as a copy-on-write view.
    pub(crate) fn veiled(&self) -> Arc<dyn Disk> {
        Arc::new(veil::VeilDisk::new(self.disk.clone()))
    }

    pub(crate) fn list(&self) -> Result<Vec<String>, Error> {
        self.disk.list().map_err(|source| io_error(self.path(""), "list the files", 0, source))
    }

    /// An existing file.
    pub(crate) fn open(&self, name: &str) -> Result<Option<NamedFile>, Error> {
        let file = self.disk.open(name, false);
        let file = file.map_err(|source| io_error(self.path(name), "open", 0, source))?;
        Ok(file.map(|file| self.named(name, file)))
    }

    /// A file, new unless it is there. A new one is durable after [`sync`](Self::sync).
    pub(crate) fn create(&self, name: &str) -> Result<NamedFile, Error> {
        let file = self.write(name, "create", || self.disk.open(name, true))?;
        Ok(self.named(name, file.expect("created")))
    }

    pub(crate) fn remove(&self, name: &str) -> Result<(), Error> {
        self.write(name, "remove", || self.disk.remove(name))
    }

    pub(crate) fn sync(&self) -> Result<(), Error> {
        self.write("", "sync the directory", || self.disk.sync())
    }

    fn write<T>(
        &self,
        name: &str,
        action: &'static str,
        run: impl FnOnce() -> io::Result<T>,
    ) -> Result<T, Error> {
        self.health.check()?;
        run().map_err(|source| self.health.failed(io_error(self.path(name), action, 0, source)))
    }

    fn named(&self, name: &str, file: Arc<dyn File>) -> NamedFile {
        NamedFile { path: self.path(name), file, health: self.health.clone() }
    }
}

/// A file whose errors name it.
#[derive(Debug)]
pub(crate) struct NamedFile {
    path: String,
    file: Arc<dyn File>,
    health: Arc<WriteHealth>,
}

impl NamedFile {
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    pub(crate) fn read_at(&self, offset: u64, bytes: &mut [u8]) -> Result<(), Error> {
        let read = self.file.read_at(offset, bytes);
        read.map_err(|source| io_error(self.path.clone(), "read", offset, source))
    }

    /// The same for single pages, here and there. Where the calling thread waited for the device
    /// lately, a page comes with the [`READ_AROUND_BYTES`] that it is in: a device takes hardly
    /// longer for them. Elsewhere all is in the system's memory, and asking costs something too.
    pub(crate) fn read_page_at(&self, offset: u64, page: &mut [u8]) -> Result<(), Error> {
        let start = Instant::now();
        if waits_for_device() {
            READS_AROUND.set(READS_AROUND.get() - 1);
            self.read_around(offset);
        }
        let read = self.read_at(offset, page);
        if start.elapsed() >= SLOW_READ {
            READS_AROUND.set(READS_AFTER_WAITING);
        }
        read
    }

    pub(crate) fn len(&self) -> Result<u64, Error> {
        let length = self.file.len();
        length.map_err(|source| io_error(self.path.clone(), "tell the length", 0, source))
    }

    pub(crate) fn reads_are_random(&self) {
        self.file.reads_are_random();
    }

    pub(crate) fn read_ahead(&self, offset: u64, bytes: u64) {
        self.file.read_ahead(offset, bytes);
    }

    /// Announces a page with the [`READ_AROUND_BYTES`] that it is in.
    pub(crate) fn read_around(&self, offset: u64) {
        let around = offset / READ_AROUND_BYTES * READ_AROUND_BYTES;
        self.read_ahead(around, READ_AROUND_BYTES);
    }

    pub(crate) fn map(&self, bytes: u64) -> Option<&'static [u8]> {
        self.file.map(bytes)
    }

    pub(crate) fn reopen(&self) -> Result<Option<fs::File>, Error> {
        let opened = self.file.reopen();
        opened.map_err(|source| io_error(self.path.clone(), "open to be read alone", 0, source))
    }

    pub(crate) fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), Error> {
        self.write("write", offset, || self.file.write_at(offset, bytes))
    }

    pub(crate) fn set_len(&self, bytes: u64) -> Result<(), Error> {
        self.write("set the length", bytes, || self.file.set_len(bytes))
    }

    pub(crate) fn sync(&self) -> Result<(), Error> {
        self.write("sync", 0, || self.file.sync())
    }

    pub(crate) fn damaged(&self, offset: u64, what: impl Into<String>) -> Error {
        Error::Damaged { file: self.path.clone(), offset, what: what.into() }
    }

    fn write(
        &self,
        action: &'static str,
        offset: u64,
        run: impl FnOnce() -> io::Result<()>,
    ) -> Result<(), Error> {
        self.health.check()?;
        run().map_err(|source| {
            self.health.failed(io_error(self.path.clone(), action, offset, source))
        })
    }
}

fn io_error(file: String, action: &'static str, offset: u64, source: io::Error) -> Error {
    Error::Io { file, action, offset, cause: Arc::new(source) }
}
