//! Bodies that came by descriptor: the server's memory files, mapped.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;
use hyper::header::HeaderValue;
use memmap2::{Mmap, MmapOptions};
use rustix::fs::SealFlags;

use crate::client::error::{ClientError, malformed};
use crate::limits::LENT_FILES;
use crate::quote::quote;

/// The files that came on one connection.
#[derive(Debug, Default)]
pub(crate) struct ReceivedFiles {
    /// The server uses its files again. A mapping stays, since mapping costs as much as reading a
    /// part of the file.
    mapped: BTreeMap<FileId, Arc<Mmap>>,
    unused: Arc<Mutex<Vec<u64>>>,
}

/// Device and inode.
type FileId = (u64, u64);

/// A body in a memory file of the server's, which is given back when the last slice is dropped.
struct MappedBody {
    map: Arc<Mmap>,
    length: usize,
    id: u64,
    unused: Arc<Mutex<Vec<u64>>>,
}

impl AsRef<[u8]> for MappedBody {
    fn as_ref(&self) -> &[u8] {
        &self.map[..self.length]
    }
}

impl Drop for MappedBody {
    fn drop(&mut self) {
        lock(&self.unused).push(self.id);
    }
}

fn lock(unused: &Mutex<Vec<u64>>) -> MutexGuard<'_, Vec<u64>> {
    unused.lock().expect("nothing panics while it is locked")
}

impl ReceivedFiles {
    /// Maps the body that the header describes. The file is a memory file, or one of the server's
    /// own if the request was for that.
    pub(crate) fn map(
        &mut self,
        descriptor: OwnedFd,
        named: &HeaderValue,
        takes_own: bool,
    ) -> Result<Bytes, ClientError> {
        let (id, length) = read(named)?;
        let Some(id) = id else {
            if !takes_own {
                return Err(malformed("a file of the server's own came, which nobody asked for"));
            }
            return Ok(Bytes::from_owner(map_own(descriptor, length)?));
        };
        let stat = rustix::fs::fstat(&descriptor).map_err(malformed)?;
        let file_id = (stat.st_dev, stat.st_ino);
        let known = self.mapped.get(&file_id).filter(|map| map.len() >= length);
        let map = match known {
            Some(map) => Arc::clone(map),
            None => {
                let map = Arc::new(map(descriptor)?);
                if self.mapped.len() >= LENT_FILES {
                    // Most likely of a connection before.
                    self.mapped.retain(|_, map| Arc::strong_count(map) > 1);
                }
                self.mapped.insert(file_id, Arc::clone(&map));
                map
            }
        };
        if map.len() < length {
            let held = map.len();
            return Err(malformed(format_args!("a file of {held} bytes for a body of {length}")));
        }
        Ok(Bytes::from_owner(MappedBody { map, length, id, unused: Arc::clone(&self.unused) }))
    }

    /// The header that gives files back, if any can be.
    pub(crate) fn unused(&self) -> Option<HeaderValue> {
        let unused = std::mem::take(&mut *lock(&self.unused));
        let ids: Vec<String> = unused.iter().map(u64::to_string).collect();
        (!ids.is_empty()).then(|| ids.join(",").try_into().expect("numbers may be a header"))
    }

    /// Forgets the ids of a connection that has ended.
    pub(crate) fn forget(&mut self) {
        self.unused = Arc::default();
    }
}

/// Maps a file that cannot shrink.
fn map(descriptor: OwnedFd) -> Result<Mmap, ClientError> {
    let seals = rustix::fs::fcntl_get_seals(&descriptor).map_err(malformed)?;
    if !seals.contains(SealFlags::SHRINK) {
        return Err(malformed("the file that came could shrink, so it is not mapped"));
    }
    let file = File::from(descriptor);
    // SAFETY: the file cannot shrink, so its pages stay. The server does not write into it again
    // before its id was given back, which `MappedBody` does when its last slice is dropped.
    #[allow(unsafe_code, reason = "mapping memory of another process is no matter of types")]
    let map = unsafe { Mmap::map(&file) };
    map.map_err(malformed)
}

/// Maps the first bytes of a file of the server's own.
fn map_own(descriptor: OwnedFd, length: usize) -> Result<Mmap, ClientError> {
    let file = File::from(descriptor);
    let held = file.metadata().map_err(malformed)?.len();
    if held < length as u64 {
        return Err(malformed(format_args!("a file of {held} bytes, of which {length} are told")));
    }
    // SAFETY: the caller asked for the file with `rest::OWN_FILE`, and so trusts the server: it
    // only appends to the file, and cuts off nothing that it has named.
    #[allow(unsafe_code, reason = "mapping a file of another process is no matter of types")]
    let map = unsafe { MmapOptions::new().len(length).map(&file) };
    map.map_err(malformed)
}

/// Reads `7;length=500000000`, or `file;length=500000000`.
fn read(named: &HeaderValue) -> Result<(Option<u64>, usize), ClientError> {
    let text = named.to_str().ok();
    let parts = text.and_then(|text| text.split_once(";length="));
    let read = parts.and_then(|(id, length)| {
        let id = if id == "file" { None } else { Some(id.parse().ok()?) };
        Some((id, length.parse().ok()?))
    });
    read.ok_or_else(|| {
        let named = quote(String::from_utf8_lossy(named.as_bytes()));
        malformed(format_args!("\"{named}\" does not name a file and a length"))
    })
}
