//! Bounds of all that can grow here, with unit and reason.

use std::time::Duration;

/// Bytes of a page of nodes, some ten: a cold node costs a page, and of 16 KiB all but one node
/// would mostly be read in vain, and kept.
pub const PAGE_BYTES: usize = 4 << 10;

/// Bytes of a page that hold records; the rest is its checksum in a file, and in memory the counts
/// of those who hold it.
pub const PAGE_CONTENT_BYTES: usize = PAGE_BYTES - 16;

/// Bytes of a segment file: what is deleted or copied at once, and few enough files for a terabyte.
pub const SEGMENT_BYTES: u64 = 256 << 20;

/// Bytes of a segment of witnesses; smaller, as retention is by whole segments.
pub const WITNESS_SEGMENT_BYTES: u64 = 64 << 20;

/// Bytes of the smallest segment: a header and a page. Tests use it.
pub const MIN_SEGMENT_BYTES: u64 = 2 * PAGE_BYTES as u64;

/// Zero bytes behind each code in its file: behind the end of a code the EVM finds `STOP`, after
/// the 32 bytes of the longest operand that may be cut off there. So a code runs where it lies.
pub const CODE_PADDING_BYTES: usize = 33;

/// The first bytes of a code that are handed out beside it: with so many, codes that compilers make
/// have told each other apart, mostly by their first function's selector.
pub const CODE_FIRST_BYTES: usize = 32;

/// Bytes that a mapping reaches beyond where a segment is full, for its last frame. What lies
/// further behind is read into memory; few codes are that long.
pub const MAPPED_BEYOND_BYTES: u64 = 1 << 20;

/// Bytes that Linux maps around a byte on a page fault, as far as they are in the page cache. Other
/// systems map less, so more is counted than is resident.
pub const MAPPED_WINDOW_BYTES: usize = 64 << 10;

/// Bytes of mapped files that stay in memory of the process once they were looked at, at first:
/// little beside the file of memory that a first answer of 500 MB comes in.
pub const MAPPED_KEPT_BYTES: usize = 16 << 20;

/// And at most, when much is wanted again and again: twice the codes of the heaviest block.
pub const MAPPED_KEPT_MAX_BYTES: usize = 1 << 30;

/// Bytes that were given back after which more stay: somewhat more than a single block reads of the
/// heaviest, whose codes share their windows and are read in no order of the files.
pub const MAPPED_PASSED_BYTES: usize = 2 << 30;

/// How much more stays then: an eighth of the codes of the heaviest block.
pub const MAPPED_ADDED_BYTES: usize = 64 << 20;

/// Bytes of what does not stay that are there at a time: as little as what stays at first, and
/// enough for each call of the system to give back many windows.
pub const MAPPED_PASSING_BYTES: usize = 16 << 20;

/// Bytes of a frame's payload. The largest witness that we know of is 500 MB.
pub const MAX_FRAME_BYTES: usize = 2 << 30;

/// Bytes gathered before a write. A call takes a tenth of a millisecond, which other threads may
/// have to wait for if there are few processors.
pub const WRITE_BUFFER_BYTES: usize = 64 << 10;

/// Bytes of pages between two syncs. A thread under back-pressure waits for one such part: a second
/// or two on the slowest disks.
pub const WRITE_PART_BYTES: usize = 8 << 20;

/// Pages that a reader of nodes has at hand, by a table of 256 KiB that should stay in the
/// processor's cache. As long as it reads, the pages that it has been to twice stay in memory: 64
/// MiB of them at most, nearly all of which are in the cache of pages as well.
pub const PAGES_AT_HAND: usize = 1 << 14;

/// Pages that it looks up before that is worth it.
pub const PAGES_AT_HAND_FROM: usize = 256;

/// Bytes that are read of the log of nodes where a page of them is wanted and the device is waited
/// for: what is next to it in the trie may lie there.
pub const READ_AROUND_BYTES: u64 = 32 << 10;

/// Pages that a thread reads so after it has waited for the device: where one of that many is not
/// in the system's memory, the others pay for it, 0.7 µs each.
pub const READS_AFTER_WAITING: u32 = 16;

/// Bytes that the system is told of at once that they are wanted: of more than its limit for a
/// request it reads the first ones alone, and says nothing.
pub const ANNOUNCED_BYTES: u64 = 128 << 10;

/// Bytes of the log of nodes that are read ahead before one looks whether somebody else wants the
/// processor, and that the system is asked for at once, while those before are read: it lets nobody
/// run meanwhile, for 60 µs.
pub const READ_AHEAD_BYTES: u64 = 256 << 10;

/// Bytes of these that one call of the system reads. Not every system lets others run before it has
/// copied all, and a guest's first look at a page may take its host 50 µs.
pub const READ_PART_BYTES: usize = 16 << 10;

/// Files of one log that are open at once; a process has 1,024 by default on Linux.
pub const MAX_OPEN_SEGMENTS: usize = 128;

/// Bytes of pages of nodes in memory, unless the options say otherwise.
pub const PAGE_CACHE_BYTES: u64 = 1 << 30;

/// Bytes of memory that the cache of codes takes for each, itself aside.
pub const CODE_ENTRY_BYTES: u64 = 192;

/// Bytes of codes in memory: those that lie in files that cannot be mapped. Of the others a heavy
/// block reads 20,000, which take no memory of ours but [`CODE_ENTRY_BYTES`] each.
pub const CODE_CACHE_BYTES: u64 = 256 << 20;

/// From this time on a read was not from memory, where it takes some microseconds. A disk takes
/// upwards of 50.
pub const SLOW_READ: Duration = Duration::from_micros(40);

/// Bytes of the index's pages in memory: the upper levels of its trees.
pub const INDEX_CACHE_BYTES: usize = 32 << 20;

/// Bytes of a block's note about sweeping.
pub const MAX_SWEEP_BYTES: usize = 128;

/// Bytes of a value that the engine keeps in the index.
pub const MAX_META_BYTES: usize = 64 << 10;
