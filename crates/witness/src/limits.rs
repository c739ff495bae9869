//! Bounds of decoded witnesses, each with its unit and its reason.

/// Items in `state` or in `codes`: the list limit of the witness endpoint's SSZ schema
/// (execution-apis #885), 2^20. A full 60 M gas block of distinct codes needs about 23,000.
pub const ITEMS: usize = 1 << 20;

/// Bytes in one item: the `ByteList[2^20]` of the same schema. The largest real items are codes of
/// 64 KiB (EIP-7954).
pub const ITEM_BYTES: usize = 1 << 20;

/// Headers in one witness: the reach of `BLOCKHASH`, 256 ancestors.
pub const HEADERS: usize = 256;

/// Bytes in one SSZ document: its offsets are 32 bits wide.
pub const SSZ_BYTES: usize = u32::MAX as usize;

/// Bytes from which on an item is sent from its own memory and not copied between others: the
/// largest node has 532.
pub const COPIED_ITEM_BYTES: usize = 1 << 10;

/// Bytes of an encoding that are copied at most, so that a large witness takes little more memory
/// than its items.
pub const COPIED_BYTES: usize = 32 << 20;
