//! The bounds of this crate, each with its unit and its reason.

use std::time::Duration;

/// Bytes of a page, which has some ten nodes. A cold node costs a page; of a page of 16 KiB all but
/// one node would mostly be read and cached in vain.
pub const PAGE_BYTES: usize = 4 << 10;

/// Bytes of a page that hold records. The rest is the checksum in the file, and the reference
/// counts in memory.
pub const PAGE_CONTENT_BYTES: usize = PAGE_BYTES - 16;

/// Bytes of a segment file: the unit of deletion, and few enough files for a terabyte.
pub const SEGMENT_BYTES: u64 = 256 << 20;

/// Bytes of a segment of witnesses; smaller, as retention is by whole segments.
pub const WITNESS_SEGMENT_BYTES: u64 = 64 << 20;

/// Bytes of the smallest segment: a header and a page. Tests use it.
pub const MIN_SEGMENT_BYTES: u64 = 2 * PAGE_BYTES as u64;

/// Zero bytes after each code in its file, so that a reader that may look 33 bytes beyond the end
/// of a code can use it in place.
pub const CODE_PADDING_BYTES: usize = 33;

/// Bytes of a code's beginning that are handed out with it. They distinguish most compiled codes,
/// by the first function selector.
pub const CODE_FIRST_BYTES: usize = 32;

/// Bytes that a mapping extends beyond the nominal end of a segment, for its last frame. A frame
/// that reaches further is read into memory; few codes are that long.
pub const MAPPED_BEYOND_BYTES: u64 = 1 << 20;

/// Bytes that Linux maps around a byte on a page fault, as far as they are in the page cache. Other
/// systems map less, so more is counted than is resident.
pub const MAPPED_WINDOW_BYTES: usize = 64 << 10;

/// The initial limit of resident bytes of mapped files: little compared with the buffer of an
/// answer of 500 MB.
pub const MAPPED_KEPT_BYTES: usize = 16 << 20;

/// The maximum of that limit: twice the codes of the heaviest block.
pub const MAPPED_KEPT_MAX_BYTES: usize = 1 << 30;

/// Bytes given back after which the limit grows: somewhat more than the heaviest block reads, so
/// that one block alone does not raise it.
pub const MAPPED_PASSED_BYTES: usize = 2 << 30;

/// Bytes by which the limit grows: an eighth of the codes of the heaviest block.
pub const MAPPED_ADDED_BYTES: usize = 64 << 20;

/// Bytes beyond the limit that may be resident at a time: as much as the initial limit, and enough
/// for each system call to give back many windows.
pub const MAPPED_PASSING_BYTES: usize = 16 << 20;

/// Bytes of a frame's payload. The largest witness that we know of is 500 MB.
pub const MAX_FRAME_BYTES: usize = 2 << 30;

/// Bytes of a file of the journal from which on the next one is begun: some forty large blocks. It
/// is read in milliseconds at a start, and a file is begun seldom.
pub const JOURNAL_FILE_BYTES: u64 = 4 << 20;

/// Bytes gathered before a write. A call takes a tenth of a millisecond, which other threads may
/// have to wait for if there are few processors.
pub const WRITE_BUFFER_BYTES: usize = 64 << 10;

/// Bytes of pages between two syncs. A thread under back-pressure waits for one such part: a second
/// or two on the slowest disks.
pub const WRITE_PART_BYTES: usize = 8 << 20;

/// Pages in the table of a reader of nodes: a table of 256 KiB, which stays in the processor's
/// cache. A reader holds at most 64 MiB of pages, nearly all of which are in the page cache as
/// well.
pub const PAGES_AT_HAND: usize = 1 << 14;

/// Pages that a reader looks up before it allocates the table.
pub const PAGES_AT_HAND_FROM: usize = 256;

/// Bytes of the log of nodes that are read with a page if the thread waits for the device:
/// neighbours in the trie are often neighbours in the log.
pub const READ_AROUND_BYTES: u64 = 32 << 10;

/// Pages that a thread reads so after it has waited for the device: where one of that many is not
/// in the system's memory, the others pay for it, 0.7 µs each.
pub const READS_AFTER_WAITING: u32 = 16;

/// Bytes of one read-ahead request. Of a larger request Linux silently reads only the first part.
pub const ANNOUNCED_BYTES: u64 = 128 << 10;

/// Bytes of the log of nodes that one call of `read_ahead` reads into the cache, while the system
/// is asked for as many before them. The system lets no other thread run on that processor for the
/// 60 µs that the request takes.
pub const READ_AHEAD_BYTES: u64 = 256 << 10;

/// Bytes of these that one read of the file takes. Not every system lets other threads run before
/// it has copied all, and a guest's first access to a page may take its host 50 µs.
pub const READ_PART_BYTES: usize = 16 << 10;

/// The most open files of one log; a process has 1,024 descriptors by default on Linux.
pub const MAX_OPEN_SEGMENTS: usize = 128;

/// Bytes of pages of nodes in memory, unless the options say otherwise.
pub const PAGE_CACHE_BYTES: u64 = 1 << 30;

/// Bytes of an entry of the code cache, the code aside.
pub const CODE_ENTRY_BYTES: u64 = 192;

/// Bytes of codes in memory whose files cannot be mapped. Mapped codes take [`CODE_ENTRY_BYTES`]
/// each; a heavy block reads 20,000 of them.
pub const CODE_CACHE_BYTES: u64 = 256 << 20;

/// The duration from which a read counts as one of the device: a read from the system's page cache
/// takes some microseconds, a disk at least 50.
pub const SLOW_READ: Duration = Duration::from_micros(40);

/// Bytes of the index's pages in memory: the upper levels of its trees.
pub const INDEX_CACHE_BYTES: usize = 32 << 20;

/// Parts of a counter: as many as there are threads that read at once on most machines.
pub const COUNTER_STRIPES: usize = 16;

/// Bytes of the sweep state that is stored with a block.
pub const MAX_SWEEP_BYTES: usize = 128;

/// Bytes of a value that the engine keeps in the index. The longest is the state of an unfinished
/// build: some KiB, and 82 KiB with keys that were made to have long prefixes in common.
pub const MAX_META_BYTES: usize = 96 << 10;
