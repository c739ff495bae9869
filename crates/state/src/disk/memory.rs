use super::{Disk, File};
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, RwLock, RwLockReadGuard};

/// Files in memory. Clones share them, so a store can be closed and opened again.
#[derive(Clone, Debug, Default)]
pub struct MemoryDisk {
    files: Arc<Mutex<BTreeMap<String, Arc<MemoryFile>>>>,
}

/// Bytes that are allocated at once. Chunks that were never written take no memory.
const CHUNK_BYTES: usize = 16 << 10;

/// A file in memory.
#[derive(Debug, Default)]
pub(crate) struct MemoryFile {
    contents: RwLock<Contents>,
}

#[derive(Debug, Default)]
struct Contents {
    length: u64,
    chunks: Vec<Option<Box<[u8]>>>,
}

impl MemoryDisk {
    /// An empty directory.
    pub fn new() -> Self {
        Self::default()
    }

    /// A copy of all files by name, as they are at one moment, for tests.
    #[expect(clippy::missing_panics_doc, reason = "nothing panics while it is locked")]
    pub fn contents(&self) -> BTreeMap<String, Vec<u8>> {
        let files = self.files.lock().expect("no thread panics with it");
        // All files are locked before the first one is copied.
        let held: Vec<_> = files.iter().map(|(name, file)| (name.clone(), file.read())).collect();
        held.into_iter()
            .map(|(name, contents)| {
                let mut bytes = vec![0; contents.length as usize];
                contents.copy_to(0, &mut bytes);
                (name, bytes)
            })
            .collect()
    }

    /// A directory with these files, for tests.
    #[expect(clippy::missing_panics_doc, reason = "memory does not fail")]
    pub fn with_contents(files: &BTreeMap<String, Vec<u8>>) -> Self {
        let disk = Self::new();
        for (name, bytes) in files {
            let file = disk.open(name, true).expect("memory").expect("created");
            file.write_at(0, bytes).expect("memory");
        }
        disk
    }
}

impl Disk for MemoryDisk {
    fn open(&self, name: &str, create: bool) -> io::Result<Option<Arc<dyn File>>> {
        let mut files = self.files.lock().expect("no thread panics with it");
        if create && !files.contains_key(name) {
            files.insert(name.into(), Arc::default());
        }
        Ok(files.get(name).map(|file| file.clone() as Arc<dyn File>))
    }

    fn list(&self) -> io::Result<Vec<String>> {
        Ok(self.files.lock().expect("no thread panics with it").keys().cloned().collect())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.files.lock().expect("no thread panics with it").remove(name);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    fn path(&self, name: &str) -> String {
        format!("memory:{name}")
    }
}

impl MemoryFile {
    fn read(&self) -> RwLockReadGuard<'_, Contents> {
        self.contents.read().expect("no thread panics with it")
    }
}

impl Contents {
    /// Fills `bytes` from `offset` on. The file is long enough.
    fn copy_to(&self, offset: u64, bytes: &mut [u8]) {
        for (chunk, within, range) in pieces(offset, bytes.len()) {
            let part = &mut bytes[range];
            match self.chunks.get(chunk).and_then(Option::as_ref) {
                Some(chunk) => part.copy_from_slice(&chunk[within..within + part.len()]),
                None => part.fill(0),
            }
        }
    }
}

impl File for MemoryFile {
    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        let contents = self.read();
        if offset + bytes.len() as u64 > contents.length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        contents.copy_to(offset, bytes);
        Ok(())
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut contents = self.contents.write().expect("no thread panics with it");
        let end = offset + bytes.len() as u64;
        contents.length = contents.length.max(end);
        let chunks = (end as usize).div_ceil(CHUNK_BYTES);
        if contents.chunks.len() < chunks {
            contents.chunks.resize_with(chunks, || None);
        }
        for (chunk, within, range) in pieces(offset, bytes.len()) {
            let part = &bytes[range];
            let chunk = contents.chunks[chunk]
                .get_or_insert_with(|| vec![0; CHUNK_BYTES].into_boxed_slice());
            chunk[within..within + part.len()].copy_from_slice(part);
        }
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.read().length)
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        let mut contents = self.contents.write().expect("no thread panics with it");
        if bytes < contents.length {
            contents.chunks.truncate((bytes as usize).div_ceil(CHUNK_BYTES));
            let within = bytes as usize % CHUNK_BYTES;
            let last = bytes as usize / CHUNK_BYTES;
            if let Some(Some(chunk)) = contents.chunks.get_mut(last) {
                chunk[within..].fill(0);
            }
        }
        contents.length = bytes;
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

/// The chunk, the offset in it, and the range of the buffer, for every piece of a buffer at
/// `offset`.
fn pieces(
    offset: u64,
    length: usize,
) -> impl Iterator<Item = (usize, usize, std::ops::Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        if done == length {
            return None;
        }
        let at = offset as usize + done;
        let within = at % CHUNK_BYTES;
        let bytes = (CHUNK_BYTES - within).min(length - done);
        let range = done..done + bytes;
        done += bytes;
        Some((at / CHUNK_BYTES, within, range))
    })
}
