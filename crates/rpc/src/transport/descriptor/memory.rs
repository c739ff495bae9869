//! Memory files, in which large answers are passed by descriptor to clients on the same host.
//!
//! The first use of memory is its most expensive one, so files are reused. A file is lent with an
//! answer, and reused when the client gives it back. A client that ends without doing so keeps its
//! files: they are not written again, and the system frees them when the client has.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use memmap2::MmapMut;
use rustix::fs::{MemfdFlags, Mode, OFlags, SealFlags};
use rustix::thread::{sched_getaffinity, sched_getcpu, sched_setaffinity};

use crate::limits::{FIRST_COPY_BYTES, SHARED_COPY_BYTES};
use crate::pieces::Pieces;
use crate::transport::budget::{Budget, Reservation};
use crate::transport::peer::Peer;

/// The memory files of one port.
#[derive(Debug)]
pub(crate) struct MemoryFiles {
    most_files: usize,
    most_bytes: usize,
    /// The memory of answers, of which files are a part.
    answers: Arc<Budget>,
    state: Mutex<MemoryState>,
}

#[derive(Debug, Default)]
struct MemoryState {
    idle: Vec<MemoryFile>,
    /// Of all files, idle and lent.
    bytes: usize,
    /// All files, idle and lent.
    count: usize,
}

impl MemoryState {
    /// A file of so many bytes is gone.
    const fn forget(&mut self, bytes: usize) {
        self.bytes -= bytes;
        self.count -= 1;
    }
}

/// A file in memory that can grow, and cannot shrink.
#[derive(Debug)]
struct MemoryFile {
    writable: OwnedFd,
    /// The descriptor that clients get.
    readable: OwnedFd,
    /// The file's memory, to write into: system calls take longer, a page at a time.
    map: MmapMut,
    bytes: usize,
    memory: Reservation,
}

/// A file that holds an answer, for as long as the client wants it.
#[derive(Debug)]
pub(crate) struct LentFile {
    file: Option<MemoryFile>,
    files: Arc<MemoryFiles>,
}

impl MemoryFiles {
    /// So many files of so many bytes together.
    pub(crate) fn new((most_files, most_bytes): (usize, usize), answers: Arc<Budget>) -> Self {
        Self { most_files, most_bytes, answers, state: Mutex::default() }
    }

    /// The number of files that clients have.
    pub(crate) fn lent_count(&self) -> usize {
        let state = self.state();
        state.count - state.idle.len()
    }

    /// Gives the memory of idle files to others.
    pub(crate) fn free_idle(&self) {
        let mut state = self.state();
        let idle = std::mem::take(&mut state.idle);
        idle.iter().for_each(|file| state.forget(file.bytes));
    }

    /// Writes an answer into a file; `None` where it may take no more memory, or is sent as
    /// digits.
    pub(crate) fn fill(self: &Arc<Self>, pieces: &Pieces) -> io::Result<Option<LentFile>> {
        if pieces.has_digits() {
            return Ok(None);
        }
        let Some(file) = self.take(pieces.len_bytes())? else { return Ok(None) };
        let mut lent = LentFile { file: Some(file), files: Arc::clone(self) };
        copy(pieces, &mut lent.file_mut().map[..pieces.len_bytes()])?;
        Ok(Some(lent))
    }

    /// A file of so many bytes or more.
    fn take(&self, bytes: usize) -> io::Result<Option<MemoryFile>> {
        let mut state = self.state();
        let fitting = (0..state.idle.len()).filter(|&at| state.idle[at].bytes >= bytes);
        let best = fitting.min_by_key(|&at| state.idle[at].bytes);
        if let Some(at) = best {
            return Ok(Some(state.idle.swap_remove(at)));
        }
        // The largest of those that are too small grows; the others make room for it.
        state.idle.sort_unstable_by_key(|file| file.bytes);
        let mut file = state.idle.pop();
        if file.is_none() && state.count >= self.most_files {
            return Ok(None);
        }
        // The next answer may be a little longer, and every growth is mapped anew.
        let wanted = bytes + bytes / 16;
        let (bytes, memory) = loop {
            let had = file.as_ref().map_or(0, |file| file.bytes);
            let most = had + self.most_bytes.saturating_sub(state.bytes);
            let lengths =
                [wanted.min(most), bytes].into_iter().filter(|&it| bytes <= it && it <= most);
            if let Some(reserved) = lengths.into_iter().find_map(|it| self.reserve(it, &mut file)) {
                state.bytes += reserved.0 - had;
                state.count += usize::from(file.is_none());
                break reserved;
            }
            let Some(smaller) = state.idle.pop().or_else(|| file.take()) else { return Ok(None) };
            state.forget(smaller.bytes);
        };
        drop(state);
        let grown = match file {
            Some(file) => file.grow(bytes),
            None => MemoryFile::new(bytes, memory.expect("it is reserved for a new file")),
        };
        // A file that cannot grow is dropped.
        grown.map(Some).inspect_err(|_| self.state().forget(bytes))
    }

    /// Reserves memory for a file of so many bytes, or for a file to grow to so many.
    fn reserve(
        &self,
        bytes: usize,
        file: &mut Option<MemoryFile>,
    ) -> Option<(usize, Option<Reservation>)> {
        match file {
            Some(file) => file.memory.try_grow(bytes - file.bytes).then_some((bytes, None)),
            None => {
                let memory = self.answers.try_reserve(Peer::PORT, bytes, &Arc::default())?;
                Some((bytes, Some(memory)))
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, MemoryState> {
        self.state.lock().expect("nothing panics while it is locked")
    }
}

/// Copies an answer, a large one by two threads: most of the time a processor waits for memory. If
/// no second thread can be started, it fails, and the answer is sent through the socket.
fn copy(pieces: &Pieces, into: &mut [u8]) -> io::Result<()> {
    if into.len() < SHARED_COPY_BYTES {
        pieces.copy_to(into);
        return Ok(());
    }
    let middle = into.len() / 2;
    let later = middle + FIRST_COPY_BYTES.min(middle);
    let (first, second) = into.split_at_mut(middle);
    let (second, third) = second.split_at_mut(later - middle);
    let has_begun = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let copy_first = || {
            has_begun.store(true, Ordering::Relaxed);
            pieces.slice(0..middle).copy_to(first);
        };
        std::thread::Builder::new().spawn_scoped(scope, copy_first)?;
        pieces.slice(middle..later).copy_to(second);
        if !has_begun.load(Ordering::Relaxed) {
            leave_processor();
        }
        pieces.slice(later..pieces.len_bytes()).copy_to(third);
        Ok(())
    })
}

/// Moves the calling thread to another processor, if it may run elsewhere, for the thread that
/// waits for this one. On few processors the system may start a thread on a busy one while another
/// is idle.
fn leave_processor() {
    let Ok(all) = sched_getaffinity(None) else { return };
    let mut others = all;
    others.unset(sched_getcpu());
    if others.count() == 0 {
        return;
    }
    // A thread whose processor is not allowed is moved at once, and stays there afterwards.
    let moved = sched_setaffinity(None, &others).and_then(|()| sched_setaffinity(None, &all));
    if let Err(error) = moved {
        tracing::debug!(%error, "a thread stays on its processor");
    }
}

impl MemoryFile {
    fn new(bytes: usize, memory: Reservation) -> io::Result<Self> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let writable = rustix::fs::memfd_create("deponent-answer", flags)?;
        rustix::fs::ftruncate(&writable, bytes as u64)?;
        // A client that maps it can trust that its pages stay, and cannot open it again to write.
        rustix::fs::fcntl_add_seals(&writable, SealFlags::SHRINK)?;
        rustix::fs::fchmod(&writable, Mode::RUSR)?;
        let path = format!("/proc/self/fd/{}", rustix::fd::AsRawFd::as_raw_fd(&writable));
        let readable = rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        let map = map(&writable)?;
        Ok(Self { writable, readable, map, bytes, memory })
    }

    fn grow(self, bytes: usize) -> io::Result<Self> {
        rustix::fs::ftruncate(&self.writable, bytes as u64)?;
        let map = map(&self.writable)?;
        Ok(Self { map, bytes, ..self })
    }
}

fn map(file: &OwnedFd) -> io::Result<MmapMut> {
    // SAFETY: the file cannot shrink, so its pages stay. No other process can write into it.
    // Clients read it only while it is lent, and this process writes into it only while it is not.
    #[allow(unsafe_code, reason = "mapping memory that is shared is no matter of types")]
    let map = unsafe { MmapMut::map_mut(file) };
    map
}

impl LentFile {
    const fn file_mut(&mut self) -> &mut MemoryFile {
        self.file.as_mut().expect("given back at the end alone")
    }

    /// The client's descriptor, which can be read and mapped, and nothing else.
    pub(crate) fn readable(&self) -> BorrowedFd<'_> {
        self.file.as_ref().expect("given back at the end alone").readable.as_fd()
    }
}

impl LentFile {
    /// Has the file reused: the client does not read it any more.
    pub(crate) fn give_back(mut self) {
        let file = self.file.take().expect("given back at the end alone");
        self.files.state().idle.push(file);
    }
}

impl Drop for LentFile {
    fn drop(&mut self) {
        if let Some(MemoryFile { bytes, .. }) = self.file.take() {
            self.files.state().forget(bytes);
        }
    }
}

#[cfg(test)]
mod tests;
