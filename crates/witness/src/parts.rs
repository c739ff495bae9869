//! An encoding as byte strings to be sent one after the other: large items uncopied.

use crate::Items;
use crate::limits::{COPIED_BYTES, COPIED_ITEM_BYTES};
use alloy_primitives::Bytes;

/// A slice of an encoding.
pub(crate) enum Part<'a> {
    /// Offsets or headers.
    Between(&'a [u8]),
    /// An item of one of the witness's lists, with its index there.
    Item { list: Items<'a>, index: usize, bytes: &'a [u8] },
}

impl<'a> Part<'a> {
    pub(crate) fn bytes(self) -> &'a [u8] {
        match self {
            Self::Between(bytes) | Self::Item { bytes, .. } => bytes,
        }
    }
}

/// Collects the parts that `write` hands over, which it does twice and alike. Large items are
/// clones, which copy no content. The bytes between them are slices of one buffer, small items
/// included: a slice of its own costs more than the copy of a node. Beyond
/// [`COPIED_BYTES`] small items are clones too.
pub(crate) fn collect(write: impl Fn(&mut dyn FnMut(Part<'_>))) -> Vec<Bytes> {
    let mut buffer_bytes = 0;
    let mut copied_bytes = 0;
    let mut items_count = 0;
    write(&mut |part| match part {
        Part::Between(bytes) => buffer_bytes += bytes.len(),
        Part::Item { bytes, .. } if is_copied(bytes, &mut copied_bytes) => {}
        Part::Item { .. } => items_count += 1,
    });
    let mut buffer = Vec::with_capacity(buffer_bytes + copied_bytes);
    // Each item that is not copied, with its position in the buffer.
    let mut items = Vec::with_capacity(items_count);
    copied_bytes = 0;
    write(&mut |part| match part {
        Part::Between(bytes) => buffer.extend_from_slice(bytes),
        Part::Item { bytes, .. } if is_copied(bytes, &mut copied_bytes) => {
            buffer.extend_from_slice(bytes);
        }
        Part::Item { list, index, .. } => {
            items.push((buffer.len(), list.share(index).expect("the item is there")));
        }
    });
    let buffer = Bytes::from(buffer);
    let mut parts = Vec::with_capacity(2 * items.len() + 1);
    let mut start = 0;
    for (at, item) in items {
        if at > start {
            parts.push(buffer.slice(start..at));
            start = at;
        }
        parts.push(item);
    }
    if start < buffer.len() {
        parts.push(buffer.slice(start..));
    }
    parts
}

/// Whether an item is copied after `copied_bytes` others, to which it is added then.
fn is_copied(item: &[u8], copied_bytes: &mut usize) -> bool {
    let has_room = *copied_bytes < COPIED_BYTES || item.is_empty();
    let is_copied = item.len() < COPIED_ITEM_BYTES && has_room;
    *copied_bytes += if is_copied { item.len() } else { 0 };
    is_copied
}

#[cfg(test)]
mod tests {
    use crate::limits::{COPIED_BYTES, COPIED_ITEM_BYTES};
    use crate::samples::check_parts;
    use crate::{Witness, rlp, ssz};
    use alloy_primitives::Bytes;

    /// A witness with items of these lengths as its state.
    fn check(lengths: impl IntoIterator<Item = usize>) -> usize {
        let all = Bytes::from_iter((0..3 * COPIED_ITEM_BYTES).map(|at| at as u8));
        let state = lengths.into_iter().map(|bytes| all.slice(bytes % 7..bytes % 7 + bytes));
        let witness = Witness { state: state.collect(), ..Witness::default() };
        check_parts(&witness, ssz::parts(&witness).unwrap(), ssz::encode(&witness).unwrap());
        let parts = rlp::parts(&witness);
        let count = parts.len();
        check_parts(&witness, parts, rlp::encode(&witness));
        count
    }

    #[test]
    fn small_items_are_copied_as_long_as_there_is_room() {
        let large = COPIED_ITEM_BYTES;
        assert_eq!(check([0, 1, 532, large - 1]), 1);
        // The lists of codes and headers follow, which are empty.
        assert_eq!(check([large]), 3);
        assert_eq!(check([5, large, 0, 5, 2 * large, large, 5]), 7);
        let fitting = COPIED_BYTES.div_ceil(large - 1);
        assert_eq!(check(vec![large - 1; fitting]), 1);
        assert_eq!(check(std::iter::repeat_n(large - 1, fitting).chain([0, 1, 2])), 5);
    }
}
