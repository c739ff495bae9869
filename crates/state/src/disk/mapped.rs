//! Memory-mapped files. The only module of this crate with `unsafe` code.
//!
//! A file is mapped once and stays mapped, since slices of the mapping may be held anywhere. Pages
//! of a mapping that were read count as resident memory of the process, although the system can
//! reclaim them at any time; so they are given back when there are too many.

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

/// All mapped files, ordered by address.
static FILES: RwLock<Vec<&'static MappedFile>> = RwLock::new(Vec::new());

/// The windows that may be resident.
static RESIDENT: Mutex<ResidentWindows> = Mutex::new(ResidentWindows::new(ResidencyLimits {
    kept_bytes: MAPPED_KEPT_BYTES,
    kept_max_bytes: MAPPED_KEPT_MAX_BYTES,
    passing_bytes: MAPPED_PASSING_BYTES,
    passed_bytes: MAPPED_PASSED_BYTES,
    added_bytes: MAPPED_ADDED_BYTES,
}));

/// The lowest start and the highest end address of all mappings: a quick test for most slices.
static FIRST: AtomicUsize = AtomicUsize::new(usize::MAX);
static END: AtomicUsize = AtomicUsize::new(0);

#[derive(Debug)]
struct MappedFile {
    bytes: Mmap,
    file: fs::File,
    /// The device and inode number of the file.
    id: (u64, u64),
    /// For each window, whether it may be resident.
    are_resident: Box<[AtomicBool]>,
}

/// A window: the unit in which the system maps a file on a page fault, and in which pages are
/// counted.
type Window = (&'static MappedFile, usize);

/// The windows that may be resident, in the order in which they were first read. The first ones
/// stay, up to a limit, and later ones are given back in turn. So if blocks read more than the
/// limit again and again, a part of it is resident for each of them, where an LRU order would keep
/// none of it. The limit grows when much passes through, and when it is at its maximum all windows
/// are given back now and then, so that others can take their place.
#[derive(Debug)]
struct ResidentWindows {
    kept: Vec<Window>,
    passing: Vec<Window>,
    /// The windows that passed before those, and are given back next.
    passed: Vec<Window>,
    limits: ResidencyLimits,
    /// The number of times that passing windows were given back since the limit last changed.
    rounds: usize,
}

#[derive(Debug)]
struct ResidencyLimits {
    /// The limit of kept windows, and its maximum.
    kept_bytes: usize,
    kept_max_bytes: usize,
    /// The limit of passing and passed windows together.
    passing_bytes: usize,
    /// When so many bytes have passed, the limit of kept windows grows by `added_bytes`.
    passed_bytes: usize,
    added_bytes: usize,
}

/// Bytes of a window.
const WINDOW_BYTES: usize = MAPPED_WINDOW_BYTES;

/// Bytes that pass for each kept byte before all windows are given back.
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
        // The latest windows may not have been read yet, so the earlier half is given back.
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
            // Some windows may have been read after they were given back.
            for mapped in &*FILES.read().unwrap_or_else(PoisonError::into_inner) {
                mapped.give_back(0..mapped.bytes.len());
            }
            self.rounds = 0;
        }
    }
}

/// Gives these windows back to the system.
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

    /// The offset of the mapping within its first window.
    fn shift(&self) -> usize {
        self.start() % WINDOW_BYTES
    }

    /// The bytes of a window.
    fn window(&self, window: usize) -> Range<usize> {
        let start = (window * WINDOW_BYTES).saturating_sub(self.shift());
        let end = (window + 1) * WINDOW_BYTES - self.shift();
        start..end.min(self.bytes.len())
    }

    /// The windows of these bytes.
    fn windows(&self, bytes: Range<usize>) -> Range<usize> {
        let start = (self.shift() + bytes.start) / WINDOW_BYTES;
        start..(self.shift() + bytes.end).div_ceil(WINDOW_BYTES)
    }

    /// Gives these bytes back to the system.
    fn give_back(&self, bytes: Range<usize>) {
        // Safety: the advice changes residency, not content: the mapping is shared and read-only,
        // and a later read maps the page again.
        #[allow(unsafe_code, reason = "advice to the system is no matter of types")]
        let _ = unsafe {
            self.bytes.unchecked_advise_range(UncheckedAdvice::DontNeed, bytes.start, bytes.len())
        };
    }

    fn is_resident(&self, window: usize) -> bool {
        self.are_resident[window].load(Ordering::Relaxed)
    }
}

/// Maps the first `bytes` of a file, which may still be shorter. `None` if the system refuses; the
/// file can then be read.
pub(super) fn map(file: &fs::File, bytes: u64) -> Option<&'static [u8]> {
    let bytes = usize::try_from(bytes).ok()?;
    let metadata = file.metadata().ok()?;
    let id = (metadata.dev(), metadata.ino());
    let mut files = FILES.write().unwrap_or_else(PoisonError::into_inner);
    // The file was closed and opened again. A mapped inode number is not reused.
    if let Some(known) = files.iter().find(|known| known.id == id && known.bytes.len() >= bytes) {
        return Some(&known.bytes);
    }
    let file = file.try_clone().ok()?;
    // Safety: the file is a segment of a log, which is append-only: written bytes never change, and
    // bytes beyond the end are never read. It is cut only when the store is opened, before it is
    // mapped, and a removed file lasts as long as its mapping. The lock file keeps other stores
    // out; another program that writes into the files could as well write into our memory.
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

/// Announces that bytes are about to be read. Of those in mapped files of stores,
/// [`MAPPED_KEPT_BYTES`] and more stay resident; the others are given back to the system, and a
/// later read maps them again, or waits for the device if the system has evicted them.
pub fn look_at_mapped(bytes: &[u8]) {
    look_at(&RESIDENT, bytes);
}

fn look_at(resident: &Mutex<ResidentWindows>, bytes: &[u8]) {
    let Some((mapped, bytes)) = file_of(bytes) else { return };
    let windows = mapped.windows(bytes);
    // The second round is for windows that were given back during the first.
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

/// Whether bytes lie in a mapped file of a store and are not resident, so that [`read_mapped`] is
/// better than reading the mapping.
pub fn is_out_of_memory(bytes: &[u8]) -> bool {
    file_of(bytes).is_some_and(|(mapped, bytes)| {
        mapped.windows(bytes).any(|window| !mapped.is_resident(window))
    })
}

/// Copies bytes that lie in a mapped file of a store by reading the file. False if they lie in no
/// such file, or the file cannot be read.
///
/// # Panics
/// When `out` has another length.
pub fn read_mapped(bytes: &[u8], out: &mut [u8]) -> bool {
    assert_eq!(bytes.len(), out.len(), "there is room for them");
    file_of(bytes)
        .is_some_and(|(mapped, bytes)| mapped.file.read_exact_at(out, bytes.start as u64).is_ok())
}

/// The mapped file that bytes lie in, and their range in it.
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

    /// The resident bytes of a file, by the system's account.
    #[cfg(target_os = "linux")]
    fn resident_bytes(mapped: &MappedFile) -> usize {
        let maps = fs::read_to_string("/proc/self/smaps").expect("Linux has it");
        let from = format!("{:x}-", mapped.start());
        let of_ours = maps.lines().skip_while(|line| !line.starts_with(&from));
        let mut resident = of_ours.filter_map(|line| line.strip_prefix("Rss:"));
        let kib = resident.next().and_then(|line| line.split_whitespace().next());
        kib.and_then(|kib| kib.parse::<usize>().ok()).expect("a number") << 10
    }

    /// The resident bytes are bounded, whatever is read.
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
        let mut rng = StdRng::seed_from_u64(testing::seed());
        let mut were_kept = 0;
        for _ in 0..2_000 {
            let start = rng.random_range(0..bytes.len());
            let end = (start + rng.random_range(1..100_000)).min(bytes.len());
            let looked_at = &bytes[start..end];
            were_kept += usize::from(!is_out_of_memory(looked_at));
            look_at(&resident, looked_at);
            let mut read = vec![1; looked_at.len()];
            assert!(read_mapped(looked_at, &mut read));
            assert!(read == looked_at);
            let flags = mapped.are_resident.iter().filter(|flag| flag.load(Ordering::Relaxed));
            assert!(flags.count() * WINDOW <= most_bytes);
            #[cfg(target_os = "linux")]
            assert!(resident_bytes(mapped) <= most_bytes);
        }
        // A third fits; most have two windows.
        assert!((100..800).contains(&were_kept), "{were_kept}");
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
