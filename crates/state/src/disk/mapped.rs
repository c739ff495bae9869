//! Files as memory. The one place in this crate with `unsafe` code.

use alloy_primitives::{Bytes, bytes};
use memmap2::MmapOptions;
use std::fs;

/// Maps the first `bytes` of a file, which may be shorter yet. `None` when the system refuses:
/// the file can be read in any case.
pub(super) fn map(file: &fs::File, bytes: u64) -> Option<Bytes> {
    let bytes = usize::try_from(bytes).ok()?;
    // Safety: what is mapped is a segment of a log. It is only appended to: bytes that were written
    // never change, and nobody looks at those that were not. It is cut when the store is opened,
    // before it is mapped, and a file that is removed lasts as long as its mapping. The store's
    // lock keeps other stores out; whoever else writes into our files, or cuts them, could as well
    // write into our memory.
    #[allow(unsafe_code, reason = "mapping a file is no matter of types")]
    let map = unsafe { MmapOptions::new().len(bytes).map(file) };
    Some(bytes::Bytes::from_owner(map.ok()?).into())
}
