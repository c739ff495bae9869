//! Memory that is used again.

use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;

use crate::limits::{CHUNK_BYTES, MOST_SPARE_CHUNKS};

/// The largest memory so far that nobody looks at any more, to be used again: memory that is used
/// for the first time is the dearest part of reading a large answer. Clones share it.
///
/// ```
/// let spare = deponent_rpc::Spare::default();
/// let mut bytes = spare.take();
/// bytes.clear();
/// bytes.extend_from_slice(b"an answer");
/// let answer = spare.lend(bytes);
/// assert_eq!(&answer[3..], b"answer");
/// drop(answer);
/// assert_eq!(spare.take(), b"an answer");
/// ```
#[derive(Clone, Debug, Default)]
pub struct Spare(Arc<Mutex<Vec<u8>>>);

impl Spare {
    /// Takes the memory, with whatever is in it.
    pub fn take(&self) -> Vec<u8> {
        std::mem::take(&mut *self.memory())
    }

    /// Takes memory for so many bytes: this one if it is enough, else new one, into which nothing
    /// is copied, with room to spare: the next answer may be a little longer.
    pub fn take_for(&self, bytes: usize) -> Vec<u8> {
        let spare = self.take();
        match spare.capacity() < bytes {
            true => Vec::with_capacity(bytes.saturating_add(bytes / 8)),
            false => spare,
        }
    }

    /// Shares bytes, whose memory comes back with the last slice of them.
    pub fn lend(&self, bytes: Vec<u8>) -> Bytes {
        Bytes::from_owner(LentBuffer { bytes, spare: self.clone() })
    }

    fn memory(&self) -> MutexGuard<'_, Vec<u8>> {
        self.0.lock().expect("nothing panics while it is locked")
    }
}

struct LentBuffer {
    bytes: Vec<u8>,
    spare: Spare,
}

impl AsRef<[u8]> for LentBuffer {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for LentBuffer {
    fn drop(&mut self) {
        let mut spare = self.spare.memory();
        if self.bytes.capacity() > spare.capacity() {
            *spare = std::mem::take(&mut self.bytes);
        }
    }
}

/// Memory for so many bytes; for a large part of a chunk it is that of one that was sent.
pub(crate) fn chunk(bytes: usize) -> Vec<u8> {
    if !(CHUNK_BYTES / 4..=CHUNK_BYTES).contains(&bytes) {
        return Vec::with_capacity(bytes);
    }
    let spare = SPARE_CHUNKS.lock().expect("nothing panics while it is locked").pop();
    spare.unwrap_or_else(|| Vec::with_capacity(CHUNK_BYTES))
}

/// Shares what is in a [`chunk`], whose memory is used again when it was sent.
pub(crate) fn lend_chunk(bytes: Vec<u8>) -> Bytes {
    match bytes.capacity() {
        CHUNK_BYTES => Bytes::from_owner(PooledChunk(bytes)),
        _ => bytes.into(),
    }
}

/// Memory that was sent, to be used again: the system clears what is used for the first time, and
/// that takes as long as copying what is sent.
static SPARE_CHUNKS: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());

/// A chunk that is being sent.
struct PooledChunk(Vec<u8>);

impl AsRef<[u8]> for PooledChunk {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for PooledChunk {
    fn drop(&mut self) {
        let mut spare = SPARE_CHUNKS.lock().expect("nothing panics while it is locked");
        if spare.len() < MOST_SPARE_CHUNKS {
            self.0.clear();
            spare.push(std::mem::take(&mut self.0));
        }
    }
}
