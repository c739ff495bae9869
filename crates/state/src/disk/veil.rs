use super::{Disk, File, MemoryDisk};
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex};

/// A copy-on-write view of another disk: all writes go to memory, the files below do not change.
#[derive(Debug)]
pub(crate) struct VeilDisk {
    below: Arc<dyn Disk>,
    new: MemoryDisk,
}

#[derive(Debug)]
struct VeilFile {
    below: Arc<dyn File>,
    changed: Mutex<VeiledContents>,
}

#[derive(Debug)]
struct VeiledContents {
    length: u64,
    /// The length of the part of the file below that is still visible, in bytes.
    below_bytes: u64,
    chunks: BTreeMap<u64, Box<[u8]>>,
}

const CHUNK: u64 = 4096;

impl VeilDisk {
    pub(crate) fn new(below: Arc<dyn Disk>) -> Self {
        Self { below, new: MemoryDisk::new() }
    }
}

impl Disk for VeilDisk {
    fn open(&self, name: &str, create: bool) -> io::Result<Option<Arc<dyn File>>> {
        let Some(below) = self.below.open(name, false)? else {
            return self.new.open(name, create);
        };
        let length = below.len()?;
        let changed = VeiledContents { length, below_bytes: length, chunks: BTreeMap::new() };
        Ok(Some(Arc::new(VeilFile { below, changed: Mutex::new(changed) })))
    }

    fn list(&self) -> io::Result<Vec<String>> {
        self.below.list()
    }

    fn remove(&self, _: &str) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    fn path(&self, name: &str) -> String {
        self.below.path(name)
    }
}

impl VeilFile {
    fn chunk(&self, changed: &VeiledContents, number: u64) -> io::Result<Box<[u8]>> {
        if let Some(chunk) = changed.chunks.get(&number) {
            return Ok(chunk.clone());
        }
        let mut chunk = vec![0; CHUNK as usize].into_boxed_slice();
        let bytes = changed.below_bytes.saturating_sub(number * CHUNK).min(CHUNK) as usize;
        self.below.read_at(number * CHUNK, &mut chunk[..bytes])?;
        Ok(chunk)
    }
}

impl File for VeilFile {
    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        let changed = self.changed.lock().expect("no thread panics with it");
        if offset + bytes.len() as u64 > changed.length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut done = 0;
        while done < bytes.len() {
            let at = offset + done as u64;
            let chunk = self.chunk(&changed, at / CHUNK)?;
            let from = &chunk[(at % CHUNK) as usize..];
            let count = from.len().min(bytes.len() - done);
            bytes[done..done + count].copy_from_slice(&from[..count]);
            done += count;
        }
        Ok(())
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut changed = self.changed.lock().expect("no thread panics with it");
        let mut done = 0;
        while done < bytes.len() {
            let at = offset + done as u64;
            let mut chunk = self.chunk(&changed, at / CHUNK)?;
            let to = &mut chunk[(at % CHUNK) as usize..];
            let count = to.len().min(bytes.len() - done);
            to[..count].copy_from_slice(&bytes[done..done + count]);
            changed.chunks.insert(at / CHUNK, chunk);
            done += count;
        }
        changed.length = changed.length.max(offset + bytes.len() as u64);
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.changed.lock().expect("no thread panics with it").length)
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        let mut changed = self.changed.lock().expect("no thread panics with it");
        if bytes < changed.length {
            let mut last = self.chunk(&changed, bytes / CHUNK)?;
            last[(bytes % CHUNK) as usize..].fill(0);
            changed.chunks.split_off(&(bytes / CHUNK));
            changed.chunks.insert(bytes / CHUNK, last);
            changed.below_bytes = changed.below_bytes.min(bytes);
        }
        changed.length = bytes;
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}
