//! Memory files, in which large answers are passed by descriptor to whoever is on the same host.
//!
//! Memory that is used for the first time is the dearest thing on a machine, so files are used
//! again and again. One is lent with an answer, and used again when the client says that it may be.
//! Of a client that says nothing, and goes, the files are its own: nobody writes into them any
//! more, and the system frees them when the client has.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use memmap2::MmapMut;
use rustix::fs::{MemfdFlags, Mode, OFlags, SealFlags};
use rustix::thread::{sched_getaffinity, sched_getcpu, sched_setaffinity};

use crate::limits::{FIRST_COPY_BYTES, SHARED_COPY_BYTES};
use crate::pieces::Pieces;

/// The memory files of one port.
#[derive(Debug)]
pub(crate) struct Files {
    most_bytes: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    idle: Vec<File>,
    /// Of all files, idle and lent.
    bytes: usize,
}

/// A file in memory that can grow, and cannot shrink.
#[derive(Debug)]
struct File {
    writable: OwnedFd,
    /// What clients get.
    readable: OwnedFd,
    /// The file, to write into: the system's calls take longer, a page at a time.
    map: MmapMut,
    bytes: usize,
}

/// A file that holds an answer, for as long as the client wants it.
#[derive(Debug)]
pub(crate) struct Lent {
    file: Option<File>,
    files: Arc<Files>,
}

impl Files {
    pub(crate) fn new(most_bytes: usize) -> Self {
        Self { most_bytes, state: Mutex::default() }
    }

    /// Writes an answer into a file; `None` where it may take no more memory, or is sent as
    /// digits.
    pub(crate) fn fill(self: &Arc<Self>, pieces: &Pieces) -> io::Result<Option<Lent>> {
        if pieces.has_digits() {
            return Ok(None);
        }
        let Some(file) = self.take(pieces.len_bytes())? else { return Ok(None) };
        let mut lent = Lent { file: Some(file), files: Arc::clone(self) };
        copy(pieces, &mut lent.file_mut().map[..pieces.len_bytes()])?;
        Ok(Some(lent))
    }

    /// A file of so many bytes or more.
    fn take(&self, bytes: usize) -> io::Result<Option<File>> {
        let mut state = self.state();
        let fitting = (0..state.idle.len()).filter(|&at| state.idle[at].bytes >= bytes);
        let best = fitting.min_by_key(|&at| state.idle[at].bytes);
        if let Some(at) = best {
            return Ok(Some(state.idle.swap_remove(at)));
        }
        // The largest of those that are too small grows; the others make room for it.
        state.idle.sort_unstable_by_key(|file| file.bytes);
        let mut file = state.idle.pop();
        let added = |file: &Option<File>| bytes - file.as_ref().map_or(0, |file| file.bytes);
        while state.bytes + added(&file) > self.most_bytes {
            let Some(smaller) = state.idle.pop().or_else(|| file.take()) else { return Ok(None) };
            state.bytes -= smaller.bytes;
        }
        let had = file.as_ref().map_or(0, |file| file.bytes);
        state.bytes += bytes - had;
        // The next answer may be a little longer, and every growth is mapped anew.
        let slack = (bytes / 8).min(self.most_bytes - state.bytes);
        let bytes = bytes + slack;
        state.bytes += slack;
        drop(state);
        let grown = match file {
            Some(file) => file.grow(bytes),
            None => File::new(bytes),
        };
        // What failed is gone, with what it had.
        grown.map(Some).inspect_err(|_| self.state().bytes -= bytes)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nothing panics while it is held")
    }
}

/// Copies what is sent, where it is much by two threads: most of the time the processor waits for
/// memory. Without a second thread it is not copied, and the answer comes as any other.
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

/// Moves the calling thread to another processor, if it may run elsewhere: another thread waits for
/// this one. Where processors are few, the system may well start a thread where one runs already,
/// with another processor idle.
fn leave_processor() {
    let Ok(all) = sched_getaffinity(None) else { return };
    let mut others = all;
    others.unset(sched_getcpu());
    if others.count() == 0 {
        return;
    }
    // Whoever may not run where it runs is moved at once, and stays when it may again.
    let moved = sched_setaffinity(None, &others).and_then(|()| sched_setaffinity(None, &all));
    if let Err(error) = moved {
        tracing::debug!(%error, "a thread stays on its processor");
    }
}

impl File {
    fn new(bytes: usize) -> io::Result<Self> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let writable = rustix::fs::memfd_create("deponent-answer", flags)?;
        rustix::fs::ftruncate(&writable, bytes as u64)?;
        // Who maps it may trust that its bytes stay, and cannot open it again to write.
        rustix::fs::fcntl_add_seals(&writable, SealFlags::SHRINK)?;
        rustix::fs::fchmod(&writable, Mode::RUSR)?;
        let path = format!("/proc/self/fd/{}", rustix::fd::AsRawFd::as_raw_fd(&writable));
        let readable = rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        let map = map(&writable)?;
        Ok(Self { writable, readable, map, bytes })
    }

    fn grow(self, bytes: usize) -> io::Result<Self> {
        rustix::fs::ftruncate(&self.writable, bytes as u64)?;
        let map = map(&self.writable)?;
        Ok(Self { map, bytes, ..self })
    }
}

fn map(file: &OwnedFd) -> io::Result<MmapMut> {
    // Safety: the file cannot shrink, so its pages stay. Nobody else can write into it; clients
    // read it while it is lent, and it is written while it is not.
    #[allow(unsafe_code, reason = "mapping memory that is shared is no matter of types")]
    let map = unsafe { MmapMut::map_mut(file) };
    map
}

impl Lent {
    const fn file_mut(&mut self) -> &mut File {
        self.file.as_mut().expect("given back at the end alone")
    }

    /// What the client gets: it can be read and mapped, and nothing else.
    pub(crate) fn readable(&self) -> BorrowedFd<'_> {
        self.file.as_ref().expect("given back at the end alone").readable.as_fd()
    }
}

impl Lent {
    /// Has the file used again: the client does not look at it any more.
    pub(crate) fn give_back(mut self) {
        let file = self.file.take().expect("given back at the end alone");
        self.files.state().idle.push(file);
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if let Some(File { bytes, .. }) = self.file.take() {
            self.files.state().bytes -= bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    fn files(most_bytes: usize) -> Arc<Files> {
        Arc::new(Files::new(most_bytes))
    }

    fn content(lent: &Lent, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        let mut read = 0;
        while read < len {
            let count = rustix::io::pread(lent.readable(), &mut bytes[read..], read as u64);
            read += count.expect("it can be read");
        }
        bytes
    }

    fn inode(lent: &Lent) -> u64 {
        rustix::fs::fstat(lent.readable()).expect("a file").st_ino
    }

    #[test]
    fn a_file_holds_the_answer_and_clients_cannot_change_it() {
        let slices: Vec<Bytes> =
            (0..5000_u32).map(|at| vec![at as u8; 1 + at as usize % 700].into()).collect();
        let pieces = Pieces::from(slices);
        let lent = files(1 << 30).fill(&pieces).expect("written").expect("there is room");
        assert_eq!(content(&lent, pieces.len_bytes()), pieces.to_vec());
        assert!(rustix::io::pwrite(lent.readable(), b"x", 0).is_err());
        let writable = &lent.file.as_ref().expect("there").writable;
        assert!(rustix::fs::ftruncate(writable, 1).is_err(), "it cannot shrink");
    }

    #[test]
    fn a_large_answer_is_copied_by_two_threads() {
        let shared = SHARED_COPY_BYTES;
        for len in [shared - 1, shared, 2 * FIRST_COPY_BYTES, 3 * FIRST_COPY_BYTES + 5] {
            let bytes: Vec<u8> = (0..len).map(|at| (at / 7 + at / 4096) as u8).collect();
            let slices: Vec<_> = bytes.chunks(611).map(Bytes::copy_from_slice).collect();
            let lent =
                files(1 << 30).fill(&slices.into()).expect("written").expect("there is room");
            assert!(content(&lent, len) == bytes, "{len} bytes");
        }
    }

    #[test]
    fn who_leaves_a_processor_may_come_back() {
        let all = sched_getaffinity(None).expect("known");
        let left = (0..10).any(|_| {
            let here = sched_getcpu();
            leave_processor();
            assert_eq!(sched_getaffinity(None).expect("known"), all);
            sched_getcpu() != here
        });
        assert_eq!(left, all.count() > 1);
    }

    #[test]
    fn files_are_used_again_and_the_best_one_first() {
        let files = files(1 << 20);
        let lend =
            |len: usize| files.fill(&vec![1; len].into()).expect("written").expect("there is room");
        let (small, large) = (lend(1000), lend(9000));
        let (small_inode, large_inode) = (inode(&small), inode(&large));
        assert_ne!(small_inode, large_inode);
        small.give_back();
        large.give_back();
        let lend_again = |len| {
            let lent = lend(len);
            let inode = inode(&lent);
            lent.give_back();
            inode
        };
        assert_eq!(lend_again(900), small_inode);
        assert_eq!(lend_again(1126), large_inode);
        // The largest grows.
        assert_eq!(lend_again(20_000), large_inode);
        assert_eq!(files.state().bytes, 1_125 + 22_500);
    }

    #[test]
    fn a_file_that_is_not_given_back_is_not_used_again() {
        let files = files(1 << 20);
        let lent = files.fill(&vec![1; 1000].into()).expect("written").expect("there is room");
        let kept = rustix::io::dup(lent.readable()).expect("a descriptor");
        drop(lent);
        assert!(files.state().idle.is_empty());
        assert_eq!(files.state().bytes, 0);
        let other = files.fill(&vec![2; 1000].into()).expect("written").expect("there is room");
        let mut first = [0];
        rustix::io::pread(&kept, &mut first, 0).expect("it is still there");
        assert_eq!(first, [1]);
        drop(other);
    }

    #[test]
    fn the_bound_holds() {
        let files = files(10_000);
        let lend = |len: usize| files.fill(&vec![1; len].into()).expect("written");
        let first = lend(6000).expect("there is room");
        assert!(lend(6000).is_none());
        let second = lend(3000).expect("there is room");
        first.give_back();
        second.give_back();
        let all = lend(10_000).expect("idle files make room");
        assert!(lend(1).is_none());
        all.give_back();
        assert!(lend(10_001).is_none());
        assert!(lend(1).is_some());
        assert!(files.state().bytes <= 10_000);
    }

    #[test]
    fn digits_are_not_passed_in_a_file() {
        let mut pieces = Pieces::default();
        pieces.push_hex(vec![1]);
        assert!(files(100).fill(&pieces).expect("no fault").is_none());
    }
}
