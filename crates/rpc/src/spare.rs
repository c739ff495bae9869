//! Memory that is used again.

use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;

/// The largest memory so far that nobody looks at any more, to be used again: memory that is used
/// for the first time is the dearest part of reading a large answer. Clones share it.
///
/// ```
/// let spare = rpc::Spare::default();
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
        Bytes::from_owner(Lent { bytes, spare: self.clone() })
    }

    fn memory(&self) -> MutexGuard<'_, Vec<u8>> {
        self.0.lock().expect("nothing panics while it is held")
    }
}

struct Lent {
    bytes: Vec<u8>,
    spare: Spare,
}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let mut spare = self.spare.memory();
        if self.bytes.capacity() > spare.capacity() {
            *spare = std::mem::take(&mut self.bytes);
        }
    }
}
