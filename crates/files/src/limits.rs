//! Every bound of this crate, with its unit and its reason.

use std::time::Duration;

/// The longest block, in bytes of RLP or SSZ. A block of 1 G gas has at most 250 MB of calldata.
pub const BLOCK_BYTES: u64 = 256 << 20;

/// The longest JSON value of one block, in bytes: two digits for each byte of the longest block,
/// and 64 MiB for names.
pub const BLOCK_JSON_BYTES: usize = (BLOCK_BYTES as usize) * 2 + (64 << 20);

/// The number of characters of a file's text that an error repeats.
pub(super) const QUOTE_CHARS: usize = 200;

/// The most parameters of a request: engine_newPayload has 4.
pub(super) const PARAMS: usize = 16;

/// The longest name, number, hash or address in a state dump, in bytes. Valid ones have at most 32
/// bytes in hex, or 78 decimal digits.
pub(super) const WORD_BYTES: usize = 256;

/// The longest code in a state dump, in bytes of hex text. The rules allow 24 KiB of code, EIP-7907
/// proposes 256 KiB, and the genesis of a test network may have any length.
pub(super) const CODE_TEXT_BYTES: usize = 64 << 20;

/// The number of bytes of a dump's first account that are looked at for its form: its key comes
/// after its slots. Of a longer one the values of the slots decide.
pub(super) const FIRST_ACCOUNT_BYTES: usize = 64 << 20;

/// The longest genesis without its accounts, in bytes: configurations have a few KiB.
pub(super) const GENESIS_HEAD_BYTES: usize = 1 << 20;

/// The deepest nesting of arrays and objects in a skipped JSON value.
pub(super) const JSON_DEPTH: usize = 128;

/// The most blocks in one era1 or ere file, by the limit of the formats' accumulator.
pub const ARCHIVE_BLOCKS: usize = 8192;

/// The longest header in an era1 or ere file, in bytes: those of proof of work have some 540,
/// those of test networks that were sealed by authorities up to some KiB of signers.
pub(super) const ARCHIVE_HEADER_BYTES: u64 = 64 << 10;

/// The most bytes of headers in one ere file, unpacked: they come before the bodies, and are held
/// until these come. Headers of 8192 blocks have some 5 MB, and 8 KiB are left for each.
pub(super) const ERE_HEADERS_BYTES: u64 = 64 << 20;

/// The longest proof in an ere file, in bytes: the longest kind has some 900.
pub(super) const ERE_PROOF_BYTES: u64 = 4 << 10;

/// The most files that are put in order at once: mainnet has some 3,000 archives.
pub const CHAIN_FILES: usize = 1 << 16;

/// The number of slots in one era (SLOTS_PER_HISTORICAL_ROOT of the consensus specification).
pub(super) const ERA_SLOTS: u64 = 8192;

/// The number of bytes read from a file at a time.
pub(super) const INPUT_BUFFER_BYTES: usize = 256 << 10;

/// How many times its own length a packed file that is read whole may hold, where that is more than
/// [`PACKED_BYTES`]. Digits and code of contracts pack to a tenth at best; a file of some KB that
/// holds a GB is made to fill the memory, or has one word over and over.
pub const PACKED_TIMES: u64 = 100;

/// Bytes of content that any packed file may hold that is read whole: too few to fill a memory.
pub const PACKED_BYTES: u64 = 64 << 20;

/// Up to so many bytes of content that is read whole, its buffer doubles when it is full.
pub(super) const DOUBLED_BYTES: usize = 32 << 20;

/// Bytes of unpacked snappy that are read at a time: a frame.
pub(super) const SNAPPY_PIECE_BYTES: usize = 64 << 10;

/// The largest window of a zstd frame, as a power of two in bytes: `zstd -d` accepts and `zstd
/// --long` makes it.
pub(super) const ZSTD_WINDOW_LOG: u32 = 27;

/// The number of bytes at a file's beginning that are hashed to recognise it when a sort continues.
pub(super) const IDENTITY_BYTES: usize = 64 << 10;

/// The default memory for sorting a state, in bytes: enough that mainnet's state (about 100 GB)
/// makes no more runs than are merged at once.
pub const SORT_MEMORY_BYTES: usize = 512 << 20;

/// The least memory for sorting a state, in bytes: with less, runs would be shorter than the buffer
/// with which each is read.
pub const SORT_MEMORY_LEAST_BYTES: usize = 256 << 10;

/// The number of bytes read at a time from each file that is merged.
pub(super) const MERGE_BUFFER_BYTES: usize = 128 << 10;

/// The number of bytes of accounts in one batch from reader to sorter: enough to outweigh the cost
/// of sending, and little beside the memory for sorting.
pub(super) const SORT_BATCH_BYTES: usize = 4 << 20;

/// The number of sorted files merged at once. All are open, and a process may have 1024 files.
pub(super) const MERGED_FILES: usize = 256;

/// The number of parts of one account's storage merged at once. The files of a merge of runs are
/// open at the same time.
pub(super) const MERGED_PARTS: usize = 128;

/// The number of code hashes remembered to write each code once, 32 bytes each. Mainnet has about
/// two million codes; a code whose hash was dropped is written twice, which is harmless.
pub(super) const KNOWN_CODES: usize = 1 << 20;

/// The interval between two lines of progress in a log, in seconds.
pub(super) const PROGRESS_LOG_SECONDS: u64 = 10;

/// The interval at which a progress bar is drawn and speeds are measured.
pub(super) const TICK: Duration = Duration::from_millis(500);

/// The number of ticks over which speeds are averaged: ten seconds.
pub(super) const TICKS: usize = 20;

/// The number of bytes inspected to recognise the next JSON value: more than the members before the
/// first one that decides.
pub(super) const LOOK_AHEAD_BYTES: usize = 4 << 10;

/// The longest chain of symbolic links followed to a file that is written, as on Linux.
pub(super) const MOST_LINKS: usize = 40;

/// The default number of an account's slots in one item of the reader: 2 MiB of them, of which some
/// wait for the thread that builds.
pub(super) const SLOTS_AT_ONCE: usize = 1 << 15;

/// The number of bytes of a sorted file buffered before they are written.
pub(super) const WRITE_BYTES: usize = 1 << 20;
