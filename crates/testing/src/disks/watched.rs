use state::{Disk, File, MemoryDisk};
use std::ops::Range;
use std::sync::Arc;
use std::{fmt, io};

/// An access to a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Access {
    /// A read of these bytes.
    Read(Range<u64>),
    /// A write.
    Write,
    /// [`File::read_ahead`].
    ReadAhead(Range<u64>),
    /// [`File::reads_are_random`].
    ReadsAreRandom,
}

type Watch = dyn Fn(&str, Access) + Send + Sync;

/// A disk in memory that tells of each access, by the name of its file, before it is made.
#[derive(Clone)]
pub struct WatchedDisk {
    disk: MemoryDisk,
    watch: Arc<Watch>,
}

struct WatchedFile {
    file: Arc<dyn File>,
    name: String,
    watch: Arc<Watch>,
}

impl WatchedDisk {
    /// The same files, with `watch` told.
    pub fn new(disk: MemoryDisk, watch: impl Fn(&str, Access) + Send + Sync + 'static) -> Self {
        Self { disk, watch: Arc::new(watch) }
    }
}

impl fmt::Debug for WatchedDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WatchedDisk").finish_non_exhaustive()
    }
}

impl fmt::Debug for WatchedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WatchedFile").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Disk for WatchedDisk {
    fn open(&self, name: &str, create: bool) -> io::Result<Option<Arc<dyn File>>> {
        let file = self.disk.open(name, create)?;
        let (name, watch) = (name.to_owned(), self.watch.clone());
        Ok(file.map(|file| Arc::new(WatchedFile { file, name, watch }) as Arc<dyn File>))
    }

    fn list(&self) -> io::Result<Vec<String>> {
        self.disk.list()
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.disk.remove(name)
    }

    fn sync(&self) -> io::Result<()> {
        self.disk.sync()
    }

    fn path(&self, name: &str) -> String {
        self.disk.path(name)
    }
}

impl File for WatchedFile {
    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        (self.watch)(&self.name, Access::Read(offset..offset + bytes.len() as u64));
        self.file.read_at(offset, bytes)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        (self.watch)(&self.name, Access::Write);
        self.file.write_at(offset, bytes)
    }

    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        self.file.set_len(bytes)
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync()
    }

    fn reads_are_random(&self) {
        (self.watch)(&self.name, Access::ReadsAreRandom);
    }

    fn read_ahead(&self, offset: u64, bytes: u64) {
        (self.watch)(&self.name, Access::ReadAhead(offset..offset + bytes));
    }
}
