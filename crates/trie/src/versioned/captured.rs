//! Nodes of a witness, as little of each as it takes to put them in order.

use super::{base::Base, node::Origin};
use alloy_rlp::EMPTY_STRING_CODE as EMPTY;

/// A node that was captured.
///
/// What puts it in order is taken while its RLP is at hand, as it has just been read: at the end of
/// a block it is all over the memory.
#[derive(Clone, Debug)]
pub(crate) struct Captured {
    /// See [`key`].
    pub(crate) key: u64,
    /// Where its RLP begins in the base.
    pub(crate) start: u32,
    pub(crate) len: u16,
}

impl Captured {
    /// A node with a record of its own in this base.
    pub(crate) fn new(origin: Origin, base: &Base) -> Self {
        let key = key(origin.rlp(base));
        Self { key, start: origin.rlp_start(), len: origin.rlp_bytes() as u16 }
    }

    /// The node, in the base that it was captured from.
    pub(crate) fn rlp<'a>(&self, base: &'a Base) -> &'a [u8] {
        base.bytes(self.start as usize, self.len.into())
    }
}

/// A number that is in order as the RLP of nodes is: of two nodes the one with the lower number
/// comes first, and nodes with the same number may be in any order. Its high bits alone are too.
///
/// Most nodes of a witness are branches, and most of those begin alike, with their length and empty
/// children. So that few bits tell nodes apart, they are, from the highest one on,
///
/// - 10, how long the payload is: the longer one has the higher header;
/// - 5, the lower the more empty children it begins with; 0 if it begins with a byte below that of
///   an empty child, which only a path of at most one nibble does;
/// - 49, what is behind those.
///
/// No node of a state is longer than 1,022 bytes; those that are have one number.
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

/// What ten bits can say of a length.
const LONG: usize = 1023;

/// How many empty items a payload begins with, as far as a branch has children.
fn leading_empty(payload: &[u8]) -> usize {
    let Some(children) = payload.first_chunk() else {
        return payload.iter().take_while(|byte| **byte == EMPTY).count();
    };
    let others = u128::from_be_bytes(*children) ^ u128::from_be_bytes([EMPTY; 16]);
    others.leading_zeros() as usize / 8
}

/// The first eight bytes, or zeros behind all of them.
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
        let seed = rand::random();
        println!("seed {seed}");
        let rng = &mut StdRng::seed_from_u64(seed);
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
