//! The bounds of this crate, each with its unit and its reason.

/// The longest key, in bytes. Ethereum's longest trie keys are Keccak-256 hashes; the bound also
/// limits the depth of every walk and recursion, whatever nodes a source returns.
pub const MAX_KEY_BYTES: usize = 32;

/// The longest path from the root to a value, in nibbles.
pub(crate) const MAX_KEY_NIBBLES: usize = 2 * MAX_KEY_BYTES;

/// The slots of one storage, loaded or changed, above which the storage is cut into sixteen parts:
/// below it the parts would be too small to be worth a thread's attention.
/// Tests cut much sooner, so that small random states have cut storages.
pub(crate) const CUT_SLOTS: usize = if cfg!(test) { 5 } else { 64 };
