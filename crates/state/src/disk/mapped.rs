//! Files as memory. The one place in this crate with `unsafe` code.
//!
//! A file is mapped once, and stays mapped: what was handed out of it may be anywhere. What is
//! looked at there counts as memory of the process, although the system can have it back at any
//! time; so it is given back when it is much.

use crate::limits::{
    MAPPED_ADDED_BYTES, MAPPED_KEPT_BYTES, MAPPED_KEPT_MAX_BYTES, MAPPED_PASSED_BYTES,
    MAPPED_PASSING_BYTES, MAPPED_WINDOW_BYTES,
};
use memmap2::{Mmap, MmapOptions, UncheckedAdvice};
use std::fs;
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError, RwLock};

/// All files that are mapped, by where in memory they begin.
static FILES: RwLock<Vec<&'static MappedFile>> = RwLock::new(Vec::new());

/// What of them may be in memory of the process.
static RESIDENT: Mutex<ResidentWindows> = Mutex::new(ResidentWindows::new(ResidencyLimits {
    kept_bytes: MAPPED_KEPT_BYTES,
    kept_max_bytes: MAPPED_KEPT_MAX_BYTES,
    passing_bytes: MAPPED_PASSING_BYTES,
    passed_bytes: MAPPED_PASSED_BYTES,
    added_bytes: MAPPED_ADDED_BYTES,
}));

/// Where in memory the first of them begins, and the last one ends: most of what is asked for lies
/// elsewhere.
static FIRST: AtomicUsize = AtomicUsize::new(usize::MAX);
static END: AtomicUsize = AtomicUsize::new(0);

#[derive(Debug)]
struct MappedFile {
    bytes: Mmap,
    file: fs::File,
    /// Its device and its number there.
    id: (u64, u64),
    /// Which windows may be in memory of the process.
    are_resident: Box<[AtomicBool]>,
}

/// What the system maps of a file at once, and so what is counted.
type Window = (&'static MappedFile, usize);

/// Windows in the order in which they came: the first ones stay, and those that find no room are
/// given back again and again. Thus of a block that reads more than there is room for, some part is
/// there when the next one reads the same; to keep the latest would keep nothing of it. One block
/// that reads much does not fill the memory. When such blocks follow each other there is room for
/// more, and when that is at its end others have their turn.
#[derive(Debug)]
struct ResidentWindows {
    kept: Vec<Window>,
    passing: Vec<Window>,
    /// Those that came before, and are given back next.
    passed: Vec<Window>,
    limits: ResidencyLimits,
    /// How often those that pass were given back, since there was other room.
    rounds: usize,
}

#[derive(Debug)]
struct ResidencyLimits {
    /// For so much of what is kept, and at most.
    kept_bytes: usize,
    kept_max_bytes: usize,
    /// For so much of what passes and has passed, together.
    passing_bytes: usize,
    /// When so much has passed there is so much more to be kept.
    passed_bytes: usize,
    added_bytes: usize,
}

/// Windows of this size.
const WINDOW_BYTES: usize = MAPPED_WINDOW_BYTES;

/// Bytes that have passed for each that is kept when others have their turn.
const PASSED_PER_KEPT: usize = 4;

impl ResidentWindows {
    const fn new(limits: ResidencyLimits) -> Self {
        Self { kept: Vec::new(), passing: Vec::new(), passed: Vec::new(), limits, rounds: 0 }
    }

    fn add(&mut self, window: Window) {
        let limits = &mut self.limits;
        if self.kept.len() < limits.kept_bytes / WINDOW_BYTES {
            self.kept.push(window);
            return;
        }
        self.passing.push(window);
        if self.passing.len() < limits.passing_bytes / 2 / WINDOW_BYTES {
            return;
        }
        // Who said that they look may not have looked at the latest yet.
        give_back(&mut self.passed);
        std::mem::swap(&mut self.passing, &mut self.passed);
        self.rounds += 1;
        let passed_bytes = self.rounds * limits.passing_bytes / 2;
        if limits.kept_bytes < limits.kept_max_bytes {
            if passed_bytes >= limits.passed_bytes {
                limits.kept_bytes =
                    (limits.kept_bytes + limits.added_bytes).min(limits.kept_max_bytes);
                self.rounds = 0;
            }
        } else if passed_bytes >= PASSED_PER_KEPT * limits.kept_bytes {
            [&mut self.kept, &mut self.passing, &mut self.passed].into_iter().for_each(give_back);
            // And what was looked at when it had been given back already.
            for mapped in &*FILES.read().unwrap_or_else(PoisonError::into_inner) {
                mapped.give_back(0..mapped.bytes.len());
            }
            self.rounds = 0;
        }
    }
}

/// Has the system take these windows back, if it would.
fn give_back(windows: &mut Vec<Window>) {
    windows.sort_unstable_by_key(|(mapped, window)| (mapped.start(), *window));
    let is_next = |a: &Window, b: &Window| std::ptr::eq(a.0, b.0) && a.1 + 1 == b.1;
    for run in windows.chunk_by(is_next) {
        let (mapped, first) = run[0];
        for window in first..first + run.len() {
            mapped.are_resident[window].store(false, Ordering::Relaxed);
        }
        mapped.give_back(mapped.window(first).start..mapped.window(first + run.len() - 1).end);
    }
    windows.clear();
}

impl MappedFile {
    fn start(&self) -> usize {
        self.bytes.as_ptr().addr()
    }

    /// How far behind the start of a window the mapping begins.
    fn shift(&self) -> usize {
        self.start() % WINDOW_BYTES
    }

    /// The bytes of a window.
    fn window(&self, window: usize) -> Range<usize> {
        let start = (window * WINDOW_BYTES).saturating_sub(self.shift());
        let end = (window + 1) * WINDOW_BYTES - self.shift();
        start..end.min(self.bytes.len())
    }

    /// The windows that bytes lie in.
    fn windows(&self, bytes: Range<usize>) -> Range<usize> {
        let start = (self.shift() + bytes.start) / WINDOW_BYTES;
        start..(self.shift() + bytes.end).div_ceil(WINDOW_BYTES)
    }

    /// Has the system take these bytes back, if it would.
    fn give_back(&self, bytes: Range<usize>) {
        // Safety: this is about memory, not about what is in it: the mapping is shared with its
        // file, which nobody writes through it, and what is looked at is mapped again.
        #[allow(unsafe_code, reason = "advice to the system is no matter of types")]
        let _ = unsafe {
            self.bytes.unchecked_advise_range(UncheckedAdvice::DontNeed, bytes.start, bytes.len())
        };
    }

    fn is_resident(&self, window: usize) -> bool {
        self.are_resident[window].load(Ordering::Relaxed)
    }
}

/// Maps the first `bytes` of a file, which may be shorter yet. `None` when the system refuses:
/// the file can be read in any case.
pub(super) fn map(file: &fs::File, bytes: u64) -> Option<&'static [u8]> {
    let bytes = usize::try_from(bytes).ok()?;
    let metadata = file.metadata().ok()?;
    let id = (metadata.dev(), metadata.ino());
    let mut files = FILES.write().unwrap_or_else(PoisonError::into_inner);
    // It was closed and opened again. No other file has its number as long as it is mapped.
    if let Some(known) = files.iter().find(|known| known.id == id && known.bytes.len() >= bytes) {
        return Some(&known.bytes);
    }
    let file = file.try_clone().ok()?;
    // Safety: what is mapped is a segment of a log. It is only appended to: bytes that were written
    // never change, and nobody looks at those that were not. It is cut when the store is opened,
    // before it is mapped, and a file that is removed lasts as long as its mapping. The store's
    // lock keeps other stores out; whoever else writes into our files, or cuts them, could as well
    // write into our memory.
    #[allow(unsafe_code, reason = "mapping a file is no matter of types")]
    let bytes = unsafe { MmapOptions::new().len(bytes).map(&file) }.ok()?;
    let windows = 0..=bytes.len() / WINDOW_BYTES + 1;
    let are_resident = windows.map(|_| AtomicBool::new(false)).collect();
    let mapped = &*Box::leak(Box::new(MappedFile { bytes, file, id, are_resident }));
    let at = files.partition_point(|known| known.start() < mapped.start());
    files.insert(at, mapped);
    FIRST.fetch_min(mapped.start(), Ordering::Relaxed);
    END.fetch_max(mapped.start() + mapped.bytes.len(), Ordering::Relaxed);
    Some(&mapped.bytes)
}

/// Says that bytes will be looked at. Of those that lie in mapped files of stores,
/// [`MAPPED_KEPT_BYTES`] and more stay in memory of the process, and little of the others: whoever
/// looks at them again waits for them to be mapped again, or to be read if the system has them no
/// longer.
pub fn look_at_mapped(bytes: &[u8]) {
    look_at(&RESIDENT, bytes);
}

fn look_at(resident: &Mutex<ResidentWindows>, bytes: &[u8]) {
    let Some((mapped, bytes)) = file_of(bytes) else { return };
    let windows = mapped.windows(bytes);
    // The second time for those that were given back for the others.
    for window in windows.clone().chain(windows) {
        if mapped.is_resident(window) {
            continue;
        }
        let mut resident = resident.lock().unwrap_or_else(PoisonError::into_inner);
        if !mapped.are_resident[window].swap(true, Ordering::Relaxed) {
            resident.add((mapped, window));
        }
    }
}

/// Whether bytes lie in a mapped file of a store, and to look at them there would make them memory
/// of the process: they are better read ([`read_mapped`]).
pub fn is_out_of_memory(bytes: &[u8]) -> bool {
    file_of(bytes).is_some_and(|(mapped, bytes)| {
        mapped.windows(bytes).any(|window| !mapped.is_resident(window))
    })
}

/// Copies bytes that lie in a mapped file of a store by reading the file. False when they lie in
/// none, or the file cannot be read.
///
/// # Panics
/// When `out` has another length.
pub fn read_mapped(bytes: &[u8], out: &mut [u8]) -> bool {
    assert_eq!(bytes.len(), out.len(), "there is room for them");
    file_of(bytes)
        .is_some_and(|(mapped, bytes)| mapped.file.read_exact_at(out, bytes.start as u64).is_ok())
}

/// The mapped file that bytes lie in, and where there.
fn file_of(bytes: &[u8]) -> Option<(&'static MappedFile, Range<usize>)> {
    let start = bytes.as_ptr().addr();
    if start < FIRST.load(Ordering::Relaxed) || start >= END.load(Ordering::Relaxed) {
        return None;
    }
    let files = FILES.read().unwrap_or_else(PoisonError::into_inner);
    let before = files.partition_point(|known| known.start() <= start);
    let mapped = *files[..before].last()?;
    let range = start - mapped.start()..start - mapped.start() + bytes.len();
    (range.end <= mapped.bytes.len()).then_some((mapped, range))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    const WINDOW: usize = WINDOW_BYTES;

    /// A file of holes, mapped.
    fn mapped(bytes: usize) -> (&'static MappedFile, &'static [u8]) {
        let file = tempfile::tempfile().expect("a file");
        file.set_len(bytes as u64).expect("set");
        let bytes = map(&file, bytes as u64).expect("it can be mapped");
        (file_of(bytes).expect("it is mapped").0, bytes)
    }

    /// What is in memory of it, by the system's account.
    #[cfg(target_os = "linux")]
    fn resident_bytes(mapped: &MappedFile) -> usize {
        let maps = fs::read_to_string("/proc/self/smaps").expect("Linux has it");
        let from = format!("{:x}-", mapped.start());
        let of_ours = maps.lines().skip_while(|line| !line.starts_with(&from));
        let mut resident = of_ours.filter_map(|line| line.strip_prefix("Rss:"));
        let kib = resident.next().and_then(|line| line.split_whitespace().next());
        kib.and_then(|kib| kib.parse::<usize>().ok()).expect("a number") << 10
    }

    /// How much may be in memory is bounded, whoever looks at what.
    #[test]
    fn what_is_looked_at_is_given_back() {
        let most_bytes = 32 * WINDOW;
        let resident = Mutex::new(ResidentWindows::new(ResidencyLimits {
            kept_bytes: 4 * WINDOW,
            kept_max_bytes: 16 * WINDOW,
            passing_bytes: 16 * WINDOW,
            passed_bytes: 64 * WINDOW,
            added_bytes: 4 * WINDOW,
        }));
        let (mapped, bytes) = mapped(100 * WINDOW + 1234);
        let seed = rand::random();
        let mut rng = StdRng::seed_from_u64(seed);
        let mut were_kept = 0;
        for _ in 0..2_000 {
            let start = rng.random_range(0..bytes.len());
            let end = (start + rng.random_range(1..100_000)).min(bytes.len());
            let looked_at = &bytes[start..end];
            were_kept += usize::from(!is_out_of_memory(looked_at));
            look_at(&resident, looked_at);
            let mut read = vec![1; looked_at.len()];
            assert!(read_mapped(looked_at, &mut read), "seed {seed}");
            assert!(read == looked_at, "seed {seed}");
            let flags = mapped.are_resident.iter().filter(|flag| flag.load(Ordering::Relaxed));
            assert!(flags.count() * WINDOW <= most_bytes, "seed {seed}");
            #[cfg(target_os = "linux")]
            assert!(resident_bytes(mapped) <= most_bytes, "seed {seed}");
        }
        // A third fits; most have two windows.
        assert!((100..800).contains(&were_kept), "{were_kept} of seed {seed}");
    }

    #[test]
    fn there_is_more_room_when_it_is_wanted() {
        let resident = Mutex::new(ResidentWindows::new(ResidencyLimits {
            kept_bytes: 4 * WINDOW,
            kept_max_bytes: 8 * WINDOW,
            passing_bytes: 4 * WINDOW,
            passed_bytes: 16 * WINDOW,
            added_bytes: 2 * WINDOW,
        }));
        let (mapped, bytes) = mapped(16 * WINDOW);
        let are_there = |count: usize| {
            let starts = (0..count).map(|index| mapped.window(index + 1).start);
            starts.filter(|start| !is_out_of_memory(&bytes[*start..*start + 1])).count()
        };
        let look = |count: usize| {
            for index in 0..count {
                look_at(&resident, &bytes[mapped.window(index + 1)]);
            }
            are_there(count)
        };
        // Six of ten pass, and two of those are there yet: after 16 there is more room.
        let found: Vec<_> = (0..8).map(|_| look(10)).collect();
        assert_eq!(found, [6, 6, 8, 8, 8, 8, 8, 10]);
        // Eight is the most: after 32 others have their turn.
        let found: Vec<_> = [11, 13]
            .into_iter()
            .cycle()
            .take(16)
            .map(|first| {
                let windows = mapped.window(first).start..mapped.window(first + 1).end;
                look_at(&resident, &bytes[windows]);
                are_there(6)
            })
            .collect();
        assert_eq!(found, [[6; 15].as_slice(), &[0]].concat());
        assert_eq!((look(2), are_there(6)), (2, 2));
    }

    #[test]
    fn windows_are_those_of_the_addresses() {
        let (mapped, bytes) = mapped(1_000_000);
        let windows = mapped.windows(0..bytes.len());
        assert!(windows.end <= mapped.are_resident.len());
        let mut end = 0;
        for window in windows {
            let range = mapped.window(window);
            assert_eq!(range.start, end);
            assert!(range.start == 0 || (mapped.start() + range.start) % WINDOW_BYTES == 0);
            assert_eq!(mapped.windows(range.clone()), window..window + 1);
            end = range.end;
        }
        assert_eq!(end, bytes.len());
    }
}
