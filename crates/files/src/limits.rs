//! Every bound on what is read from files, with its unit and its reason.

/// Longest block, in bytes of RLP or SSZ. A block of 1 G gas has at most 250 MB of calldata.
pub const BLOCK_BYTES: u64 = 256 << 20;

/// Longest JSON value that is one block: two digits for each byte of the longest block, and room
/// for the names.
pub const BLOCK_JSON_BYTES: usize = (BLOCK_BYTES as usize) * 2 + (64 << 20);

/// Longest name, number, hash or address in a state dump, in bytes. The longest is 32 bytes in
/// hex, or 2^256 in decimal.
pub(super) const WORD_BYTES: usize = 256;

/// Longest code in a state dump, in bytes of hex text. The rules allow 24 KiB of code and EIP-7907
/// asks for 256 KiB; what a test network's genesis has is up to its author.
pub(super) const CODE_TEXT_BYTES: usize = 64 << 20;

/// Longest part of a genesis other than its accounts, in bytes: configurations have a few KiB.
pub(super) const GENESIS_HEAD_BYTES: usize = 1 << 20;

/// Arrays and objects inside one another in a JSON value that is passed over.
pub(super) const JSON_DEPTH: usize = 128;

/// Blocks in one era1 file, which the format has as the limit of its accumulator.
pub const ERA1_BLOCKS: usize = 8192;

/// Slots in one era (SLOTS_PER_HISTORICAL_ROOT of the consensus specification).
pub(super) const ERA_SLOTS: u64 = 8192;

/// Bytes of a file that are read at a time.
pub(super) const INPUT_BUFFER_BYTES: usize = 256 << 10;

/// Largest window of a zstd frame, in bytes: what `zstd -d` takes, and `zstd --long` makes.
pub(super) const ZSTD_WINDOW_BYTES: u64 = 128 << 20;

/// Bytes of a file's beginning whose hash is part of its identity when work on it goes on.
pub(super) const IDENTITY_BYTES: usize = 64 << 10;

/// Memory for sorting a state, in bytes, when the caller names none: as large as keeps the runs of
/// mainnet's state (about 100 GB) under the number that is merged at once.
pub const SORT_MEMORY_BYTES: usize = 512 << 20;

/// Least memory for sorting a state, in bytes: with less, the runs would be shorter than what is
/// read of each at a time.
pub const SORT_MEMORY_LEAST_BYTES: usize = 256 << 10;

/// Bytes that are read at a time of each file that is merged.
pub(super) const MERGE_BUFFER_BYTES: usize = 128 << 10;

/// Bytes of accounts that are handed from reading to sorting at a time: much more than the
/// handing costs, and little beside the memory for sorting.
pub(super) const SORT_BATCH_BYTES: usize = 4 << 20;

/// Sorted files that are merged at once: open files, of which a process may have 1024.
pub(super) const MERGED_FILES: usize = 256;

/// Parts of one account's storage that are merged at once. While they are, those of a merge of
/// runs are open too.
pub(super) const MERGED_PARTS: usize = 128;

/// Hashes of codes that are remembered so that a code is kept once, 32 bytes each. Mainnet has
/// about two million codes; one that was forgotten is kept twice, and no harm done.
pub(super) const KNOWN_CODES: usize = 1 << 20;

/// Seconds between two lines of progress in a log.
pub(super) const PROGRESS_LOG_SECONDS: u64 = 10;
