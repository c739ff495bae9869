//! An encoding as byte strings to be sent one after the other: items uncopied.

use alloy_primitives::Bytes;

/// A slice of an encoding.
pub(crate) enum Part<'a> {
    /// Offsets or headers.
    Between(&'a [u8]),
    /// An item of the witness.
    Item(&'a Bytes),
}

impl<'a> Part<'a> {
    pub(crate) fn bytes(self) -> &'a [u8] {
        match self {
            Self::Between(bytes) => bytes,
            Self::Item(item) => item,
        }
    }
}

/// Collects what `write` hands over. What stands between items is slices of one buffer, the items
/// are clones, which copies no content; empty items are left out.
pub(crate) fn collect(write: impl FnOnce(&mut dyn FnMut(Part<'_>))) -> Vec<Bytes> {
    let mut between = Vec::new();
    // Each item, and where in `between` it stands.
    let mut items = Vec::new();
    write(&mut |part| match part {
        Part::Between(bytes) => between.extend_from_slice(bytes),
        Part::Item(item) if item.is_empty() => {}
        Part::Item(item) => items.push((between.len(), item.clone())),
    });
    let between = Bytes::from(between);
    let mut parts = Vec::with_capacity(2 * items.len() + 1);
    let mut start = 0;
    for (at, item) in items {
        if at > start {
            parts.push(between.slice(start..at));
            start = at;
        }
        parts.push(item);
    }
    if start < between.len() {
        parts.push(between.slice(start..));
    }
    parts
}
