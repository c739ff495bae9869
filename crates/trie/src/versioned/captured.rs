//! The captured nodes of a witness, each with a sort key.

use super::{node::NodeOrigin, record_arena::RecordArena};
use alloy_rlp::EMPTY_STRING_CODE as EMPTY;

/// A node that was captured.
///
/// The sort key is computed while the RLP is in the processor's cache, as it has just been read; at
/// the end of a block it no longer is.
#[derive(Clone, Debug)]
pub(crate) struct CapturedNode {
    /// See [`key`].
    pub(crate) key: u64,
    /// The start of its RLP in the arena.
    pub(crate) start: u32,
    pub(crate) len: u16,
}

impl CapturedNode {
    /// A node with a record of its own in this arena.
    pub(crate) fn new(origin: NodeOrigin, arena: &RecordArena) -> Self {
        let key = key(origin.rlp(arena));
        Self { key, start: origin.rlp_start(), len: origin.rlp_bytes() as u16 }
    }

    /// The node, in the arena that it was captured from.
    pub(crate) fn rlp<'a>(&self, arena: &'a RecordArena) -> &'a [u8] {
        arena.bytes(self.start as usize, self.len.into())
    }
}

/// The sort key of a node: a prefix of its lexicographic order. Of two nodes with different keys
/// the one with the lower key comes first; nodes with the same key may be in any order. The same
/// holds for the high bits of the key.
///
/// Most nodes of a witness are branches, and most of those begin alike, with their length and empty
/// children. So that few bits distinguish nodes, the key has, from the highest bit on,
///
/// - 10 bits, the length of the payload: a longer one has the higher header;
/// - 5 bits, lower the more empty children the payload begins with; 0 if it begins with a byte
///   below that of an empty child, which only a path of at most one nibble does;
/// - 49 bits, the bytes after those.
///
/// No node of a state is longer than 1,022 bytes; all longer nodes have one key.
pub(crate) fn key(rlp: &[u8]) -> u64 {
    let (header_bytes, len) = match *rlp {
        [0xf9, high, low, ..] => (3, usize::from(high) << 8 | usize::from(low)),
        [first, ..] if first > 0xf9 => (3, usize::MAX),
        [0xf8, len, ..] => (2, usize::from(len)),
        [0xf8] => (1, 0),
        [first, ..] => (1, usize::from(first).saturating_sub(0xc0)),
        [] => (0, 0),
    };
    if len >= LONG {
        return (LONG as u64) << 54;
    }
    let payload = &rlp[rlp.len().min(header_bytes)..];
    let empty_count = leading_empty(payload);
    let order = match payload.first() {
        Some(..EMPTY) | None => 0,
        Some(EMPTY..) => 31 - empty_count,
    };
    let rest = be_u64(&payload[empty_count..]);
    (len as u64) << 54 | (order as u64) << 49 | rest >> 15
}

/// The largest length that ten bits can hold.
const LONG: usize = 1023;

/// The number of empty items that a payload begins with, at most sixteen.
fn leading_empty(payload: &[u8]) -> usize {
    let Some(children) = payload.first_chunk() else {
        return payload.iter().take_while(|byte| **byte == EMPTY).count();
    };
    let others = u128::from_be_bytes(*children) ^ u128::from_be_bytes([EMPTY; 16]);
    others.leading_zeros() as usize / 8
}

/// The first eight bytes, padded with zeros.
fn be_u64(bytes: &[u8]) -> u64 {
    if let Some(first) = bytes.first_chunk() {
        return u64::from_be_bytes(*first);
    }
    let mut first = [0; 8];
    first[..bytes.len()].copy_from_slice(bytes);
    u64::from_be_bytes(first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloy_rlp::{Encodable, Header, PayloadView};
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    /// A node that begins as many others do.
    fn node(rng: &mut StdRng) -> Vec<u8> {
        let mut payload = Vec::new();
        if rng.random_ratio(1, 3) {
            // A leaf or an extension.
            let path: Vec<u8> =
                (0..rng.random_range(1..4)).map(|_| rng.random_range(0..3)).collect();
            path[..].encode(&mut payload);
            let value: Vec<u8> = (0..rng.random_range(1..40)).map(|_| rng.random()).collect();
            value[..].encode(&mut payload);
        } else {
            let empty_first = rng.random_range(0..17);
            for child in 0..17 {
                match rng.random_range(0..20) {
                    _ if child < empty_first => payload.push(EMPTY),
                    0..4 => payload.push(EMPTY),
                    // Embedded.
                    4 => {
                        payload.extend([0xc2, rng.random_range(0x20..0x3f), rng.random_range(1..3)])
                    }
                    _ => {
                        let hash: [u8; 32] = std::array::from_fn(|_| rng.random_range(0..3));
                        hash[..].encode(&mut payload);
                    }
                }
            }
        }
        let mut rlp = Vec::new();
        Header { list: true, payload_length: payload.len() }.encode(&mut rlp);
        rlp.extend(payload);
        assert!(matches!(Header::decode_raw(&mut &rlp[..]), Ok(PayloadView::List(_))));
        rlp
    }

    #[test]
    fn keys_are_in_the_order_of_the_nodes() {
        let rng = &mut StdRng::seed_from_u64(testing::seed());
        let mut nodes: Vec<_> = (0..3_000).map(|_| node(rng)).collect();
        nodes.sort_unstable();
        nodes.dedup();
        let keys: Vec<_> = nodes.iter().map(|node| key(node)).collect();
        for (index, two) in keys.windows(2).enumerate() {
            assert!(two[0] <= two[1], "{:02x?} {:02x?}", nodes[index], nodes[index + 1]);
        }
        let different = keys.windows(2).filter(|two| two[0] < two[1]).count();
        assert!(different > nodes.len() / 2, "{different} of {}", nodes.len());
    }

    #[test]
    fn anything_has_a_key() {
        let nodes = [&[][..], &[0x80], &[0xc0], &[0xf8], &[0xf9, 2], &[0xf9, 2, 0x11], &[0x80; 40]];
        for node in nodes {
            key(node);
        }
        assert_eq!(key(&[0xc1, 0x80]), 1 << 54 | 30 << 49);
        let branch = [0xf8, 0x51, 0x80, 0x80, 0xa0, 7, 0, 0, 0, 0, 0x7f];
        assert_eq!(key(&branch), 0x51 << 54 | 29 << 49 | 0xa0_07 << 33);
        // The header says which comes first, whatever is behind it.
        let long = [&[0xf9, 4, 0, 0xff][..], &[0xf9, 4, 1, 0], &[0xfa, 1, 0, 0]];
        assert!(long.iter().all(|rlp| key(rlp) == 1023 << 54));
        assert!(key(&[0xf9, 3, 0xfe, 0xff, 0xff]) < 1023 << 54);
    }
}
