//! Buffers that are reused.

use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;

use crate::limits::{CHUNK_BYTES, MOST_SPARE_CHUNKS};

/// A buffer that is reused when its last reader is gone, the largest one so far: the first use of
/// memory is the most expensive part of reading a large answer. Clones share the buffer.
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
    /// Takes the buffer with its old content; an empty one if there is none.
    pub fn take(&self) -> Vec<u8> {
        std::mem::take(&mut *self.memory())
    }

    /// Takes the buffer if it has capacity for so many bytes, else a new one with an eighth more:
    /// the next answer may be a little longer.
    pub fn take_for(&self, bytes: usize) -> Vec<u8> {
        let spare = self.take();
        match spare.capacity() < bytes {
            true => Vec::with_capacity(bytes.saturating_add(bytes / 8)),
            false => spare,
        }
    }

    /// Shares bytes, whose memory comes back when the last slice of them is dropped.
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

/// A buffer for so many bytes. For most of a chunk it is one that was sent before, if there is any.
pub(crate) fn chunk(bytes: usize) -> Vec<u8> {
    if !(CHUNK_BYTES / 4..=CHUNK_BYTES).contains(&bytes) {
        return Vec::with_capacity(bytes);
    }
    let spare = SPARE_CHUNKS.lock().expect("nothing panics while it is locked").pop();
    spare.unwrap_or_else(|| Vec::with_capacity(CHUNK_BYTES))
}

/// Shares the content of a [`chunk`], whose memory is reused when it was sent.
pub(crate) fn lend_chunk(bytes: Vec<u8>) -> Bytes {
    match bytes.capacity() {
        CHUNK_BYTES => Bytes::from_owner(PooledChunk(bytes)),
        _ => bytes.into(),
    }
}

/// Buffers that were sent. The system clears memory before its first use, which takes as long as
/// copying the bytes that are sent.
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
